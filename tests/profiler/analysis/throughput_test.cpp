#include "profiler/analysis/throughput.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

/// Of six pairs the extremes are the 95 % interval, of nine the second and the last but one.
TEST(PairedRatio, NarrowsItsSpreadAsPairsGrowMany) {
    const auto ratio_of = [](int64_t pairs) {
        std::vector<int64_t> times_ns, baseline_ns(static_cast<std::size_t>(pairs), 1000);
        for (int64_t i = 1; i <= pairs; ++i) times_ns.push_back(1000 + i);
        return paired_ratio(times_ns, baseline_ns).value();
    };
    for (const int64_t pairs : {2, 5, 6, 8}) {
        EXPECT_DOUBLE_EQ(ratio_of(pairs).low, 1.001) << pairs;
        EXPECT_DOUBLE_EQ(ratio_of(pairs).high, 1 + 0.001 * static_cast<double>(pairs)) << pairs;
    }
    EXPECT_DOUBLE_EQ(ratio_of(9).low, 1.002);
    EXPECT_DOUBLE_EQ(ratio_of(9).high, 1.008);
    EXPECT_DOUBLE_EQ(ratio_of(9).median, 1.005);
    // scipy.stats.binom(20, 0.5).cdf(5) = 0.0207, of 6 it is 0.0577.
    EXPECT_DOUBLE_EQ(ratio_of(20).low, 1.006);
    EXPECT_DOUBLE_EQ(ratio_of(20).high, 1.015);
    EXPECT_FALSE(ratio_of(1).shows_difference()) << "one pair has no spread";
    EXPECT_FALSE(paired_ratio({}, {5}));
}

}  // namespace
}  // namespace profiler
