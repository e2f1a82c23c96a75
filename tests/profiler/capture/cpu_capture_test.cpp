#include "profiler/capture/cpu_capture.h"

#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/capture/tracking_allocator.h"
#include "tests/profiler/capture/small_workload.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>

namespace profiler {
namespace {

using models::Workload;
using tests::small;

Trace capture(const Workload& workload,
              const CaptureOptions& options = {.steps = 2, .num_threads = 1}) {
    Trace trace;
    capture_on_cpu(workload, options, {}, trace);
    return trace;
}

/// torch's own accounting of its CPU allocator, which stands under ours: the live bytes after each
/// of its allocations and frees.
class TorchAccounting final : public c10::MemoryReportingInfoBase {
public:
    void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override {
        constexpr int64_t kHeader = TrackingAllocator::kHeaderBytes;
        live += size > 0 ? size - kHeader : size + kHeader;
        history.push_back(live);
    }
    bool memoryProfilingEnabled() const override { return true; }
    int64_t live = 0;
    std::vector<int64_t> history;
};

TEST(CpuCapture, LiveBytesAtAnyTimeAreWhatTorchItselfCounts) {
    TrackingAllocator& allocator = TrackingAllocator::instance();
    const int64_t before = allocator.allocated_bytes();
    auto accounting = std::make_shared<TorchAccounting>();
    Trace trace;
    int64_t live_at_step = -1;
    {
        c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, accounting);
        capture_on_cpu(small(), {.warmup_steps = 0, .steps = 1},
                       {.step_done = [&] { live_at_step = allocator.allocated_bytes(); }}, trace);
    }
    ASSERT_FALSE(accounting->history.empty());
    // Per event, from the first recorded one on: the trace's sum of live allocations.
    std::map<int64_t, int64_t> change;
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        change[a.alloc_event] += a.requested_bytes;
        if (a.free_requested_event >= 0) change[a.free_requested_event] -= a.requested_bytes;
    }
    std::vector<int64_t> live;
    int64_t sum = 0;
    for (const auto& [event, bytes] : change) live.push_back(sum += bytes);
    // Blocks live at the start come first, in one run; what follows must be a part of torch's own
    // history, event for event.
    const int64_t first = trace.steps.get<&Step::first_event>(Id<Step>(0));
    const std::vector<int64_t> recorded(live.begin() + first, live.end());
    std::vector<int64_t> counted = accounting->history;
    for (int64_t& bytes : counted) bytes += before;
    EXPECT_NE(std::search(counted.begin(), counted.end(), recorded.begin(), recorded.end()),
              counted.end());
    EXPECT_GT(recorded.size(), 100U);
    EXPECT_GT(live_at_step, 0);
}

TEST(CpuCapture, WaitsForItsTurnBeforeEachStepAndLeavesTheWaitOutOfTheTrace) {
    constexpr std::chrono::milliseconds kWait(200);
    int turns = 0;
    Trace trace;
    capture_on_cpu(small(), {.steps = 3, .num_threads = 1},
                   {.wait_for_turn =
                        [&] {
                            ++turns;
                            std::this_thread::sleep_for(kWait);
                            return Turn{.run = "7", .recipes = 2};
                        }},
                   trace);
    EXPECT_EQ(turns, 3);
    const auto software = nlohmann::json::parse(trace.text(trace.run().software));
    EXPECT_EQ(software["measured_in_turn"], (nlohmann::json{{"run", "7"}, {"recipes", 2}}));
    EXPECT_FALSE(has_note(trace, "not_in_turn"));
    const auto wall_s = trace.counters.column<&Counter::value>();
    const auto start_ns = trace.steps.column<&Step::start_ns>();
    ASSERT_EQ(wall_s.size(), 3U);
    for (std::size_t i = 1; i < 3; ++i) {
        const double wall_ns = (wall_s[i] - wall_s[i - 1]) * 1e9;
        const auto traced_ns = static_cast<double>(start_ns[i] - start_ns[i - 1]);
        // The two clocks are read one after the other: a busy machine may pause between them.
        EXPECT_GE(wall_ns - traced_ns, 1e6 * kWait.count() / 2);
    }
}

TEST(CpuCapture, NotesThatARecipeRanAlone) {
    Trace trace;
    capture_on_cpu(small(), {.steps = 2, .num_threads = 1},
                   {.wait_for_turn = [] { return Turn{.run = "7", .recipes = 1}; }}, trace);
    EXPECT_TRUE(has_note(trace, "not_in_turn"));
}

TEST(CpuCapture, ASweepWaitsForItsTurnBeforeEachStep) {
    int turns = 0;
    Trace trace;
    sweep_on_cpu(small(), {.num_threads = 1}, {.batch_sizes = {1, 2}, .steps = 2},
                 {.wait_for_turn = [&] { return Turn{.run = "7", .recipes = 1 + ++turns}; }},
                 trace);
    EXPECT_EQ(turns, 6) << "a warm-up step and two samples of each batch";
}

