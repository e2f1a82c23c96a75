#include "profiler/view/advice/advice_view.h"

#include "tests/support/small_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

/// What the verdict line and the cards say of a program that runs out of memory.
namespace {

using namespace tests;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class AdviceViewTest : public testing::Test {
protected:
    AdviceView view_with(std::vector<RemedyTrial> trials = {}) {
        auto view = build_advice_view({.step = &index_, .trials = std::move(trials)});
        EXPECT_TRUE(view) << view.error().message;
        return std::move(*view);
    }
    static const AdviceCard& card_of(const AdviceView& view, std::string_view id) {
        const auto card = std::ranges::find(view.cards, id, &AdviceCard::id);
        EXPECT_NE(card, view.cards.end()) << id;
        return *card;
    }
    static std::vector<std::string> texts_of(const AdviceCard& card) {
        std::vector<std::string> texts;
        for (const TonedText& figure : card.figures) texts.push_back(figure.text);
        return texts;
    }

    const Trace trace_ = LanguageModel().finish();
    const StepIndex index_{trace_};
};

TEST_F(AdviceViewTest, SaysWhatFillsTheMemoryAndThatRemediesFit) {
    const AdviceView view = view_with();
    EXPECT_THAT(view.explanation.sentence, HasSubstr("Out of memory at train.py:14"));
    EXPECT_THAT(view.details, HasSubstr("1.31 GiB in tensors of 1.50 GiB"));
    EXPECT_THAT(view.details, HasSubstr("loss = cross_entropy(logits, tokens)"));
    EXPECT_THAT(view.outlook, HasSubstr("remedies fit; the first one changes"));
    EXPECT_EQ(view.cards.size(), view.explanation.remedies.size());
}

TEST_F(AdviceViewTest, ACardHasBytesCodeAndWhatToPaste) {
    const AdviceView view = view_with();
    const AdviceCard& card = card_of(view, "delete_after_use");
    EXPECT_THAT(texts_of(card), ElementsAre("-128 MiB", "1 line", "peak 1.44 GiB"));
    EXPECT_EQ(card.fits.text, "does not fit, estimated") << "its free memory lies in pieces";
    EXPECT_EQ(card.fits.tone, Tone::kBad);
    EXPECT_EQ(card_of(view, "chunked_loss").fits.text, "fits, estimated");
    EXPECT_EQ(card_of(view, "chunked_loss").fits.tone, Tone::kGood);
    ASSERT_EQ(card.changes.size(), 1U);
    EXPECT_EQ(card.changes.front().place, "below train.py:14");
    EXPECT_EQ(card.changes.front().text, "del logits");
}

TEST_F(AdviceViewTest, ARunMakesACardVerified) {
    const StepOutcome measured{
        .peak_allocated_bytes = 91 * kUnit, .peak_reserved_bytes = 92 * kUnit, .fits = true};
    RemedyTrial trial{.target = {},
                      .id = "delete_after_use",
                      .sentence = "Measured.",
                      .estimated = {},
                      .verified = measured,
                      .problem = {}};
    AdviceView view = view_with({trial});
    EXPECT_EQ(card_of(view, "delete_after_use").fits.text, "fits, verified");
    EXPECT_EQ(card_of(view, "delete_after_use").sentence, "Measured.");
    EXPECT_THAT(texts_of(card_of(view, "delete_after_use")), Contains("peak 1.42 GiB"));
    trial.target.gpu = "h100-sxm";
    view = view_with({trial});
    EXPECT_EQ(card_of(view, "delete_after_use").fits.text, "does not fit, estimated")
        << "it ran on another GPU";
}

TEST_F(AdviceViewTest, ARemedyThatBreaksTheProgramDoesNotFit) {
    StepOutcome unknown;
    unknown.is_sure = false;
    const AdviceView view = view_with({{.target = {},
                                        .id = "chunked_loss",
                                        .sentence = {},
                                        .estimated = unknown,
                                        .verified = {},
                                        .problem = "It broke."}});
    EXPECT_EQ(card_of(view, "chunked_loss").problem, "It broke.");
    EXPECT_EQ(card_of(view, "chunked_loss").fits.tone, Tone::kNeutral);
    EXPECT_GT(&card_of(view, "chunked_loss"), &view.cards.front()) << "others come first";
}

TEST_F(AdviceViewTest, TheTableHasARowForEachCard) {
    const AdviceView view = view_with();
    const DataTable table = data_table(remedy_columns(), numbered_remedies(view.explanation));
    EXPECT_EQ(table.rows.size(), view.cards.size());
    EXPECT_EQ(table.columns.front(), "number");
}

}  // namespace
