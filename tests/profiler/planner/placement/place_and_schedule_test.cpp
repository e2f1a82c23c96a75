#include "profiler/planner/placement/place_and_schedule.h"

#include "profiler/allocator/sizes.h"
#include "profiler/analysis/ops/gpu_time.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/memory_curve.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/placement/kernel_schedule.h"
#include "profiler/planner/step/step_memory.h"
#include "profiler/planner/step/step_time.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/profiler/planner/toy_step.h"
#include "tests/profiler/trace/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace {

using namespace profiler;

const PlannerData& data() { return built_in_planner_data(); }
const Gpu& gpu_named(std::string_view id) { return **find_gpu(data().gpus, id); }
const profiler::SoftwareEnvironment& today() {
    return **find_environment(data().environments, "torch-2.11");
}

Trace lower_toy(int64_t batch_size = 64, std::string_view gpu = "a100-80gb",
                const AllocatorSettings& settings = {}, int num_steps = 2) {
    const Trace meta =
        tests::make_toy_step(tests::toy_workload(batch_size), {.num_steps = num_steps});
    auto lowered = place_and_schedule(meta, gpu_named(gpu), settings, data().calibration, today());
    EXPECT_TRUE(lowered) << lowered.error().message;
    return std::move(*lowered);
}

TEST(Lower, SaysWhatItIs) {
    const Trace trace = lower_toy();
    EXPECT_EQ(trace.run().source, Source::kPredicted);
    EXPECT_EQ(trace.run().time_basis, TimeBasis::kModelled);
    EXPECT_EQ(trace.text(trace.run().device_name), "NVIDIA A100 80 GB SXM with torch-2.11");
    EXPECT_EQ(trace.devices.get<&Device::total_bytes>(Id<Device>(0)),
              static_cast<int64_t>(79.2 * 0x1p30));
}

TEST(Lower, AllocatesWhatWasAskedFor) {
    const Trace meta = tests::make_toy_step(tests::toy_workload(64), {.num_steps = 2});
    const Trace trace = lower_toy();
    ASSERT_EQ(trace.allocations.size(), meta.allocations.size());
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation row = trace.allocations[Id<Allocation>(i)];
        EXPECT_EQ(row.requested_bytes, meta.allocations[Id<Allocation>(i)].requested_bytes);
        // The large pool does not split off less than 1 MiB.
        const int64_t rounded = round_size(row.requested_bytes, {});
        EXPECT_GE(row.block_bytes, rounded);
        EXPECT_LE(row.block_bytes, rounded + kMiB);
    }
    const PeakReport before = find_peak(meta);
    const PeakReport after = find_peak(trace);
    EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
    EXPECT_EQ(after.by_category, before.by_category);
    EXPECT_GE(after.reserved_bytes, after.allocated_bytes);
    EXPECT_EQ(build_ledger(trace).total_bytes, build_ledger(meta).total_bytes);
}

TEST(Lower, BlocksLieInTheirSegmentsAndDoNotOverlap) {
    for (const bool expandable : {false, true}) {
        const Trace trace = lower_toy(64, "a100-80gb", {.expandable_segments = expandable});
        std::map<int64_t, std::pair<int64_t, int64_t>> events;  // event -> (row, is free)
        for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
            const Allocation row = trace.allocations[Id<Allocation>(i)];
            ASSERT_TRUE(row.segment.valid());
            EXPECT_LT(trace.allocator_events.get<&AllocatorEvent::event>(row.segment),
                      row.alloc_event);
            EXPECT_TRUE(events.emplace(row.alloc_event, std::pair(i, 0)).second);
            if (row.free_requested_event >= 0) {
                EXPECT_TRUE(events.emplace(row.free_requested_event, std::pair(i, 1)).second);
            }
        }
        std::map<int64_t, int64_t> live;  // address -> end
        for (const auto& [event, change] : events) {
            const Allocation row =
                trace.allocations[Id<Allocation>(static_cast<std::size_t>(change.first))];
            if (change.second == 1) {
                live.erase(row.address);
                continue;
            }
            const auto after = live.lower_bound(row.address);
            const int64_t end = row.address + row.block_bytes;
            EXPECT_LE(end, after == live.end() ? end : after->first);
            EXPECT_LE(after == live.begin() ? 0 : std::prev(after)->second, row.address);
            live[row.address] = row.address + row.block_bytes;
        }
    }
}

