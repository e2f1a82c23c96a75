#include "profiler/planner/plan.h"

#include "profiler/planner/plan_row.h"
#include "profiler/planner/step/capacity_search.h"
#include "tests/profiler/planner/toy_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace {

using namespace profiler;
using namespace tests;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class MaxBatch : public testing::Test {
protected:
    BatchInterpolation interpolate() const {
        return BatchInterpolation::trace({toy_workload()}, source_).value();
    }

    const StepSource source_ = toy_source();
};

TEST_F(MaxBatch, IsTheLastThatTheAllocatorServes) {
    BatchInterpolation interpolation = interpolate();
    for (const int64_t capacity : {40 << 20, 100 << 20, 1 << 30}) {
        const auto max_batch = find_max_batch(interpolation, {}, capacity).value();
        ASSERT_GT(max_batch, 1);
        EXPECT_FALSE(interpolation.limited_memory(max_batch, {}, capacity)->out_of_memory);
        EXPECT_TRUE(interpolation.limited_memory(max_batch + 1, {}, capacity)->out_of_memory);
    }
}

TEST_F(MaxBatch, DoesNotDependOnTheCapacitiesThatWereSearchedBefore) {
    BatchInterpolation shared = interpolate();
    for (const int64_t mib : {100, 40, 1000, 60, 61, 59, 999, 20}) {
        BatchInterpolation fresh = interpolate();
        EXPECT_EQ(find_max_batch(shared, {}, mib << 20).value(),
                  find_max_batch(fresh, {}, mib << 20).value())
            << mib;
    }
}

TEST_F(MaxBatch, IsNoneWhereNotOneSequenceFits) {
    BatchInterpolation interpolation = interpolate();
    EXPECT_EQ(find_max_batch(interpolation, {}, 1 << 20), 0);
    EXPECT_EQ(find_max_batch(interpolation, {}, -5), 0);
}

TEST_F(MaxBatch, EndsAtWhatTheModelAccepts) {
    BatchInterpolation interpolation = interpolate();
    // 2^31 elements over S · I (the widest tensor).
    EXPECT_EQ(interpolation.largest_valid_batch(), (int64_t{1} << 31) / (32 * 256));
    EXPECT_EQ(find_max_batch(interpolation, {}, int64_t{1} << 45),
              interpolation.largest_valid_batch());
}

TEST(BatchInterpolation, TracesAnchorsWhenABatchBesideThemIsNeeded) {
    std::vector<int64_t> traced;
    const StepSource source =
        noting_source([&](const StepToTrace& step) { traced.push_back(step.workload.batch_size); });
    auto interpolation = BatchInterpolation::trace({tests::toy_workload()}, source);
    ASSERT_TRUE(interpolation);
    EXPECT_THAT(traced, testing::ElementsAre(4, 32));
    EXPECT_EQ(interpolation->requests_at(5)->batch_size, 5);
    EXPECT_EQ(interpolation->requests_at(32)->batch_size, 32);
    EXPECT_TRUE(interpolation->ops_at(3000));
    EXPECT_THAT(traced, testing::ElementsAre(4, 32));
    EXPECT_EQ(interpolation->requests_at(100)->batch_size, 100);
    EXPECT_EQ(interpolation->requests_at(1)->batch_size, 1);
    EXPECT_THAT(traced, testing::ElementsAre(4, 32, 256, 1));
}

TEST(BatchInterpolation, IsExactAtEveryBatchOfAnAffineStep) {
    const auto source = tests::toy_source();
    auto interpolation = BatchInterpolation::trace({tests::toy_workload()}, source);
    ASSERT_TRUE(interpolation);
    for (const int64_t batch_size : {1, 2, 3, 8, 9, 31, 200}) {
        models::Workload workload = tests::toy_workload();
        workload.batch_size = batch_size;
        const auto traced = step_work_of(tests::make_toy_step(workload));
        const auto interpolated = interpolation->requests_at(batch_size);
        ASSERT_EQ(interpolated->allocations.size(), traced->allocations.size());
        for (std::size_t i = 0; i < traced->allocations.size(); ++i) {
            EXPECT_EQ(interpolated->allocations[i].size_bytes, traced->allocations[i].size_bytes);
        }
    }
}

