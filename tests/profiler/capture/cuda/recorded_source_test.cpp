#include "profiler/trace/allocator_rows.h"

#include "models/training/training.h"
#include "profiler/capture/cpu_capture.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/capture/tracking_allocator.h"
#include "tests/profiler/capture/small_workload.h"

#include <gtest/gtest.h>

#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <c10/core/StorageImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <thread>
#include <tuple>
#include <vector>

/// A whole training step through the rows of the caching allocator, without a GPU: the CPU's
/// allocator plays the caching one. What comes out must be what the CPU's own rows say.
namespace profiler {
namespace {

/// TrackingAllocator's blocks as actions of a caching allocator with one segment per block.
class PlayedCachingAllocator final : public AllocationSource, public AllocationListener {
public:
    PlayedCachingAllocator(Trace& trace, StreamRows& streams) : rows_(trace, streams) {}

    void start(AllocationListener& listener) override {
        listener_ = &listener;
        TrackingAllocator::instance().start(*this);
    }
    void stop() override { TrackingAllocator::instance().stop(); }
    Id<Allocation> allocation_of(const c10::StorageImpl& storage) const override {
        return rows_.at(reinterpret_cast<int64_t>(storage.data_ptr().get()));
    }

    void on_alloc(BlockHeader& block, int64_t address) override {
        addresses_[&block] = address;
        tell(RecordedAction::kSegmentAlloc, address, block.size_bytes);
        tell(RecordedAction::kAlloc, address, block.size_bytes);
        const auto lock = listener_->lock_rows();
        rows_.set_block_bytes(address, block.size_bytes);
    }
    void on_out_of_memory(const Refusal& refusal) override {
        const LockedMoment locked = listener_->next_action();
        rows_.apply({.action = RecordedAction::kOom,
                     .address = refusal.free_bytes,
                     .size_bytes = refusal.requested_bytes,
                     .pool = 0},
                    locked.moment);
        listener_->add_failure(refusal, locked.moment);
    }
    void add_failure(const Refusal&, const AllocatorMoment&) override {}
    void on_free(const BlockHeader& block) override {
        const auto found = addresses_.find(&block);
        ASSERT_NE(found, addresses_.end());
        const int64_t address = found->second;
        addresses_.erase(found);
        tell(RecordedAction::kFreeRequested, address, block.size_bytes);
        tell(RecordedAction::kFreeCompleted, address, block.size_bytes);
        tell(RecordedAction::kSegmentFree, address, block.size_bytes);
    }
    LockedMoment next_action() override { return listener_->next_action(); }
    std::unique_lock<std::mutex> lock_rows() override { return listener_->lock_rows(); }

    const AllocatorRows& rows() const { return rows_; }

private:
    void tell(RecordedAction action, int64_t address, int64_t size_bytes) {
        const LockedMoment locked = listener_->next_action();
        rows_.apply({.action = action, .address = address, .size_bytes = size_bytes, .pool = 0},
                    locked.moment);
    }

    AllocatorRows rows_;
    AllocationListener* listener_ = nullptr;
    std::map<const BlockHeader*, int64_t> addresses_;
};

/// Size, op, phase, category and whether it was freed: of each allocation of the recorded step, in
/// order.
using Fate = std::tuple<int64_t, std::string, int, Category, bool, std::string>;
std::vector<Fate> fates_of(const Trace& trace) {
    const Step step = trace.steps[Id<Step>(0)];
    std::vector<Fate> fates;
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        if (a.alloc_event < step.first_event || a.alloc_event >= step.last_event) continue;
        const Op op = a.op.valid() ? trace.ops[a.op] : Op{};
        const Op freeing = a.freeing_op.valid() ? trace.ops[a.freeing_op] : Op{};
        fates.emplace_back(a.requested_bytes, trace.text(op.name), op.phase.value,
                           trace.storages.get<&Storage::category>(a.storage),
                           a.free_completed_event >= 0, trace.text(freeing.name));
    }
    return fates;
}

TEST(RecordedSource, AStepThroughTheAllocatorsRowsIsTheStepOfTheCpu) {
    const models::Workload workload = tests::small("tempo");
    Trace on_cpu;
    capture_on_cpu(workload, {.warmup_steps = 1, .steps = 1, .num_threads = 1}, {}, on_cpu);

    Trace trace;
    StreamRows streams(trace, trace.devices.append({.name = trace.strings.intern("cuda:0")}));
    PlayedCachingAllocator allocator(trace, streams);
    models::Training training(workload);
    warm_up(training, 1, {});
    {
        Recorder recorder(trace, {.allocations = &allocator, .device = streams.device()});
        recorder.start();
        describe_storages(recorder, training);
        const CaptureCallbacks nobody;
        StepWatch watch(nobody, &recorder, &training);
        recorder.begin_step();
        recorder.end_step(training.step(&watch));
    }
    EXPECT_GT(fates_of(trace).size(), 100U);
    EXPECT_EQ(fates_of(trace), fates_of(on_cpu));
    EXPECT_EQ(trace.saves.size(), on_cpu.saves.size());
    EXPECT_EQ(trace.devices.size(), 1U);
    EXPECT_EQ(allocator.rows().counts().unmatched_frees, 0);
    EXPECT_EQ(allocator.rows().counts().replaced_blocks, 0);
    EXPECT_EQ(allocator.rows().counts().outside_segments, 0);
    EXPECT_EQ(allocator.rows().counts().assumed_block_sizes, 0);
    // Each allocation lies in the segment that came right before it.
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        ASSERT_TRUE(a.segment.valid());
        EXPECT_EQ(trace.allocator_events[a.segment].event, a.alloc_event - 1);
    }
}

