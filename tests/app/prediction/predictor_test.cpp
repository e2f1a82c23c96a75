#include "app/prediction/predictor.h"

#include "app/user/workload_jobs.h"
#include "tests/app/prediction/fake_worker_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PredictorTest : public FakeWorkerTest {
protected:
    /// Without kept traces, so that only rows are known.
    static StepPlanRequest plan_of(std::vector<std::string> recipes) {
        return {.workload = make_workload({.model = "bert-base", .layers = 1}).value(),
                .recipes = std::move(recipes),
                .gpu = "t4",
                .keeps_traces = false};
    }
    static std::vector<std::string> recipes_of(const profiler::Plan& plan) {
        std::vector<std::string> recipes;
        for (const profiler::PlanRow& row : plan.rows) {
            EXPECT_EQ(row.status, profiler::PlanStatus::kOk) << row.reason;
            recipes.push_back(row.workload.recipe_name);
        }
        return recipes;
    }

    Predictor predictor_;
};

TEST_F(PredictorTest, APlanTracesOnlyTheRecipesThatAreNotKnown) {
    EXPECT_TRUE(predictor_.known_plan(plan_of({"original"})).rows.empty());
    const auto first = predictor_.plan(plan_of({"original", "tempo"}));
    ASSERT_TRUE(first.has_value());
    EXPECT_THAT(recipes_of(*first), ElementsAre("original", "tempo"));
    const size_t asked = predictor_.traces_asked();
    EXPECT_GT(asked, 0U);

    const auto again = predictor_.plan(plan_of({"tempo", "original"}));
    EXPECT_THAT(recipes_of(*again), ElementsAre("tempo", "original"));
    EXPECT_EQ(again->rows[0].max_batch_size, first->rows[1].max_batch_size);
    EXPECT_EQ(predictor_.traces_asked(), asked);

    const auto more = predictor_.plan(plan_of({"tempo", "checkpoint", "original"}));
    EXPECT_THAT(recipes_of(*more), ElementsAre("tempo", "checkpoint", "original"));
    EXPECT_GT(predictor_.traces_asked(), asked);
    EXPECT_LT(predictor_.traces_asked() - asked, asked);  // of one recipe, not of three
    EXPECT_THAT(recipes_of(predictor_.known_plan(plan_of({"flash", "checkpoint"}))),
                ElementsAre("checkpoint"));
    // Another step is another row.
    StepPlanRequest longer = plan_of({"original"});
    longer.workload.seq_len = 64;
    EXPECT_TRUE(predictor_.known_plan(longer).rows.empty());
}

TEST_F(PredictorTest, ACancelledPlanTracesNothingMoreAndIsForgotten) {
    const auto cancelled = predictor_.plan(plan_of({"original"}), [](double) { return false; });
    ASSERT_TRUE(cancelled.has_value());
    EXPECT_THAT(cancelled->rows.at(0).reason, HasSubstr("cancelled"));
    EXPECT_EQ(predictor_.traces_asked(), 0U);
    const auto whole = predictor_.plan(plan_of({"original"}));
    EXPECT_THAT(recipes_of(*whole), ElementsAre("original"));
}

}  // namespace
}  // namespace app