TEST(Lower, NumbersSegmentEventsBetweenTheOthers) {
    const Trace trace = lower_toy();
    ASSERT_FALSE(trace.allocator_events.empty());
    std::set<int64_t> events;
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation row = trace.allocations[Id<Allocation>(i)];
        EXPECT_TRUE(events.insert(row.alloc_event).second);
        if (row.free_requested_event >= 0) {
            EXPECT_TRUE(events.insert(row.free_requested_event).second);
        }
    }
    for (std::size_t i = 0; i < trace.allocator_events.size(); ++i) {
        EXPECT_TRUE(
            events.insert(trace.allocator_events.get<&AllocatorEvent::event>(Id<AllocatorEvent>(i)))
                .second);
    }
    // One counter, no holes.
    EXPECT_EQ(*events.begin(), 0);
    EXPECT_EQ(*events.rbegin(), static_cast<int64_t>(events.size()) - 1);
}

TEST(Lower, TimesAreOrderedAndInsideTheirPhases) {
    const Trace trace = lower_toy();
    int64_t last_end = 0;
    for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
        const Kernel kernel = trace.kernels[Id<Kernel>(i)];
        EXPECT_GE(kernel.start_ns, last_end);
        EXPECT_GT(kernel.end_ns, kernel.start_ns);
        last_end = kernel.end_ns;
        const Op op = trace.ops[kernel.op];
        EXPECT_LE(op.start_ns, kernel.start_ns);
        EXPECT_GE(op.end_ns, kernel.end_ns);
        const Phase phase = trace.phases[op.phase];
        EXPECT_LE(phase.start_ns, op.start_ns);
        EXPECT_GE(phase.end_ns, op.end_ns);
        if (op.parent.valid()) {
            EXPECT_LE(trace.ops[op.parent].start_ns, op.start_ns);
            EXPECT_GE(trace.ops[op.parent].end_ns, op.end_ns);
        }
    }
    std::map<int64_t, int64_t> by_event;
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation row = trace.allocations[Id<Allocation>(i)];
        by_event[row.alloc_event] = row.alloc_ns;
        if (row.free_requested_event >= 0)
            by_event[row.free_requested_event] = row.free_requested_ns;
    }
    int64_t last_ns = 0;
    for (const auto& [event, ns] : by_event) {
        EXPECT_GE(ns, last_ns) << event;
        last_ns = ns;
    }
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
        for (auto it = by_event.lower_bound(phase.first_event);
             it != by_event.lower_bound(phase.last_event); ++it) {
            EXPECT_GE(it->second, phase.start_ns);
            EXPECT_LE(it->second, phase.end_ns);
        }
    }
}

TEST(Lower, TheLaunchesOfAnOpShareItsTime) {
    const Trace modelled = lower_toy(64, "a100-80gb", {}, 1);
    const Kernel whole = modelled.kernels[Id<Kernel>(3)];
    Trace meta = tests::make_toy_step(tests::toy_workload(64), {.num_steps = 1});
    for (const char* name : {"first", "second"}) {
        meta.kernels.append(
            {.name = meta.strings.intern(name), .op = whole.op, .start_ns = -1, .end_ns = -1});
    }
    const auto trace =
        place_and_schedule(meta, gpu_named("a100-80gb"), {}, data().calibration, today());
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(trace->kernels.size(), modelled.kernels.size() + 1);
    const Kernel first = trace->kernels[Id<Kernel>(0)];
    const Kernel second = trace->kernels[Id<Kernel>(1)];
    EXPECT_EQ(trace->text(second.name), "second");
    EXPECT_EQ(first.start_ns, whole.start_ns);
    EXPECT_EQ(first.end_ns, second.start_ns);
    EXPECT_EQ(second.end_ns, whole.end_ns);
    EXPECT_EQ(trace->steps.get<&Step::end_ns>(Id<Step>(0)),
              modelled.steps.get<&Step::end_ns>(Id<Step>(0)));
}

