#include "models/config/batch_bisection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace {

using models::BatchBisection;
using testing::ElementsAre;

/// The batches that are tried where batches up to `largest` fit.
std::vector<int64_t> tried(BatchBisection search, int64_t largest) {
    std::vector<int64_t> batches;
    while (!search.is_done()) {
        batches.push_back(search.next());
        search.answer(batches.back(), batches.back() <= largest);
    }
    EXPECT_EQ(search.fits, std::min(largest, search.most));
    return batches;
}

TEST(BatchBisection, DoublesUntilABatchFailsAndThenHalves) {
    EXPECT_THAT(tried({}, 11), ElementsAre(1, 2, 4, 8, 16, 12, 10, 11));
    EXPECT_THAT(tried({}, 0), ElementsAre(1));
    EXPECT_THAT(tried({.most = 6}, 11), ElementsAre(1, 2, 4, 6));
    EXPECT_THAT(tried({.fits = 32, .stride = 1}, 33), ElementsAre(33, 35, 34));
}

TEST(BatchBisection, TakesAGuessBetweenWhatFitsAndWhatFails) {
    BatchBisection search{.fits = 8, .fails = 16};
    EXPECT_EQ(search.next(15), 15);
    EXPECT_EQ(search.next(99), 15);
    EXPECT_EQ(search.next(3), 9);
}

TEST(BatchBisection, GoesOnAboveABatchThatFailsIfALargerOneFits) {
    BatchBisection search{.fits = 8, .fails = 10};
    search.answer(12, true);
    EXPECT_FALSE(search.is_done());
    EXPECT_GT(search.next(), 12);
}

}  // namespace
