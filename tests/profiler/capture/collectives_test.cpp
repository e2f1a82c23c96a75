#include "profiler/capture/recorder.h"
#include "profiler/capture/tracking_allocator.h"

#include <ATen/ops/ones.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// What the recorder writes about the ops of torch.distributed.
namespace profiler {
namespace {

constexpr int64_t kFloatBytes = 4;
constexpr int kRanks = 4;

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

/// Work as gloo's, which ends on another thread than the call's.
struct ThreadWork final : c10d::Work {
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future; }
    void end_elsewhere() const {
        std::thread([this] { future->markCompleted(); }).join();
    }
    c10::intrusive_ptr<c10::ivalue::Future> future =
        c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get());
};

/// Moves nothing.
class Backend final : public c10d::Backend {
public:
    Backend(int size, std::vector<uint64_t> ranks) : c10d::Backend(0, size) {
        options_->global_ranks_in_group = std::move(ranks);
    }
    c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }

    WorkPtr broadcast(Tensors&, const c10d::BroadcastOptions&) override {
        return c10::make_intrusive<ThreadWork>();
    }
    WorkPtr allreduce(Tensors&, const c10d::AllreduceOptions&) override { return done(); }
    WorkPtr allreduce_coalesced(Tensors&, const c10d::AllreduceCoalescedOptions&) override {
        return done();
    }
    WorkPtr allgather(std::vector<Tensors>&, Tensors&, const c10d::AllgatherOptions&) override {
        return done();
    }
    WorkPtr _allgather_base(at::Tensor&, at::Tensor&, const c10d::AllgatherOptions&) override {
        return done();
    }
    WorkPtr _reduce_scatter_base(at::Tensor&, at::Tensor&,
                                 const c10d::ReduceScatterOptions&) override {
        return done();
    }
    WorkPtr send(Tensors&, int, int) override { return done(); }
    WorkPtr recv(Tensors&, int, int) override { return done(); }
    WorkPtr barrier(const c10d::BarrierOptions&) override { return done(); }

private:
    static WorkPtr done() { return c10::make_intrusive<c10d::Work>(); }
    c10::intrusive_ptr<Options> options_ = c10::make_intrusive<Options>("test");
};

c10::intrusive_ptr<c10d::ProcessGroup> make_group(const std::string& name,
                                                  std::vector<uint64_t> ranks = {}) {
    const int size = ranks.empty() ? kRanks : static_cast<int>(ranks.size());
    auto group = c10::make_intrusive<c10d::ProcessGroup>(nullptr, 0, size);
    constexpr auto kType = c10d::ProcessGroup::BackendType::CUSTOM;
    group->setBackend(c10::DeviceType::CPU, kType,
                      c10::make_intrusive<Backend>(size, std::move(ranks)));
    group->setDefaultBackend(kType);
    group->setGroupName(name);
    group->setGroupDesc("group " + name);
    return group;
}

class Collectives : public testing::Test {
protected:
    Collectives() : group_(make_group("0")) {
        TrackingAllocator::instance();
        recorder_.emplace(trace_, RecorderOptions{});
        recorder_->start();
    }
    ~Collectives() override { recorder_->stop(); }

    /// The only row.
    Collective recorded() const {
        EXPECT_EQ(trace_.collectives.size(), 1U);
        return trace_.collectives[Id<Collective>(0)];
    }

