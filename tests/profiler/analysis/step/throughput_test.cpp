#include "profiler/analysis/step/throughput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

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
    EXPECT_FALSE(paired_ratio({}, {5}));
}

/// Five pairs that all lie on one side of 1 occur by chance in 6 % of cases, three pairs in 25 %.
TEST(PairedRatio, ShowsNoDifferenceInFewerThanSixPairs) {
    for (const std::size_t pairs : {1u, 2u, 3u, 5u, 6u, 7u}) {
        const std::vector<int64_t> slow_ns(pairs, 2000), fast_ns(pairs, 1000);
        EXPECT_EQ(paired_ratio(slow_ns, fast_ns)->shows_difference(), pairs >= 6) << pairs;
        EXPECT_EQ(paired_ratio(fast_ns, slow_ns)->shows_difference(), pairs >= 6) << pairs;
    }
}

/// Steps of equal true speed on a machine whose speed drifts.
TEST(PairedRatio, SeldomShowsADifferenceThatIsNotThere) {
    constexpr int kRuns = 1000;
    // The promise is 5 % of the runs. The margin is three standard deviations of that count,
    // sqrt(1000 · 0.05 · 0.95) = 6.9 each.
    constexpr int kMostShown = 50 + 21;
    std::mt19937_64 random(20261122);
    std::normal_distribution<double> noise(0, 0.03), drift(0, 0.05);
    int all_shown = 0;
    for (int pairs = 6; pairs <= 9; ++pairs) {
        int shown = 0;
        for (int run = 0; run < kRuns; ++run) {
            std::vector<int64_t> a_ns, b_ns;
            double machine_ns = 1e9;
            for (int pair = 0; pair < pairs; ++pair) {
                machine_ns *= std::exp(drift(random));
                a_ns.push_back(std::llround(machine_ns * std::exp(noise(random))));
                b_ns.push_back(std::llround(machine_ns * std::exp(noise(random))));
            }
            if (paired_ratio(a_ns, b_ns)->shows_difference()) ++shown;
        }
        EXPECT_LE(shown, kMostShown) << pairs << " pairs";
        all_shown += shown;
    }
    EXPECT_GT(all_shown, 0) << "the sign test expects about 94 of 4000";
}

}  // namespace
}  // namespace profiler
