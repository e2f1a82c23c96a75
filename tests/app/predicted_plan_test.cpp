// Steps on a virtual GPU as plans use them.
#include "models/config/validity.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/planner/step/step_memory.h"
#include "tests/app/predicted_steps.h"
#include "tests/support/trace_equality.h"

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace profiler {
namespace {

using models::Head;
using models::Precision;
using testing::HasSubstr;

/// Clears what differs from run to run: the clock, and the numbers of the process's launches.
void forget_the_run(Trace& trace) {
    trace.runs.set<&Run::start_unix_ns>(Id<Run>(0), 0);
    for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
        trace.kernels.set<&Kernel::correlation>(Id<Kernel>(i), 0);
    }
}

models::Workload small(std::string_view name, const models::Recipe& recipe, Head head,
                       Precision precision) {
    models::Workload w{.model = *models::find_model("bert-base"),
                       .head = head,
                       .recipe_name = std::string(name),
                       .recipe = recipe,
                       .precision = precision,
                       .batch_size = 4,
                       .seq_len = 128};
    w.model.num_layers = 2;
    return w;
}

models::Workload small(std::string_view recipe) {
    return small(recipe, *models::parse_recipe(recipe), Head::kMlm, Precision::kBf16);
}

/// Every preset with a precision that it allows, in turn with the heads.
std::vector<models::Workload> all_presets() {
    constexpr std::array kPrecisions{Precision::kFp32, Precision::kAmpFp16, Precision::kBf16,
                                     Precision::kFp16, Precision::kAmpBf16, Precision::kPureBf16};
    std::vector<models::Workload> workloads;
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        for (std::size_t i = 0; i < kPrecisions.size(); ++i) {
            const Head head = i % 2 == 0 ? Head::kLayers : Head::kMlm;
            models::Workload w = small(preset.name, preset.recipe, head, kPrecisions[i]);
            if (models::validate_for_prediction(w, models::kAmpere)) {
                workloads.push_back(std::move(w));
            }
        }
    }
    for (const char* recipe : {"original", "tempo", "checkpoint"}) {
        workloads.push_back(small(recipe));
        workloads.back().gradient_accumulation_steps = 3;
    }
    return workloads;
}

class PredictedPlan : public ::tests::PredictedSteps {
protected:
    static StepWork step_of(const models::Workload& workload, app::TraceDetail detail) {
        const auto trace = workers_on("a100-40gb", detail).source()({workload});
        EXPECT_TRUE(trace) << trace.error().message;
        return trace ? step_work_of(**trace).value() : StepWork{};
    }
};

TEST_F(PredictedPlan, OneWorkerAnswersSeveralRequestsAlike) {
    const std::size_t before = workers_on("a100-40gb").started();
    const auto source = workers_on("a100-40gb").source();
    const auto first = source({small("original")});
    const auto other = source({small("flash")});
    const auto again = source({small("original")});
    ASSERT_TRUE(first && other && again);
    EXPECT_EQ(workers_on("a100-40gb").started(), std::max<std::size_t>(before, 1));
    Trace a = **first;
    Trace b = **again;
    for (Trace* trace : {&a, &b}) forget_the_run(*trace);
    EXPECT_EQ(::tests::first_difference(a, b), "");
    EXPECT_EQ(a.run().source, Source::kPredicted);
    EXPECT_EQ(a.run().batch_size, 4);
    EXPECT_EQ(a.text(a.run().device_name), "compute capability 8.0");
    EXPECT_NE(a.allocations.size(), (*other)->allocations.size());
}

TEST_F(PredictedPlan, EveryGpuOfALongListTracesAsItself) {
    std::vector<Gpu> gpus(40, app::shared_gpu());
    gpus.back().id = "newer";
    gpus.back().compute_capability = models::ComputeCapability{9, 0};
    std::vector<const Gpu*> pointers;
    for (const Gpu& gpu : gpus) pointers.push_back(&gpu);
    app::TraceWorkers workers(pointers, app::TraceDetail::kForPlan);
    const auto trace = workers.source()({small("original"), "newer"});
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ((*trace)->text((*trace)->run().device_name), "compute capability 9.0");
}