/// A request more from batch 13 on, as scratch that a kernel takes for large inputs.
TEST(BatchInterpolation, TakesTheSequenceOfTheLargerAnchor) {
    const auto source = tests::toy_source({.extra_from_batch = 13});
    auto interpolation = BatchInterpolation::trace({tests::toy_workload()}, source);
    ASSERT_TRUE(interpolation);
    const auto allocations_at = [&](int64_t batch) {
        return interpolation->requests_at(batch)->allocations;
    };
    EXPECT_EQ(allocations_at(4).size() + 1, allocations_at(5).size());
    EXPECT_EQ(allocations_at(5).size(), allocations_at(32).size());
    ASSERT_TRUE(interpolation->trace_batch(12));
    EXPECT_EQ(allocations_at(12).size(), allocations_at(4).size());
    EXPECT_TRUE(interpolation->interpolates_ops());
}

TEST(BatchInterpolation, SeveralThreadsFindTheSame) {
    int calls = 0;
    const auto source = tests::toy_source({.extra_from_batch = 13}, &calls);
    auto alone = BatchInterpolation::trace({tests::toy_workload()}, source);
    ASSERT_TRUE(alone);
    EXPECT_EQ(calls, 2);
    auto together = BatchInterpolation::trace({tests::toy_workload()}, source,
                                              {.num_threads = 3, .later = {1}});
    ASSERT_TRUE(together);
    EXPECT_EQ(calls, 5);  // the third thread traced batch 1
    for (const int64_t mib : {20, 100, 40, 1000, 59}) {
        EXPECT_EQ(find_traced_max_batch(*together, {}, mib << 20).value(),
                  find_traced_max_batch(*alone, {}, mib << 20).value())
            << mib;
    }
    for (const int64_t batch_size : {1, 3, 12, 13, 100}) {
        EXPECT_EQ(together->unlimited_memory(batch_size, {})->peak_reserved_bytes,
                  alone->unlimited_memory(batch_size, {})->peak_reserved_bytes)
            << batch_size;
    }
}

TEST(BatchInterpolation, TracesItsOnlyBatchOnce) {
    int calls = 0;
    const StepSource toy = tests::toy_source({}, &calls);
    const StepSource source([&](const StepToTrace& step) { return toy(step); },
                            [](const models::Workload&) { return std::vector<int64_t>{4}; });
    EXPECT_TRUE(BatchInterpolation::trace({tests::toy_workload()}, source));
    EXPECT_EQ(calls, 1);
}

TEST(Plan, LeavesBusyCoresAlone) {
    std::atomic<int> now = 0, most = 0;
    const StepSource toy = tests::toy_source();
    const StepSource source = [&](const StepToTrace& step) {
        const int running = ++now;
        if (running > most) most = running;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        auto trace = toy(step);
        --now;
        return trace;
    };
    PlanRequest request = request_for({"original", "tempo"}, {"t4"});
    request.wants_memory_curve = true;
    request.busy_cores = 1000;
    EXPECT_TRUE(make_plan(request, data(), source).has_ok_row());
    EXPECT_EQ(most, 1);
}

TEST(Plan, SaysWhereTheSearchForABatchEnds) {
    Gpu gpu = *gpu_named("b200");
    gpu.usable_memory_bytes.value = 1e15;
    PlanRequest request = request_on({"original"}, gpu);
    request.workloads[0].seq_len = 1;
    request.workloads[0].model.intermediate_size = 64;
    const PlanRow row = plan(request).rows.front();
    EXPECT_EQ(row.max_batch_size, BatchInterpolation::kLargestBatch);
    EXPECT_THAT(row.notes,
                Contains(HasSubstr(
                    "not memory that limits the batch to 1048576. Larger ones were not tried")));
}

TEST(Plan, FillsEveryRow) {
    const Plan result = plan(request_for({"original", "tempo"}, {"t4", "a100-80gb"}));
    ASSERT_EQ(result.rows.size(), 4U);
    for (const PlanRow& row : result.rows) {
        ASSERT_EQ(row.status, PlanStatus::kOk) << row.reason;
        EXPECT_THAT(row.reason, IsEmpty());
        EXPECT_EQ(row.batch_size, row.max_batch_size);
        EXPECT_GT(row.sequences_per_s, 0);
        EXPECT_GE(row.best_sequences_per_s, row.sequences_per_s);
        EXPECT_LE(*row.best_batch_size, *row.max_batch_size);
        EXPECT_GT(row.model_tflops, 0);
        EXPECT_GE(row.memory->contents.peaks.peak_reserved_bytes,
                  row.memory->contents.peaks.peak_allocated_bytes);
        EXPECT_FALSE(row.curve.empty());
        EXPECT_EQ(row.curve.back().batch_size, *row.max_batch_size);
    }
    EXPECT_GT(*result.rows[2].max_batch_size, *result.rows[0].max_batch_size);  // tempo saves
    EXPECT_GT(*result.rows[1].max_batch_size, *result.rows[0].max_batch_size);  // 80 GB
}