TEST(CpuCapture, LeavesNothingBehind) {
    const int64_t before = TrackingAllocator::instance().allocated_bytes();
    capture(small("tempo"));
    // torch's own small constants may stay; a leaked graph would not be small.
    EXPECT_LT(TrackingAllocator::instance().allocated_bytes() - before, 4096);
}

TEST(CpuCapture, EveryStepAllocatesTheSame) {
    const Trace trace = capture(small("tempo"), {.steps = 3});
    ASSERT_EQ(trace.steps.size(), 3U);
    std::vector<std::vector<int64_t>> sizes(3);
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        for (std::size_t s = 0; s < 3; ++s) {
            const Step step = trace.steps[Id<Step>(s)];
            if (a.alloc_event >= step.first_event && a.alloc_event < step.last_event) {
                sizes[s].push_back(a.requested_bytes);
            }
        }
    }
    EXPECT_EQ(sizes[0], sizes[1]);
    EXPECT_EQ(sizes[1], sizes[2]);
    EXPECT_GT(sizes[0].size(), 50U);
}

TEST(CpuCapture, AllSavedActivationsAreReleasedByTheEndOfBackward) {
    const Trace trace = capture(small("tempo-packed"));
    ASSERT_GT(trace.saves.size(), 20U);
    for (const int64_t event : trace.saves.column<&Save::released_event>()) EXPECT_GE(event, 0);
}

TEST(CpuCapture, KnowsParametersGradientsAndOptimizerStateByTheirNames) {
    const Trace trace = capture(small());
    std::map<Category, int64_t> bytes;
    std::set<std::string> names;
    for (std::size_t i = 0; i < trace.storages.size(); ++i) {
        const Storage storage = trace.storages[Id<Storage>(i)];
        bytes[storage.category] += storage.size_bytes;
    }
    for (const StringId name : trace.tensors.column<&Tensor::name>())
        names.emplace(trace.text(name));
    EXPECT_GT(bytes[Category::kParameter], 0);
    EXPECT_EQ(bytes[Category::kOptimizerState],
              2 * bytes[Category::kParameter]);                              // m and v in fp32
    EXPECT_EQ(bytes[Category::kGradient], 2 * bytes[Category::kParameter]);  // two recorded steps
    EXPECT_TRUE(names.contains("encoder.layer.1.attention.self.query.weight"));
    EXPECT_TRUE(names.contains("encoder.layer.1.attention.self.query.weight.grad"));
    EXPECT_TRUE(names.contains("encoder.layer.1.attention.self.query.weight.exp_avg"));
}

TEST(CpuCapture, CastsAreNamedAfterTheirSources) {
    Workload workload = small();
    workload.precision = models::Precision::kAmpBf16;
    const Trace trace = capture(workload);
    std::set<std::string> names;
    for (const StringId name : trace.tensors.column<&Tensor::name>())
        names.emplace(trace.text(name));
    EXPECT_TRUE(names.contains("query.weight cast"));
    EXPECT_TRUE(names.contains("hidden_states cast"));
    for (const std::string& name : names) {
        EXPECT_FALSE(name.starts_with('_')) << name;
        EXPECT_FALSE(name.ends_with(" cast cast") || name == " cast") << name;
    }
}

TEST(CpuCapture, BackwardOpsPointToTheirForwardOpAndItsModule) {
    const Trace trace = capture(small(), {.steps = 1});
    int linked = 0, backward = 0;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        const std::string_view name = trace.text(op.name);
        if (!name.ends_with("Backward0") || name.starts_with("autograd::")) continue;
        ++backward;
        linked += op.forward.valid() && op.forward < Id<Op>(i);
    }
    EXPECT_GT(backward, 30);
    EXPECT_EQ(linked, backward);
}

TEST(CpuCapture, PhasesFollowEachOtherInsideTheirStep) {
    const Trace trace = capture(small(), {.steps = 1});
    ASSERT_EQ(trace.phases.size(), 4U);
    const Step step = trace.steps[Id<Step>(0)];
    int64_t event = step.first_event;
    for (std::size_t i = 0; i < 4; ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
        EXPECT_EQ(phase.kind, static_cast<PhaseKind>(i));
        EXPECT_GE(phase.first_event, event);
        EXPECT_LE(phase.first_event, phase.last_event);
        EXPECT_GE(phase.start_ns, step.start_ns);
        EXPECT_LE(phase.end_ns, step.end_ns);
        event = phase.last_event;
    }
}

TEST(CpuCapture, AMemoryLimitBecomesAnOutOfMemoryError) {
    Trace trace;
    const int64_t limit = TrackingAllocator::instance().allocated_bytes() + (1 << 20);
    EXPECT_THROW(capture_on_cpu(small(), {.memory_limit_bytes = limit}, {}, trace),
                 c10::OutOfMemoryError);
    EXPECT_GT(TrackingAllocator::instance().last_out_of_memory().requested_bytes, 0);
}

TEST(CpuCapture, CancellingEndsItBetweenTwoPhases) {
    Trace trace;
    int asked = 0;
    const CaptureCallbacks callbacks{.cancelled = [&] { return ++asked > 5; }};
    EXPECT_THROW(capture_on_cpu(small(), {}, callbacks, trace), Cancelled);
}