TEST_F(PredictedPlan, SaysWhatCannotBePredicted) {
    const StepSource source = workers_on("t4").source();
    const auto refused = source({small("flash")});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("needs compute capability 8.0"));
    models::Workload other = small("tempo");
    other.precision = Precision::kFp32;
    EXPECT_TRUE(source({other}));
}

TEST_F(PredictedPlan, TheSecondStepIsTheFirstWithoutWhatStays) {
    for (const models::Workload& workload : all_presets()) {
        SCOPED_TRACE(workload.recipe_name + " " + std::string(name_of(workload.precision)));
        StepWork derived = step_of(workload, app::TraceDetail::kForPlan);
        ASSERT_TRUE(derived.is_first_step);
        repeat_first_step(derived);
        const StepWork run = step_of(workload, app::TraceDetail::kForCapture);
        EXPECT_FALSE(run.is_first_step);
        ASSERT_EQ(derived.requests.size(), run.requests.size());
        EXPECT_EQ(derived.first_request, run.first_request);
        EXPECT_EQ(derived.allocations.size(), run.allocations.size());
        const StepMemory a = simulate_step(derived, {}, std::nullopt);
        const StepMemory b = simulate_step(run, {}, std::nullopt);
        EXPECT_EQ(a.peak_allocated_bytes, b.peak_allocated_bytes);
        EXPECT_EQ(a.peak_reserved_bytes, b.peak_reserved_bytes);
    }
}

/// Anchors above the first may need more memory than any GPU has.
TEST_F(PredictedPlan, AStepThatNoGpuHoldsLeavesTheSmallerBatches) {
    models::Workload huge = small("original");
    huge.head = Head::kLayers;
    huge.model.hidden_size = 1 << 14;
    huge.model.intermediate_size = 1 << 16;
    huge.model.num_heads = 1 << 8;
    huge.model.num_layers = 40;
    huge.precision = Precision::kFp32;
    const StepSource source = workers_on("a100-40gb", app::TraceDetail::kForPlan).source();
    huge.batch_size = 4;
    const auto refused = source({huge});
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().gpu_out_of_memory()) << refused.error().message;
    EXPECT_THAT(refused.error().message, HasSubstr("more memory than any GPU has"));
    huge.seq_len = 512;
    huge.model.num_layers = 8;  // batch 4 fits into the virtual GPU, batch 32 does not
    auto interpolation = BatchInterpolation::trace({huge}, source);
    ASSERT_TRUE(interpolation) << interpolation.error().message;
    EXPECT_TRUE(interpolation->requests_at(2));
    EXPECT_TRUE(interpolation->requests_at(40));  // extended
}

/// An interpolated allocated peak may be off by this share of the traced one: scratch is not affine
/// in the batch, and small models have much of it.
constexpr double kInterpolated = 0.03;

TEST_F(PredictedPlan, InterpolatedStepsAreNearlyThoseOfTheirBatch) {
    const StepSource source = workers_on("a100-40gb", app::TraceDetail::kForPlan).source();
    for (const char* recipe : {"original", "tempo", "flash", "checkpoint", "deepspeed-all"}) {
        models::Workload workload = small(recipe);
        workload.head = Head::kLayers;
        workload.model.num_layers = 6;
        auto interpolation = BatchInterpolation::trace({workload}, source);
        ASSERT_TRUE(interpolation) << interpolation.error().message;
        for (const int64_t batch_size : {2, 7, 9, 21, 40, 130, 500}) {
            SCOPED_TRACE(fmt::format("{}, batch {}", recipe, batch_size));
            const StepRequests between = interpolation->requests_at(batch_size).value();
            ASSERT_TRUE(interpolation->trace_batch(batch_size));
            const StepRequests exact = interpolation->requests_at(batch_size).value();
            const auto a = simulate_step(between, {}, std::nullopt).peak_allocated_bytes;
            const auto b = simulate_step(exact, {}, std::nullopt).peak_allocated_bytes;
            EXPECT_NEAR(static_cast<double>(a) / static_cast<double>(b), 1, kInterpolated);
        }
    }
}

}  // namespace
}  // namespace profiler
