#include "profiler/view/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace {

using namespace profiler;
using testing::ElementsAre;

constexpr double kMiB = 0x1p20;
constexpr double kGiB = 0x1p30;

std::vector<std::string> labels(AxisUnit unit, double min, double max, int max_count) {
    std::vector<std::string> result;
    for (const Tick& tick : make_ticks(unit, min, max, max_count)) result.push_back(tick.label);
    return result;
}

double characters(std::string_view text) {
    double count = 0;
    for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return count;
}

TEST(MakeTicks, StepsBytesByPowersOfTwo) {
    EXPECT_THAT(labels(AxisUnit::kBytes, 0, 24.5 * kGiB, 8),
                ElementsAre("0", "4 GiB", "8 GiB", "12 GiB", "16 GiB", "20 GiB", "24 GiB"));
}

TEST(MakeTicks, UsesTheSmallerByteUnitForFineSteps) {
    EXPECT_THAT(labels(AxisUnit::kBytes, 0, 1.1 * kGiB, 10),
                ElementsAre("0", "128 MiB", "256 MiB", "384 MiB", "512 MiB", "640 MiB", "768 MiB",
                            "896 MiB", "1024 MiB"));
    EXPECT_THAT(labels(AxisUnit::kBytes, 0, 1.1 * kGiB, 5),
                ElementsAre("0", "0.25 GiB", "0.50 GiB", "0.75 GiB", "1.00 GiB"));
}

TEST(MakeTicks, GroupsDigitsFarFromTheOrigin) {
    EXPECT_THAT(labels(AxisUnit::kBytes, 24 * kGiB, 24 * kGiB + 24 * kMiB, 4),
                ElementsAre("24,576 MiB", "24,584 MiB", "24,592 MiB", "24,600 MiB"));
}

TEST(MakeTicks, GivesAllTimesTheSameDecimals) {
    EXPECT_THAT(labels(AxisUnit::kTime, 10.29e9, 10.42e9, 4),
                ElementsAre("10.30 s", "10.35 s", "10.40 s"));
    EXPECT_THAT(labels(AxisUnit::kTime, 0, 2.2e6, 4), ElementsAre("0", "1 ms", "2 ms"));
    EXPECT_THAT(labels(AxisUnit::kTime, 0, 3, 5), ElementsAre("0", "1 ns", "2 ns", "3 ns"));
}

TEST(MakeTicks, KeepsCountsWhole) {
    EXPECT_THAT(labels(AxisUnit::kCount, 0, 3, 10), ElementsAre("0", "1", "2", "3"));
    EXPECT_THAT(labels(AxisUnit::kCount, 0, 12000, 4), ElementsAre("0", "5000", "10,000"));
}

TEST(MakeTicks, WritesSmallRatesWithTheDecimalsTheyNeed) {
    EXPECT_THAT(labels(AxisUnit::kRate, 0, 0.05, 4), ElementsAre("0", "0.02", "0.04"));
    EXPECT_THAT(labels(AxisUnit::kRate, -1, 1, 5), ElementsAre("-1.0", "-0.5", "0", "0.5", "1.0"));
}

TEST(MakeTicks, NeverExceedsTheCountAndStaysInsideTheRange) {
    for (const AxisUnit unit :
         {AxisUnit::kBytes, AxisUnit::kTime, AxisUnit::kCount, AxisUnit::kRate}) {
        for (double max = 1; max < 1e18; max *= 3.7) {
            for (const double min : {0.0, max * 0.4, -max}) {
                for (const int count : {2, 3, 7}) {
                    const auto ticks = make_ticks(unit, min, max, count);
                    EXPECT_LE(ticks.size(), static_cast<std::size_t>(count)) << min << " " << max;
                    for (const Tick& tick : ticks) {
                        EXPECT_GE(tick.value, min);
                        EXPECT_LE(tick.value, max);
                    }
                }
            }
        }
    }
}

TEST(MakeTicks, IsEmptyForEmptyAndUnboundedRanges) {
    EXPECT_TRUE(make_ticks(AxisUnit::kBytes, 5, 5, 4).empty());
    EXPECT_TRUE(make_ticks(AxisUnit::kBytes, 5, 4, 4).empty());
    EXPECT_TRUE(make_ticks(AxisUnit::kTime, 0, std::numeric_limits<double>::infinity(), 4).empty());
    EXPECT_TRUE(make_ticks(AxisUnit::kTime, std::nan(""), 1, 4).empty());
}

