#include "profiler/view/programs/pair_figures.h"
#include "profiler/view/programs/compare_view.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

ComparisonColumn predicted(int64_t step_time_ns, double error) {
    ComparisonColumn column;
    column.source = Source::kPredicted;
    column.time_error = error;
    column.batch_size = 8;
    column.step_time_ns = step_time_ns;
    return column;
}

/// How the step time changes from A to B.
PairFigure time_of_pair(double error, int64_t b_ns = 729'000) {
    Comparison comparison;
    comparison.columns = {predicted(1'000'000, error), predicted(b_ns, error)};
    const auto figures = pair_figures(comparison, build_compare_view(comparison), 0, 1);
    return figures.empty() ? PairFigure() : figures.back();
}

TEST(PairFigures, SayThatPredictedTimesAreRough) {
    EXPECT_EQ(time_of_pair(0).difference, "-27.1 %");
    EXPECT_EQ(time_of_pair(0.1).difference, "≈ -27 %");
    EXPECT_EQ(time_of_pair(0.1).sign, -1);
    EXPECT_EQ(time_of_pair(0, 1'002'000).difference, "+0.2 %");
    EXPECT_EQ(time_of_pair(0.1, 1'002'000).difference, "");
    EXPECT_EQ(time_of_pair(0.1).label, "step time");
}

}  // namespace
}  // namespace profiler