TEST(Lower, AStepTakesWhatThePlannerSays) {
    const Trace trace = lower_toy();
    const auto workload = tests::toy_workload(64);
    const auto model =
        make_time_model(gpu_named("a100-80gb"), today(), data().calibration, workload).value();
    const StepTime time = time_of(step_work_of(tests::make_toy_step(workload)).value(), model);
    for (std::size_t i = 0; i < trace.steps.size(); ++i) {
        const Step step = trace.steps[Id<Step>(i)];
        EXPECT_NEAR(static_cast<double>(step.end_ns - step.start_ns), time.total_ns(), 2);
    }
}

// ---- communication ---------------------------------------------------------------------------

/// A step whose gradients two ranks add up, as DDP does: after `part` of backward's time, beside
/// the rest of it, and before the update.
struct ReducedStep {
    explicit ReducedStep(double part) {
        trace = tests::make_toy_step(workload);
        time = time_of(step_work_of(trace).value(), model);
        const Id<Stream> computing = trace.streams.append({.device = profiled_device(trace)});
        const Id<Stream> talking =
            trace.streams.append({.device = profiled_device(trace), .handle = 1});
        const std::vector<Id<Op>> backward = kernel_ops(PhaseKind::kBackward);
        const auto last = static_cast<std::size_t>(part * static_cast<double>(backward.size() - 1));
        for (const Id<Op> op : backward) {
            const Id<Kernel> kernel = trace.kernels.append({.stream = computing, .op = op});
            if (op == backward[last]) reduce_after(kernel, talking);
        }
        const Id<Kernel> update = trace.kernels.append(
            {.stream = computing, .op = kernel_ops(PhaseKind::kOptimizer).front()});
        trace.stream_waits.append({.kernel = update, .awaited_kernel = reduced});
    }

    /// Ops that the schedule gives a kernel.
    std::vector<Id<Op>> kernel_ops(PhaseKind kind) {
        Trace alone = trace;
        alone.kernels = {};
        add_modelled_times(alone, step_work_of(alone).value(), model);
        std::vector<Id<Op>> ops;
        for (const Id<Op> op : alone.kernels.column<&Kernel::op>()) {
            const Id<Phase> phase = alone.ops.get<&Op::phase>(op);
            if (alone.phases.get<&Phase::kind>(phase) == kind) ops.push_back(op);
        }
        return ops;
    }

    void reduce_after(Id<Kernel> kernel, Id<Stream> stream) {
        const Id<Phase> phase = trace.ops.get<&Op::phase>(trace.kernels.get<&Kernel::op>(kernel));
        const Id<Op> call =
            trace.ops.append({.name = trace.strings.intern("c10d::allreduce_"), .phase = phase});
        reduced = trace.kernels.append(
            {.name = trace.strings.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
             .stream = stream,
             .op = call});
        trace.stream_waits.append({.kernel = reduced, .awaited_kernel = kernel});
        const Id<Communicator> two =
            trace.communicators.append({.num_ranks = 2, .ranks = trace.strings.intern("[0, 1]")});
        trace.collectives.append({.op = call,
                                  .kernel = reduced,
                                  .communicator = two,
                                  .kind = CollectiveKind::kAllReduce,
                                  .in_bytes = kReducedBytes,
                                  .out_bytes = kReducedBytes});
    }