TEST(RecordedSource, ARefusedRequestIsARowBesideTheAllocatorsOwn) {
    Trace trace;
    StreamRows streams(trace, trace.devices.append({.name = trace.strings.intern("cuda:0")}));
    PlayedCachingAllocator allocator(trace, streams);
    TrackingAllocator& memory = TrackingAllocator::instance();
    {
        Recorder recorder(trace, {.allocations = &allocator, .device = streams.device()});
        recorder.start();
        memory.set_limit(memory.allocated_bytes() + 1024);
        EXPECT_THROW(at::ones({1 << 20}), c10::OutOfMemoryError);
        memory.set_limit(-1);
    }
    ASSERT_EQ(trace.failures.size(), 1U);
    const Failure failure = trace.failures[Id<Failure>(0)];
    EXPECT_EQ(failure.requested_bytes, 4 << 20);
    EXPECT_EQ(failure.free_bytes, 1024);
    EXPECT_EQ(trace.text(trace.ops.get<&Op::name>(failure.op)), "aten::ones");
    int64_t num_rows = 0;
    for (const AllocatorEvent event : trace.allocator_events.rows()) {
        if (event.action != AllocatorAction::kOom) continue;
        ++num_rows;
        EXPECT_EQ(event.event, failure.event);
        EXPECT_EQ(event.free_bytes, 1024);
    }
    EXPECT_EQ(num_rows, 1);
}

TEST(RecordedSource, ABackwardOpFindsTheForwardOpOfItsOwnThread) {
    Trace trace;
    at::Tensor left, right;
    {
        Recorder recorder(trace);
        recorder.start();
        recorder.begin_step();
        // New threads both count their sequence numbers from 0.
        const auto forward = [](const char* module, at::Tensor& result) {
            const models::ModuleScope module_path(module);
            const at::Tensor x = at::ones({4}).set_requires_grad(true);
            result = at::mul(x, x).sum();
        };
        std::thread(forward, "left", std::ref(left)).join();
        std::thread(forward, "right", std::ref(right)).join();
        torch::autograd::backward({left}, {});
        torch::autograd::backward({right}, {});
        recorder.end_step(0);
    }
    std::vector<std::string> modules;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        if (trace.text(op.name) != "MulBackward0") continue;
        ASSERT_TRUE(op.module_path.valid());
        modules.emplace_back(trace.text(trace.module_paths.get<&ModulePath::path>(op.module_path)));
    }
    EXPECT_EQ(modules, (std::vector<std::string>{"left", "right"}));
}

/// Counts what it hears, per kind.
class CountingObserver final : public RunObserver {
public:
    void on_op_begin(Id<Op>) noexcept override { most_ops = std::max(most_ops, ++open_ops); }
    void on_op_end() noexcept override { --open_ops; }
    void on_module_begin(std::string_view path) noexcept override {
        ++open_modules;
        ++module_paths[std::string(path)];
    }
    void on_module_end() noexcept override { --open_modules; }

    int open_ops = 0, most_ops = 0, open_modules = 0;
    std::map<std::string, int> module_paths;
};

TEST(RecordedSource, AnObserverHearsOpsAndModulesNestedInForwardAndBackward) {
    Trace trace;
    CountingObserver observer;
    models::Training training(tests::small("tempo"));
    {
        Recorder recorder(trace, {.observer = &observer});
        recorder.start();
        recorder.begin_step();
        recorder.end_step(training.step(&recorder));
    }
    EXPECT_EQ(observer.open_ops, 0);
    EXPECT_EQ(observer.open_modules, 0);
    EXPECT_GT(observer.most_ops, 1);
    // Entered once in forward, and by each node of backward that belongs to it.
    const auto found = std::find_if(
        observer.module_paths.begin(), observer.module_paths.end(), [](const auto& module_path) {
            return module_path.first.ends_with("encoder.layer.1.intermediate.dense");
        });
    ASSERT_NE(found, observer.module_paths.end());
    EXPECT_GT(found->second, 1);
}

}  // namespace
}  // namespace profiler
