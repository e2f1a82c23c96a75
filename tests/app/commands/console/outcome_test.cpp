#include "app/commands/console/outcome.h"

#include <gtest/gtest.h>

namespace {

using app::with_options;

TEST(WithOptions, PutsTheOptionsOfTheFieldsBeforeTheFullStop) {
    EXPECT_EQ(with_options("Choose a smaller batch.", {"batch_size"}),
              "Choose a smaller batch (--batch).");
    EXPECT_EQ(with_options("Choose smaller sizes.", {"seq_len", "hidden_size"}),
              "Choose smaller sizes (--seq, --hidden).");
}

TEST(WithOptions, LeavesASentenceWithoutKnownFieldsAsItIs) {
    EXPECT_EQ(with_options("The file is damaged.", {}), "The file is damaged.");
    EXPECT_EQ(with_options("The file is damaged.", {"no_such_field"}), "The file is damaged.");
}

TEST(Outcome, AFailureSpellsTheFieldsOfItsError) {
    const models::Error error{"Choose an older software environment.", {"setup"}};
    EXPECT_EQ(app::wrong_usage(error).value().message,
              "Choose an older software environment (--setup).");
    EXPECT_EQ(app::failed(error).value().message,
              "Choose an older software environment (--setup).");
}

}  // namespace