    /// Of the kernels of backward that follow the one that the all-reduce waits for.
    double backward_after_ns() const {
        const Kernel awaited = trace.kernels[trace.stream_waits[Id<StreamWait>(0)].awaited_kernel];
        double sum_ns = 0;
        for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
            const Kernel kernel = trace.kernels[Id<Kernel>(i)];
            const Id<Phase> phase = trace.ops.get<&Op::phase>(kernel.op);
            const bool counts = kernel.stream == awaited.stream &&
                                kernel.start_ns >= awaited.end_ns &&
                                trace.phases.get<&Phase::kind>(phase) == PhaseKind::kBackward;
            if (counts) sum_ns += static_cast<double>(kernel.end_ns - kernel.start_ns);
        }
        return sum_ns;
    }

    double step_ns() {
        add_modelled_times(trace, step_work_of(trace).value(), model);
        const Step step = trace.steps[Id<Step>(0)];
        return static_cast<double>(step.end_ns - step.start_ns);
    }

    static constexpr int64_t kReducedBytes = int64_t{2} << 30;
    models::Workload workload = tests::toy_workload(4000);
    TimeModel model = [this] {
        auto made =
            make_time_model(gpu_named("a100-80gb"), today(), data().calibration, workload).value();
        made.communication = CommunicationModel(data().calibration, "a100-80gb");
        return made;
    }();
    Trace trace;
    StepTime time;
    Id<Kernel> reduced;
};

/// The step grows by what the rest of backward is too short to hide.
TEST(Communicates, BackwardHidesWhatRunsBesideIt) {
    double last_ns = std::numeric_limits<double>::infinity();
    for (const double part : {1.0, 0.5, 0.0}) {
        ReducedStep step(part);
        ASSERT_EQ(step.time.waiting_ns(), 0) << "the host is ahead";
        const double transfer_ns = step.model.communication->time_ns(
            CollectiveKind::kAllReduce, ReducedStep::kReducedBytes,
            {.num_ranks = 2, .num_nodes = 1, .most_on_node = 2});
        const double step_ns = step.step_ns();
        const double exposed_ns = std::max(0.0, transfer_ns - step.backward_after_ns());
        EXPECT_NEAR(step_ns, step.time.total_ns() + exposed_ns, 5) << part;
        const std::optional<GpuTime> time = gpu_time_of(step.trace, last_whole_step(step.trace));
        ASSERT_TRUE(time);
        EXPECT_NEAR(static_cast<double>(*time->communication_ns), transfer_ns, 2) << part;
        EXPECT_NEAR(static_cast<double>(*time->exposed_communication_ns), exposed_ns, 5) << part;
        EXPECT_LT(step_ns, last_ns);
        last_ns = step_ns;
    }
}

TEST(Communicates, ACallLastsNoLongerThanItsLaunch) {
    ReducedStep step(0.5);
    step.step_ns();
    const Op call = step.trace.ops[step.trace.kernels.get<&Kernel::op>(step.reduced)];
    EXPECT_EQ(call.end_ns, call.start_ns);
}

TEST(Lower, TakesTheMemoryThatThePlannerSays) {
    const auto workload = tests::toy_workload(64);
    const Trace meta = tests::make_toy_step(workload, {.warm_up_bytes = 0});
    const StepWork work = step_work_of(meta).value();
    for (const char* id : {"torch-2.11", "tempo-2022"}) {  // gradients freed, zeroed
        const auto& environment = **find_environment(data().environments, id);
        const auto trace =
            place_and_schedule(meta, gpu_named("a100-80gb"), {}, data().calibration, environment);
        ASSERT_TRUE(trace) << trace.error().message;
        const StepMemory planned =
            simulate_step(work, {.gradients = environment.gradients}, std::nullopt);
        EXPECT_EQ(find_peak(*trace).reserved_bytes, planned.peak_reserved_bytes) << id;
        int64_t live_gradients = 0;
        for (std::size_t i = 0; i < trace->allocations.size(); ++i) {
            const Allocation row = trace->allocations[Id<Allocation>(i)];
            const bool is_live = row.free_requested_event < 0;
            const Category category = trace->storages.get<&Storage::category>(row.storage);
            live_gradients += is_live && category == Category::kGradient ? 1 : 0;
            if (!is_live) {
                EXPECT_GT(row.free_requested_event, row.alloc_event);
            }
        }
        EXPECT_EQ(live_gradients, environment.gradients == Gradients::kZeroed ? 4 : 0) << id;
    }
}