TEST(Plan, FiguresAreAtTheBatchThatWasAskedFor) {
    PlanRequest request = request_for({"original"}, {"a100-80gb"});
    request.batch_size = 10;
    const PlanRow row = plan(request).rows.front();
    EXPECT_EQ(row.batch_size, 10);
    const auto work = step_work_of(tests::make_toy_step(tests::toy_workload(10))).value();
    EXPECT_EQ(row.memory->contents.peaks.peak_allocated_bytes,
              simulate_step(work, {.cublas_workspace_bytes = 8519680}, std::nullopt)
                  .peak_allocated_bytes);
    const auto model =
        make_time_model(*gpu_named("a100-80gb"), row.environment, data().calibration, row.workload);
    EXPECT_NEAR(row.time->total_ns(), time_of(work, *model).total_ns(), 1e-6);
    EXPECT_NEAR(row.sequences_per_s, 10 / (row.time->total_ns() / 1e9), 1e-6);
    EXPECT_NEAR(row.model_tflops, static_cast<double>(work.model_flop) / row.time->total_ns() / 1e3,
                1e-9);
}

TEST(Plan, SaysByHowMuchABatchDoesNotFitAndWhatWould) {
    const Gpu gpu = small_gpu(64 << 20);
    PlanRequest request = request_on({"original", "checkpoint"}, gpu);
    const Plan free_batch = plan(request);
    ASSERT_EQ(free_batch.rows[0].status, PlanStatus::kOk);
    request.batch_size = *free_batch.rows[0].max_batch_size + 1;
    ASSERT_LE(*request.batch_size, *free_batch.rows[1].max_batch_size);
    const Plan result = plan(request);
    const PlanRow& row = result.rows[0];
    EXPECT_EQ(row.status, PlanStatus::kDoesNotFit);
    EXPECT_THAT(row.reason, HasSubstr("more than small has"));
    EXPECT_THAT(row.reason, HasSubstr("fits."));
    EXPECT_THAT(row.reason, HasSubstr("The recipe checkpoint would fit."));
    EXPECT_FALSE(row.memory);
    EXPECT_EQ(result.rows[1].status, PlanStatus::kOk);
    EXPECT_TRUE(result.has_ok_row());
}

TEST(Plan, ACardThatHoldsNotOneSequenceStopsNothing) {
    const Gpu gpu = small_gpu(10 << 20);
    PlanRequest request = request_for({"original"}, {"t4"});
    request.gpus.push_back(&gpu);
    const Plan result = plan(request);
    EXPECT_EQ(result.rows[0].status, PlanStatus::kOk);
    EXPECT_EQ(result.rows[1].status, PlanStatus::kDoesNotFit);
    EXPECT_EQ(result.rows[1].max_batch_size, 0);
    EXPECT_THAT(result.rows[1].reason, HasSubstr("Batch 1 needs"));
    EXPECT_THAT(result.rows[1].reason, HasSubstr("Nor would checkpoint, tempo-philox, "
                                                 "checkpoint,optimizer=adamw_fused or "
                                                 "checkpoint,optimizer=sgd fit."));
    request.gpus = {&gpu};
    request.budget_bytes = 300 << 20;  // less than the context
    EXPECT_THAT(plan(request).rows.front().reason, Not(HasSubstr("would")));
}

TEST(Plan, RefusesWhatPyTorchRefuses) {
    const auto reason = [](const std::string& recipe, models::Precision precision,
                           const std::string& gpu) {
        PlanRequest request = request_for({recipe}, {gpu});
        request.workloads[0].precision = precision;
        const PlanRow row = plan(request).rows.front();
        EXPECT_EQ(row.status, row.reason.empty() ? PlanStatus::kOk : PlanStatus::kNotSupported);
        return row.reason;
    };
    using models::Precision;
    EXPECT_THAT(reason("flash", Precision::kFp16, "v100-16gb"), HasSubstr("capability 8.0"));
    EXPECT_THAT(reason("flash", Precision::kFp32, "a100-80gb"), HasSubstr("no fp32 kernel"));
    EXPECT_THAT(reason("flash", Precision::kFp16, "a100-80gb"), IsEmpty());
    EXPECT_THAT(reason("original", Precision::kBf16, "rtx2080ti"), HasSubstr("no bf16"));
    EXPECT_THAT(reason("original", Precision::kTf32, "t4"), HasSubstr("no tf32"));
    EXPECT_THAT(reason("original", Precision::kFp64, "a100-80gb"), HasSubstr("reference"));
    EXPECT_THAT(reason("original", Precision::kFp16, "v100-16gb"), IsEmpty());
}