/// Far from the origin, adding the step to a number does not change it, so a loop that counts up
/// would not end.
TEST(MakeTicks, EndsForRangesFarFromTheOrigin) {
    for (const AxisUnit unit :
         {AxisUnit::kBytes, AxisUnit::kTime, AxisUnit::kCount, AxisUnit::kRate}) {
        for (const double min : {0x1p53, 0x1p60, -0x1p60, 1e30, 1e300, -1e300}) {
            for (const int steps : {1, 2, 9}) {
                double max = min;
                for (int i = 0; i < steps; ++i) max = std::nextafter(max, INFINITY);
                const auto ticks = make_ticks(unit, min, max, 5);
                EXPECT_LE(ticks.size(), 5u);
                for (std::size_t i = 1; i < ticks.size(); ++i) {
                    EXPECT_LT(ticks[i - 1].value, ticks[i].value);
                }
            }
        }
    }
    EXPECT_TRUE(make_ticks(AxisUnit::kRate, -1.7e308, 1.7e308, 4).empty()) << "infinitely wide";
}

TEST(MakeTicks, EndsForRangesNextToZero) {
    const double least = std::numeric_limits<double>::denorm_min();
    EXPECT_LE(make_ticks(AxisUnit::kRate, 0, least, 4).size(), 4u);
    EXPECT_LE(make_ticks(AxisUnit::kRate, 0, 1e-310, 4).size(), 4u);
    EXPECT_GE(axis_end(AxisUnit::kRate, least, 0.1, 4), least);
}

TEST(AxisEnd, EndsOnATickWhenOneIsNear) {
    EXPECT_EQ(axis_end(AxisUnit::kBytes, 3.6 * kGiB, 0.08, 5), 4 * kGiB);
    EXPECT_DOUBLE_EQ(axis_end(AxisUnit::kBytes, 2.1 * kGiB, 0.08, 3), 2.1 * 1.08 * kGiB);
    EXPECT_EQ(axis_end(AxisUnit::kRate, 0, 0.08, 5), 1);
}

TEST(AxisEnd, IsTheValueWhereHeadroomWouldBeInfinite) {
    EXPECT_EQ(axis_end(AxisUnit::kRate, 1.7e308, 0.2, 4), 1.7e308);
}

TEST(AxisEnd, AlwaysShowsTheValueWithItsHeadroom) {
    for (double value = 1e-6; value < 1e15; value *= 1.9) {
        EXPECT_GE(axis_end(AxisUnit::kRate, value, 0.1, 6), value * 1.1 * (1 - 1e-12));
        EXPECT_LT(axis_end(AxisUnit::kRate, value, 0.1, 6), value * 1.7);
    }
}

TEST(FitLabel, LeavesWhatFitsAndShortensTheMiddle) {
    EXPECT_EQ(fit_label("tempo-packed", 12, characters), "tempo-packed");
    EXPECT_EQ(fit_label("encoder.layer.10.output", 12, characters), "encode…utput");
    EXPECT_EQ(fit_path("encoder.layer.10.output", 23, characters), "encoder.layer.10.output");
    EXPECT_EQ(fit_path("encoder.layer.10.output", 22, characters), "…layer.10.output");
    EXPECT_EQ(fit_path("encoder.layer.10.output", 11, characters), "…10.output");
    EXPECT_EQ(fit_path("encoder.layer.10.output", 5, characters), "en…ut");
    EXPECT_EQ(fit_path("encoder.layer.10.output.dense", 17, characters), "…10.output.dense");
    EXPECT_EQ(fit_path("encoder.layer.10.output.dense", 15, characters), "…10…dense");
    EXPECT_EQ(fit_path("encoder.layer.10.output.dense", 8, characters), "…dense");
    EXPECT_EQ(fit_path("encoder.layer.10.attention.self.softmax", 17, characters),
              "…10…self.softmax");
    EXPECT_EQ(fit_path("encoder.layer.10", 4, characters), "…10");
    EXPECT_EQ(fit_label("encoder", 1, characters), "…");
    EXPECT_EQ(fit_label("encoder", 0.5, characters), "");
}

TEST(FitLabel, NeverCutsInsideACharacter) {
    const std::string fitted = fit_label("äöüßäöüß", 5, characters);
    EXPECT_EQ(fitted, "äö…üß");
}

TEST(WrapLabel, BreaksAtHyphensAndCommas) {
    EXPECT_THAT(wrap_label("deepspeed-normalize-invertible", 12, 3, characters),
                ElementsAre("deepspeed-", "normalize-", "invertible"));
    EXPECT_THAT(wrap_label("gelu=in_place,masks=bit", 14, 2, characters),
                ElementsAre("gelu=in_place,", "masks=bit"));
    EXPECT_THAT(wrap_label("tempo", 12, 2, characters), ElementsAre("tempo"));
}

TEST(WrapLabel, FitsTheRestIntoTheLastLine) {
    const auto lines =
        wrap_label("gelu=in_place,layer_norm=from_output,masks=bit", 14, 2, characters);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0], "gelu=in_place,");
    EXPECT_LE(characters(lines[1]), 14);
    EXPECT_TRUE(lines[1].ends_with("bit"));
}

TEST(WrapLabel, EndsForWidthsInWhichNothingFits) {
    EXPECT_LE(wrap_label("abcdef", 0.1, 3, characters).size(), 3u);
}

}  // namespace