TEST(SweepOnCpu, FindsTheLargestBatchThatFitsTheLimit) {
    Workload w = small();
    const int64_t peak_of_8 = [&] {
        Trace trace;
        sweep_on_cpu(w, {}, {.batch_sizes = {8}, .steps = 1}, {}, trace);
        return trace.sweep_points.get<&SweepPoint::peak_allocated_bytes>(Id<SweepPoint>(0));
    }();
    Trace trace;
    sweep_on_cpu(w, {.memory_limit_bytes = peak_of_8}, {.steps = 1}, {}, trace);
    int64_t largest = 0, smallest_failing = 1 << 20;
    for (std::size_t i = 0; i < trace.sweep_points.size(); ++i) {
        const SweepPoint point = trace.sweep_points[Id<SweepPoint>(i)];
        if (point.outcome == SweepOutcome::kOk) {
            largest = std::max(largest, point.batch_size);
        } else {
            smallest_failing = std::min(smallest_failing, point.batch_size);
            EXPECT_GT(point.requested_bytes, point.free_bytes);
        }
    }
    EXPECT_EQ(largest, 8);
    EXPECT_EQ(smallest_failing, 9);
    EXPECT_FALSE(trace.sweep_samples.empty());
}

TEST(CpuCapture, BackwardOpsOfCheckpointedLayersHaveAModuleAndAForwardOp) {
    const Trace trace = capture(small("checkpoint"), {.steps = 1});
    int64_t matrix_products = 0;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        if (trace.text(op.name) != "AddmmBackward0") continue;
        ++matrix_products;
        EXPECT_TRUE(op.forward.valid());
        EXPECT_TRUE(op.module_path.valid());
    }
    EXPECT_GE(matrix_products, 2 * 6);
}

TEST(CpuCapture, ASecondCaptureOfAProcessHasItsOwnThreads) {
    capture(small(), {.steps = 1});
    const Trace trace = capture(small(), {.steps = 1});
    ASSERT_GT(trace.threads.size(), 0U);
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        ASSERT_LT(trace.ops.get<&Op::thread>(Id<Op>(i)).index(), trace.threads.size());
    }
}

TEST(CpuCapture, WarmsUpUntilTheOptimizerOfHalfPrecisionHasRun) {
    Workload w = small();
    w.head = models::Head::kLayers;
    w.precision = models::Precision::kFp16;
    const Trace trace = capture(w, {.steps = 1});
    int64_t optimizer_bytes = 0;
    for (std::size_t i = 0; i < trace.storages.size(); ++i) {
        const Storage storage = trace.storages[Id<Storage>(i)];
        if (storage.category == Category::kOptimizerState) optimizer_bytes += storage.size_bytes;
    }
    EXPECT_GT(optimizer_bytes, 0);
    for (std::size_t i = 0; i < trace.diagnostics.size(); ++i) {
        EXPECT_NE(trace.text(trace.diagnostics.get<&Diagnostic::code>(Id<Diagnostic>(i))),
                  "update_skipped");
    }
}

TEST(TrackingAllocator, ARefusalOfTheSystemIsOutOfMemory) {
    TrackingAllocator& allocator = TrackingAllocator::instance();
    const int64_t before = allocator.allocated_bytes();
    EXPECT_THROW(allocator.allocate(size_t{1} << 60), c10::OutOfMemoryError);
    EXPECT_EQ(allocator.last_out_of_memory().requested_bytes, int64_t{1} << 60);
    EXPECT_EQ(allocator.last_out_of_memory().free_bytes, -1);
    EXPECT_EQ(allocator.allocated_bytes(), before);
}

/// Takes no block, and sees what becomes of the stack.
class FailingListener final : public AllocationListener {
public:
    void on_alloc(BlockHeader& block, int64_t) override {
        had_stack = block.stack != nullptr;
        stack = block.stack;
        throw std::bad_alloc();
    }
    void on_free(const BlockHeader&) override {}
    void on_out_of_memory(const Refusal&) override {}
    LockedMoment next_action() override { return {.lock = lock_rows(), .moment = {}}; }
    void add_failure(const Refusal&, const AllocatorMoment&) override {}
    std::unique_lock<std::mutex> lock_rows() override { return std::unique_lock(mutex_); }

    bool had_stack = false;
    std::weak_ptr<torch::CapturedTraceback> stack;

private:
    std::mutex mutex_;
};

TEST(TrackingAllocator, ABlockThatTheListenerCannotTakeLeavesNothing) {
    TrackingAllocator& allocator = TrackingAllocator::instance();
    const int64_t before = allocator.allocated_bytes();
    FailingListener listener;
    allocator.gather_stacks([] { return true; });
    allocator.set_listener(&listener);
    EXPECT_THROW(allocator.allocate(1 << 16), std::bad_alloc);
    allocator.set_listener(nullptr);
    allocator.gather_stacks(nullptr);
    EXPECT_TRUE(listener.had_stack);
    EXPECT_TRUE(listener.stack.expired());
    EXPECT_EQ(allocator.allocated_bytes(), before);
}

}  // namespace
}  // namespace profiler