TEST(Plan, CardsWithoutCudaRefuseWhatIsNvidiasOwn) {
    const auto row = [](const std::string& recipe, models::Precision precision) {
        PlanRequest request = request_for({recipe}, {"mi300x"});
        request.workloads[0].precision = precision;
        return plan(request).rows.front();
    };
    using models::Precision;
    EXPECT_THAT(row("attention=cudnn", Precision::kBf16).reason, HasSubstr("no cuDNN"));
    EXPECT_THAT(row("original", Precision::kTf32).reason, HasSubstr("no tf32"));
    EXPECT_EQ(row("flash", Precision::kBf16).status, PlanStatus::kOk);
    EXPECT_THAT(row("original", Precision::kFp32).notes,
                Contains(HasSubstr("not from this device's kernels")));
}

TEST(Plan, SaysWhereACardsOwnRateIsNotKnown) {
    Gpu gpu = *gpu_named("a100-80gb");
    gpu.id = "mine";
    gpu.peak_flop_per_s[static_cast<std::size_t>(MatmulType::kBf16)].reset();
    PlanRequest request = request_on({"original"}, gpu);
    request.workloads[0].precision = models::Precision::kBf16;
    EXPECT_THAT(plan(request).rows.front().notes,
                Contains(HasSubstr("the bf16 rate is not known: the fp32 rate is assumed")));
}

TEST(Plan, OlderCardsNameTheSetupThatIsAssumed) {
    const PlanRow row = plan(request_for({"original"}, {"v100-16gb"})).rows.front();
    EXPECT_EQ(row.environment.id, "tempo-2022");
    EXPECT_THAT(row.notes, Contains(HasSubstr("tempo-2022 is assumed")));
}

TEST(Plan, CardsWithoutAKernelModelGetMemoryOnly) {
    const PlanRow row = plan(request_for({"original"}, {"mi300x"})).rows.front();
    EXPECT_EQ(row.status, PlanStatus::kOk);
    EXPECT_GT(*row.max_batch_size, 0);
    EXPECT_TRUE(row.memory);
    EXPECT_FALSE(row.time);
    EXPECT_FALSE(row.best_batch_size);
    EXPECT_THAT(row.notes, Contains(HasSubstr("memory only")));
}

TEST(Plan, ABudgetHoldsForContextAndTensors) {
    PlanRequest request = request_for({"original"}, {"a100-80gb"});
    request.budget_bytes = (500 << 20) + (64 << 20);
    const PlanRow budget = plan(request).rows.front();
    const Gpu gpu = small_gpu(64 << 20);
    request.budget_bytes.reset();
    request.gpus = {&gpu};
    EXPECT_EQ(budget.max_batch_size, plan(request).rows.front().max_batch_size);
}

TEST(Plan, SeveralGpusAddTheirThroughputsAndTheirTerms) {
    PlanRequest request = request_for({"original"}, {"v100-16gb"});
    request.batch_size = 64;
    const PlanRow one = plan(request).rows.front();
    request.parallel = {.num_gpus = 4};
    const PlanRow ddp = plan(request).rows.front();
    EXPECT_GT(ddp.time->all_reduce_ns, 0);
    EXPECT_GT(ddp.sequences_per_s, one.sequences_per_s);
    EXPECT_LT(ddp.sequences_per_s, 4 * one.sequences_per_s);
    EXPECT_THAT(ddp.notes, Contains(HasSubstr("NVLink")));
    request.parallel.zero_stage = 2;
    const PlanRow four = plan(request).rows.front();
    EXPECT_LT(four.time->optimizer_ns, ddp.time->optimizer_ns);
    EXPECT_LT(
        four.memory->contents.by_category[static_cast<std::size_t>(Category::kOptimizerState)],
        one.memory->contents.by_category[static_cast<std::size_t>(Category::kOptimizerState)]);
    ASSERT_EQ(four.memory->terms.size(), 2U);
    EXPECT_EQ(four.memory->terms[1].name, "reduce_bucket_bytes");
}

