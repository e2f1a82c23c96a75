
#include "profiler/analysis/ranks/rank_run.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace {

using namespace profiler;
using tests::TraceBuilder;

constexpr auto kSend = CollectiveKind::kSend, kRecv = CollectiveKind::kRecv;

/// A stage on its own: what it receives is there at once. NCCL's kernels take 1 ns, on a stream of
/// their own, and wait for what the stage computed before, as torch lets them.
class Stage {
public:
    Stage(int64_t rank, int64_t num_stages) {
        trace().runs.set<&profiler::Run::rank>(Id<profiler::Run>(0), rank);
        trace().runs.set<&profiler::Run::world_size>(Id<profiler::Run>(0), num_stages);
        trace().runs.set<&profiler::Run::time_basis>(Id<profiler::Run>(0), TimeBasis::kModelled);
        stages_ = trace().communicators.append({.name = builder_.text("stages"),
                                                .num_ranks = num_stages,
                                                .ranks = builder_.text("[0, 1, 2, 3]")});
        const Id<Device> gpu = trace().devices.append({.name = builder_.text("cuda:0")});
        compute_ = trace().streams.append({.device = gpu});
        nccl_ = trace().streams.append({.device = gpu});
    }

    void begin_step() {
        now_ns_ = nccl_ns_ = std::max(now_ns_, nccl_ns_);
        const auto step = trace().steps.append({.start_ns = now_ns_});
        const auto phase = trace().phases.append({.step = step, .start_ns = now_ns_});
        op_ = trace().ops.append({.phase = phase});
    }
    void compute(int64_t duration_ns) {
        add(compute_, now_ns_, duration_ns, std::exchange(awaited_, {}));
        computed_ = last_;
    }
    /// One kernel for all. What is computed next waits for it.
    void exchange(const std::vector<std::pair<CollectiveKind, int64_t>>& calls) {
        nccl_ns_ = std::max(nccl_ns_, now_ns_);
        add(nccl_, nccl_ns_, 1, computed_);
        for (const auto& [kind, peer] : calls) {
            const bool is_first = kind == calls.front().first && peer == calls.front().second;
            trace().collectives.append({.op = op_,
                                        .kernel = is_first ? last_ : Id<Kernel>(),
                                        .communicator = stages_,
                                        .kind = kind,
                                        .peer = peer});
        }
    }
    /// The compute stream waits for the last exchange.
    void wait() {
        awaited_ = last_;
        now_ns_ = std::max(now_ns_, nccl_ns_);
    }

    Trace& trace() { return builder_.trace(); }

private:
    void add(Id<Stream> stream, int64_t& free_ns, int64_t duration_ns, Id<Kernel> awaited) {
        const bool is_nccl = stream == nccl_;
        last_ = trace().kernels.append({.name = builder_.text(is_nccl ? "ncclDevKernel_" : "gemm"),
                                        .stream = stream,
                                        .op = op_,
                                        .correlation = static_cast<int64_t>(trace().kernels.size()),
                                        .start_ns = free_ns,
                                        .end_ns = free_ns + duration_ns});
        free_ns += duration_ns;
        if (awaited.valid()) {
            trace().stream_waits.append({.kernel = last_, .awaited_kernel = awaited});
        }
    }

    TraceBuilder builder_;
    Id<Communicator> stages_;
    Id<Stream> compute_, nccl_;
    Id<Kernel> last_, computed_, awaited_;
    Id<Op> op_;                         // of the step
    int64_t now_ns_ = 0, nccl_ns_ = 0;  // where the streams are free
};

std::optional<int64_t> step_ns_of(std::vector<Stage*> stages) {
    std::vector<const Trace*> traces;
    for (Stage* stage : stages) traces.push_back(&stage->trace());
    return pipeline_step_ns(traces, join_collectives(traces));
}

constexpr int64_t kForward_ns = 10, kBackward_ns = 20;

