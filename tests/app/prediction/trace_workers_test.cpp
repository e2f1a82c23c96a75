#include "app/prediction/trace_workers.h"

#include "app/user/workload_jobs.h"
#include "tests/app/prediction/fake_worker_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace app {
namespace {

using testing::HasSubstr;

class TraceWorkersTest : public FakeWorkerTest {
protected:
    models::Result<std::shared_ptr<const profiler::Trace>> trace() {
        return workers_.source()({workload_});
    }

    TraceWorkers workers_{{&shared_gpu()}, TraceDetail::kForPlan};
    const models::Workload workload_ = make_workload({.model = "bert-base", .layers = 1}).value();
};

TEST_F(TraceWorkersTest, AWorkerStaysWhenTheThreadThatUsedItEnds) {
    for (int i = 0; i < 20; ++i) {
        std::thread([this] {
            const auto traced = trace();
            ASSERT_TRUE(traced.has_value()) << traced.error().message;
            EXPECT_GT((*traced)->ops.size(), 0U);
        }).join();
    }
    EXPECT_EQ(workers_.started(), 1U);
}

TEST_F(TraceWorkersTest, MoreGpusThanAProcessSeesAreSharedOutInGroups) {
    std::vector<profiler::Gpu> gpus(profiler::kMostVirtualCards + 8, shared_gpu());
    std::vector<const profiler::Gpu*> pointers;
    for (profiler::Gpu& gpu : gpus) {
        gpu.id = std::to_string(pointers.size());
        pointers.push_back(&gpu);
    }
    TraceWorkers workers(pointers, TraceDetail::kForPlan);
    for (const profiler::Gpu* gpu : {pointers.front(), pointers.back(), pointers[1]}) {
        const auto traced = workers.source()({workload_, gpu->id});
        ASSERT_TRUE(traced.has_value()) << traced.error().message;
    }
    EXPECT_EQ(workers.started(), 2U);
}

TEST_F(TraceWorkersTest, AWorkerThatFailedIsReplaced) {
    setenv("TEMPOSCOPE_WORKER", "/bin/false", 1);  // ends before it says its version
    EXPECT_FALSE(trace().has_value());
    setenv("TEMPOSCOPE_WORKER", TEMPOSCOPE_FAKE_WORKER_PATH, 1);
    EXPECT_TRUE(trace().has_value());
    EXPECT_FALSE(workers_.is_cancelled());
}

/// Ends every process that this one started.
void kill_children() {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream children(task.path() / "children");
        for (pid_t child = 0; children >> child;) kill(child, SIGKILL);
    }
}

TEST_F(TraceWorkersTest, AWorkerThatWasKilledWhileItLayIdleIsReplaced) {
    ASSERT_TRUE(trace().has_value());
    kill_children();
    const auto traced = trace();
    ASSERT_TRUE(traced.has_value()) << traced.error().message;
    EXPECT_EQ(workers_.started(), 2U);
}

TEST_F(TraceWorkersTest, NothingIsTracedAfterACancel) {
    ASSERT_TRUE(trace().has_value());
    workers_.cancel();
    EXPECT_TRUE(workers_.is_cancelled());
    const auto refused = trace();
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message, HasSubstr("cancelled"));
    EXPECT_EQ(workers_.started(), 1U);
}

}  // namespace
}  // namespace app