/// The same forward and backward several times. Gradients are reduced beside the last one; ZeRO 2
/// shards them in each.
TEST(StepTime, ReducesTheGradientsOfMicroBatchesOnce) {
    const Gpu& gpu = *gpu_named("v100-16gb");
    const auto time_with = [&](int64_t micro_batches, int zero_stage) {
        StepWork step = step_work_of(make_toy_step(toy_workload(64))).value();
        step.micro_batches = micro_batches;
        for (StepOp& op : step.ops) op.count = micro_batches;
        const auto model =
            make_time_model(gpu, *environment_named("torch-2.11"), data().calibration,
                            toy_workload(), {.num_gpus = 4, .zero_stage = zero_stage}, 1e9);
        return time_of(step, model.value());
    };
    const StepTime one = time_with(1, 0);
    const StepTime four = time_with(4, 0);
    EXPECT_DOUBLE_EQ(four.backward.total_ns(), 4 * one.backward.total_ns());
    EXPECT_DOUBLE_EQ(four.optimizer_ns, one.optimizer_ns);
    ASSERT_GT(one.all_reduce_ns, 0);
    EXPECT_DOUBLE_EQ(four.all_reduce_ns, one.all_reduce_ns);
    EXPECT_DOUBLE_EQ(time_with(4, 2).all_reduce_ns, 4 * time_with(1, 2).all_reduce_ns);
}

TEST(Plan, CountsTheSequencesOfEveryMicroBatch) {
    PlanRequest request = request_for({"original"}, {"v100-16gb"});
    request.batch_size = 8;
    const PlanRow one = plan(request).rows.front();
    request.workloads.front().gradient_accumulation_steps = 3;  // a toy step runs only one
    const PlanRow three = plan(request).rows.front();
    EXPECT_DOUBLE_EQ(three.sequences_per_s, 3 * one.sequences_per_s);
    EXPECT_DOUBLE_EQ(three.best_sequences_per_s, 3 * one.best_sequences_per_s);
}

TEST(Plan, ASourceThatFailsIsTheRowsReason) {
    const StepSource source =
        [](const StepToTrace& step) -> models::Result<std::shared_ptr<const Trace>> {
        const models::Workload& workload = step.workload;
        if (workload.recipe_name == "tempo") return models::fail("The worker is missing.");
        return std::make_shared<const Trace>(tests::make_toy_step(workload));
    };
    const Plan result = make_plan(request_for({"tempo", "original"}, {"t4"}), data(), source);
    EXPECT_EQ(result.rows[0].status, PlanStatus::kNotSupported);
    EXPECT_EQ(result.rows[0].reason, "The worker is missing.");
    EXPECT_EQ(result.rows[1].status, PlanStatus::kOk);
    EXPECT_FALSE(make_plan(request_for({"tempo"}, {"t4"}), data(), source).has_ok_row());
}

TEST(StepTime, WaitsForTheHostWhereKernelsAreShort) {
    const auto work = step_work_of(tests::make_toy_step(tests::toy_workload(2))).value();
    const auto model = make_time_model(*gpu_named("a100-80gb"), *environment_named("torch-2.11"),
                                       data().calibration, tests::toy_workload(2));
    const StepTime time = time_of(work, *model);
    // Six forward ops of 19.6 µs, ten backward ones of 17.2 µs.
    EXPECT_NEAR(time.forward.total_ns(), 6 * 19600, 1e-6);
    EXPECT_NEAR(time.backward.total_ns(), 10 * 17200, 1e-6);
    EXPECT_GT(time.waiting_ns(), 0);
    // foreach AdamW: 84 bytes a parameter, no launches that count.
    EXPECT_NEAR(time.optimizer_ns, 84.0 * 4 * 64 * 256 / 1766e9 * 1e9, 1e-6);
}

TEST(StepTime, TheSetupChoosesTheOptimizer) {
    models::Workload workload = tests::toy_workload();
    EXPECT_EQ(optimizer_of(*environment_named("torch-2.11"), workload), "adamw");
    EXPECT_EQ(optimizer_of(*environment_named("tempo-2022"), workload), "bert_adam");
    workload.precision = models::Precision::kFp16;
    EXPECT_EQ(optimizer_of(*environment_named("tempo-2022"), workload), "apex_o2_adam");
    workload.precision = models::Precision::kPureFp16;
    EXPECT_EQ(optimizer_of(*environment_named("tempo-2022"), workload), "apex_o3_adam");
    workload.recipe.optimizer = models::Optimizer::kSgd;  // another algorithm, not another AdamW
    EXPECT_EQ(optimizer_of(*environment_named("tempo-2022"), workload), "sgd");
    EXPECT_FALSE(find_optimizer(data().calibration, "lion", OptimizerState::kFp32));
}