/// All forwards, then all backwards, of three micro-batches on two stages.
void run_gpipe_step(Stage& first, Stage& second) {
    constexpr int kMicroBatches = 3;
    first.begin_step();
    second.begin_step();
    for (int i = 0; i < kMicroBatches; ++i) {
        first.compute(kForward_ns);
        first.exchange({{kSend, 1}});
        second.exchange({{kRecv, 0}});
        second.wait();
        second.compute(kForward_ns);
    }
    for (int i = 0; i < kMicroBatches; ++i) {
        second.compute(kBackward_ns);
        second.exchange({{kSend, 0}});
        first.exchange({{kRecv, 1}});
        first.wait();
        first.compute(kBackward_ns);
    }
}

/// (M + S - 1) (f + b) with M micro-batches on S stages, and what NCCL takes between: the second
/// stage receives after each forward, the first one after each backward.
TEST(PipelineTime, HasTheBubbleOfGpipe) {
    Stage first(0, 2), second(1, 2);
    constexpr int64_t kStep_ns = (3 + 2 - 1) * (kForward_ns + kBackward_ns) + 3 + 3;
    run_gpipe_step(first, second);
    EXPECT_EQ(step_ns_of({&first, &second}), kStep_ns);
    run_gpipe_step(first, second);
    EXPECT_EQ(step_ns_of({&first, &second}), kStep_ns) << "of the last step alone";
    EXPECT_EQ(step_ns_of({&second, &first}), kStep_ns) << "in any order";
}

/// The first kernel of a batch of sends and receives ends when all of it has.
TEST(PipelineTime, CallsOfOneKernelEndTogether) {
    Stage first(0, 2), second(1, 2);
    first.begin_step();
    second.begin_step();
    first.compute(30);
    second.compute(10);
    first.exchange({{kSend, 1}, {kRecv, 1}});
    second.exchange({{kRecv, 0}, {kSend, 0}});
    second.wait();
    second.compute(50);
    EXPECT_EQ(step_ns_of({&first, &second}), 30 + 1 + 50);
}

TEST(PipelineTime, IsUnknownWithoutAllStages) {
    Stage first(0, 2), second(1, 2);
    run_gpipe_step(first, second);
    EXPECT_EQ(step_ns_of({&first}), std::nullopt);
    second.trace().runs.set<&profiler::Run::time_basis>(Id<profiler::Run>(0), TimeBasis::kMeasured);
    EXPECT_EQ(step_ns_of({&first, &second}), std::nullopt);
    Stage alone(0, 2);
    alone.begin_step();
    alone.compute(10);
    EXPECT_EQ(step_ns_of({&alone}), std::nullopt) << "nothing is sent";
}

/// Each receives first: on GPUs they would wait for ever.
TEST(PipelineTime, IsUnknownWhereStagesWaitInACircle) {
    Stage first(0, 2), second(1, 2);
    for (Stage* stage : {&first, &second}) {
        stage->begin_step();
        stage->compute(10);
        stage->exchange({{kRecv, stage == &first ? 1 : 0}});
        stage->wait();
        stage->compute(10);
        stage->exchange({{kSend, stage == &first ? 1 : 0}});
    }
    EXPECT_EQ(step_ns_of({&first, &second}), std::nullopt);
}

TEST(PipelineTime, IsTheStepOfAllRanks) {
    Stage first(0, 2), second(1, 2);
    run_gpipe_step(first, second);
    const auto run = summarize_ranks(
        std::vector<NamedTrace>{{"0", std::make_shared<const Trace>(first.trace())},
                                {"1", std::make_shared<const Trace>(second.trace())}});
    ASSERT_TRUE(run);
    ASSERT_EQ(run->pipeline_step_ns, 126);
    EXPECT_EQ(run->ranks[0].step_ns, 126);
    EXPECT_EQ(run->ranks[1].step_ns, 126);
    for (const RankSummary& stage : run->ranks) {
        // Kernels hide two of the three sends, and no receive.
        const std::optional<GpuTime>& time = stage.gpu_time;
        ASSERT_TRUE(time);
        EXPECT_EQ(time->compute_ns, 3 * (kForward_ns + kBackward_ns));
        EXPECT_EQ(time->exposed_communication_ns, 1 + 3);
        EXPECT_EQ(time->idle_ns, 126 - 90 - 4);
    }
}

}  // namespace