    Trace trace_;
    std::optional<Recorder> recorder_;
    c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

TEST_F(Collectives, AnAllReduceHasTheBytesOfItsTensorsInPlace) {
    std::vector tensors{at::ones({10}, at::kBFloat16)};
    group_->allreduce(tensors);
    const Collective row = recorded();
    EXPECT_EQ(row.kind, CollectiveKind::kAllReduce);
    EXPECT_EQ(row.dtype, DType::kBFloat16);
    EXPECT_EQ(row.in_bytes, 20);
    EXPECT_EQ(row.out_bytes, 20);
    EXPECT_EQ(row.peer, -1);
    EXPECT_FALSE(row.kernel.valid());
    const Op op = trace_.ops[row.op];
    EXPECT_EQ(trace_.text(op.name), "c10d::allreduce_");
    EXPECT_EQ(row.start_ns, op.start_ns);
    EXPECT_GE(row.end_ns, row.start_ns);
}

TEST_F(Collectives, CoalescedTensorsAddUp) {
    std::vector tensors{at::ones({10}), at::ones({2, 3})};
    group_->allreduce_coalesced(tensors);
    EXPECT_EQ(recorded().in_bytes, 16 * kFloatBytes);
}

TEST_F(Collectives, AnAllGatherGivesAPartAndGetsTheWhole) {
    at::Tensor part = at::ones({10});
    at::Tensor whole = at::ones({kRanks * 10});
    group_->_allgather_base(whole, part);
    std::vector parts{part};
    std::vector<Tensors> lists{{part, part, part, part}};
    group_->allgather(lists, parts);
    ASSERT_EQ(trace_.collectives.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
        const Collective row = trace_.collectives[Id<Collective>(i)];
        EXPECT_EQ(row.kind, CollectiveKind::kAllGather);
        EXPECT_EQ(row.in_bytes, 10 * kFloatBytes);
        EXPECT_EQ(row.out_bytes, kRanks * 10 * kFloatBytes);
    }
}

TEST_F(Collectives, AReduceScatterGivesTheWholeAndGetsAPart) {
    at::Tensor part = at::ones({10});
    at::Tensor whole = at::ones({kRanks * 10});
    group_->_reduce_scatter_base(part, whole);
    const Collective row = recorded();
    EXPECT_EQ(row.kind, CollectiveKind::kReduceScatter);
    EXPECT_EQ(row.in_bytes, kRanks * 10 * kFloatBytes);
    EXPECT_EQ(row.out_bytes, 10 * kFloatBytes);
}

TEST_F(Collectives, SendAndRecvNameTheOtherRankAndHaveBytesOneWay) {
    std::vector tensors{at::ones({10})};
    group_->send(tensors, 3, 0);
    group_->recv(tensors, 2, 0);
    ASSERT_EQ(trace_.collectives.size(), 2U);
    const Collective send = trace_.collectives[Id<Collective>(0)];
    EXPECT_EQ(send.kind, CollectiveKind::kSend);
    EXPECT_EQ(send.peer, 3);
    EXPECT_EQ(send.in_bytes, 10 * kFloatBytes);
    EXPECT_EQ(send.out_bytes, 0);
    const Collective recv = trace_.collectives[Id<Collective>(1)];
    EXPECT_EQ(recv.kind, CollectiveKind::kRecv);
    EXPECT_EQ(recv.peer, 2);
    EXPECT_EQ(recv.in_bytes, 0);
    EXPECT_EQ(recv.out_bytes, 10 * kFloatBytes);
}

TEST_F(Collectives, ABarrierMovesNoBytes) {
    group_->barrier();
    const Collective row = recorded();
    EXPECT_EQ(row.kind, CollectiveKind::kBarrier);
    EXPECT_EQ(row.in_bytes + row.out_bytes, 0);
}

TEST_F(Collectives, EachGroupIsARowWithItsRanks) {
    const auto strided = make_group("1", {1, 5});
    std::vector tensors{at::ones({10})};
    for (const auto& group : {group_, strided, group_}) group->allreduce(tensors);
    ASSERT_EQ(trace_.communicators.size(), 2U);
    const Communicator all = trace_.communicators[Id<Communicator>(0)];
    EXPECT_EQ(trace_.text(all.name), "0");
    EXPECT_EQ(trace_.text(all.description), "group 0");
    EXPECT_EQ(all.num_ranks, kRanks);
    EXPECT_EQ(trace_.text(all.ranks), "[0, 1, 2, 3]");
    EXPECT_EQ(trace_.text(trace_.communicators[Id<Communicator>(1)].ranks), "[1, 5]");
    const auto groups = trace_.collectives.column<&Collective::communicator>();
    EXPECT_EQ(groups[0], groups[2]);
    EXPECT_NE(groups[0], groups[1]);
}

TEST_F(Collectives, WorkOnAThreadOfTheBackendEndsThere) {
    std::vector tensors{at::ones({10})};
    const auto work = group_->broadcast(tensors);
    const int64_t before_ns = recorder_->now_ns();
    EXPECT_EQ(recorded().end_ns, -1);
    static_cast<ThreadWork&>(*work).end_elsewhere();
    EXPECT_GE(recorded().end_ns, before_ns);
}

TEST_F(Collectives, WorkThatAStepNeededHasEndedWithIt) {
    std::vector tensors{at::ones({10})};
    recorder_->begin_step();
    const auto work = group_->broadcast(tensors);
    recorder_->end_step(0);  // its thread has not called back
    EXPECT_GE(recorded().end_ns, trace_.steps.get<&Step::end_ns>(Id<Step>(0)));
}

TEST_F(Collectives, OtherOpsAreNone) {
    at::ones({10}).add_(1);
    EXPECT_TRUE(trace_.collectives.empty());
    EXPECT_TRUE(trace_.communicators.empty());
}

}  // namespace
}  // namespace profiler