TEST(Lower, TheCurveBeginsWithTheRecordedStep) {
    const Trace meta = tests::make_toy_step(tests::toy_workload(64), {.warm_up_bytes = 1 << 30});
    const auto trace =
        place_and_schedule(meta, gpu_named("a100-80gb"), {}, data().calibration, today());
    ASSERT_TRUE(trace) << trace.error().message;
    const MemoryCurve curve(*trace);
    EXPECT_EQ(curve.start_ns(), trace->steps.get<&Step::start_ns>(Id<Step>(std::size_t{0})));
    const auto bins = curve.sample(curve.start_ns(), curve.end_ns(), 1);
    EXPECT_EQ(bins.at(0).allocated_bytes, find_peak(*trace).allocated_bytes);
    EXPECT_EQ(
        curve.at(curve.start_ns()).by_category[static_cast<std::size_t>(Category::kParameter)],
        4 * 64 * 256 * 4);
}

TEST(Lower, TakesTheWorkspaceOfAHopper) {
    const Trace trace = lower_toy(2, "h100-sxm");
    EXPECT_EQ(trace.allocations.get<&Allocation::requested_bytes>(Id<Allocation>(0)), 33554432);
}

TEST(Lower, SaysThatAStepDoesNotFit) {
    // 40,000 sequences of four 32 KiB tensors a layer and more: above 11 GB.
    const Trace trace = lower_toy(60'000, "rtx2080ti", {}, 1);
    EXPECT_TRUE(has_note(trace, "does_not_fit"));
    EXPECT_GT(find_peak(trace).allocated_bytes,
              tensor_capacity_bytes(gpu_named("rtx2080ti"), today()));
}

TEST(Lower, SaysHowFarOffItsTimesMayBe) {
    EXPECT_EQ(time_error_of(lower_toy(2, "rtx3090")), 0.16);
    profiler::Calibration calibration = data().calibration;
    calibration.accuracy.push_back({{"rtx3090"}, {profiler::RateBasis::kOwn, 0.08}, "test"});
    const Trace meta = tests::make_toy_step(tests::toy_workload(2), {.num_steps = 1});
    const auto trace = place_and_schedule(meta, gpu_named("rtx3090"), {}, calibration, today());
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(time_error_of(*trace), 0.08);
}

TEST(Lower, WithoutAKernelModelKeepsTheOrderAsTime) {
    const Trace trace = lower_toy(2, "mi300x");
    EXPECT_EQ(time_error_of(trace), 0) << "it has no times";
    EXPECT_EQ(trace.run().time_basis, TimeBasis::kEventOrder);
    EXPECT_TRUE(trace.kernels.empty());
}

TEST(Lower, IsATraceLikeAnyOther) {
    const tests::TemporaryFolder folder;
    const Trace trace = lower_toy();
    const auto written = write_trace(trace, folder.path() / "predicted.tscope");
    ASSERT_TRUE(written) << written.error().message;
    const auto read = read_trace(folder.path() / "predicted.tscope");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(find_peak(*read).reserved_bytes, find_peak(trace).reserved_bytes);
    EXPECT_EQ(MemoryCurve(*read).end_ns(), MemoryCurve(trace).end_ns());
}

TEST(Lower, NeedsAStep) {
    const Trace meta = tests::make_toy_step(tests::toy_workload(), {.num_steps = 0});
    EXPECT_FALSE(place_and_schedule(meta, gpu_named("t4"), {}, data().calibration, today()));
}

}  // namespace