TEST(Plan, TracesTheOptimizerOfTheSetup) {
    std::set<std::string> traced;
    const StepSource source = noting_source(
        [&](const StepToTrace& step) { traced.insert(models::to_text(step.workload.recipe)); });
    PlanRequest request = request_for({"original"}, {"t4", "v100-16gb", "a100-80gb"});
    request.workloads[0].precision = models::Precision::kFp32;
    request.traces_each_gpu = false;
    std::vector<std::size_t> totals;
    const Plan result = make_plan(
        request, data(), source,
        [&](std::size_t, std::size_t total, const models::Workload&) { totals.push_back(total); });
    // foreach AdamW for two of the GPUs, BertAdam, a loop over tensors, for the older one.
    EXPECT_THAT(traced, testing::ElementsAre("optimizer=adamw_loop", "original"));
    EXPECT_THAT(totals, testing::ElementsAre(2, 2));
    for (const PlanRow& row : result.rows) EXPECT_EQ(row.workload.recipe, models::Recipe());
}

TEST(Plan, TracesEachGpuAtItsLargestBatch) {
    std::set<std::pair<std::string, int64_t>> traced;
    const StepSource source = noting_source(
        [&](const StepToTrace& step) { traced.emplace(step.gpu, step.workload.batch_size); });
    PlanRequest request = request_for({"original"}, {"t4", "a100-80gb"});
    request.budget_bytes = int64_t{1} << 30;
    const Plan result = make_plan(request, data(), source);
    for (const PlanRow& row : result.rows) {
        ASSERT_EQ(row.status, PlanStatus::kOk) << row.reason;
        EXPECT_TRUE(traced.contains({row.gpu.id, *row.max_batch_size}));
        EXPECT_TRUE(traced.contains({row.gpu.id, *row.max_batch_size + 1}));
    }
}

TEST(Calibration, HasARowForEveryOptimizerThatASetupNames) {
    for (const auto& environment : data().environments) {
        for (const models::Precision precision :
             {models::Precision::kFp32, models::Precision::kFp16, models::Precision::kAmpBf16,
              models::Precision::kPureFp16}) {
            for (const char* recipe :
                 {"optimizer=sgd", "original", "optimizer=adamw_loop", "optimizer=adamw_fused"}) {
                models::Workload workload = with_recipe(recipe);
                workload.precision = precision;
                EXPECT_TRUE(find_optimizer(data().calibration, optimizer_of(environment, workload),
                                           optimizer_state_of(precision)))
                    << environment.id << " " << recipe;
            }
        }
    }
}

TEST(Plan, HasAMemoryCurveWhereItIsWanted) {
    const Gpu gpu = small_gpu(256 << 20);
    PlanRequest request = request_on({"original"}, gpu);
    EXPECT_TRUE(plan(request).rows[0].memory_curve.empty());
    request.wants_memory_curve = true;
    const Plan planned = plan(request);
    const std::vector<MemoryPoint>& curve = planned.rows[0].memory_curve;
    ASSERT_GE(curve.size(), 3U);
    EXPECT_EQ(curve.front().batch_size, 1);
    EXPECT_EQ(curve.back().batch_size, planned.rows[0].max_batch_size);
    EXPECT_LT(curve.front().needed_bytes, curve.back().needed_bytes);
    EXPECT_LE(curve.back().needed_bytes, planned.rows[0].memory->usable_bytes);
}

TEST(Plan, TheMemoryCurveHoldsTheGapsToo) {
    const Gpu gpu = small_gpu(256 << 20);
    PlanRequest request = request_on({"original"}, gpu);
    request.wants_memory_curve = true;
    const PlanRow row = plan(request).rows[0];
    const auto& point = std::ranges::max(row.memory_curve, {}, &MemoryPoint::gap_bytes);
    EXPECT_GT(point.gap_bytes, 0);
    request.wants_memory_curve = false;
    request.batch_size = point.batch_size;
    // The step fits in what the curve says, and not in 2 MiB less.
    request.budget_bytes = point.needed_bytes;
    EXPECT_EQ(plan(request).rows[0].status, PlanStatus::kOk);
    request.budget_bytes = point.needed_bytes - (2 << 20);
    EXPECT_EQ(plan(request).rows[0].status, PlanStatus::kDoesNotFit);
}

}  // namespace
