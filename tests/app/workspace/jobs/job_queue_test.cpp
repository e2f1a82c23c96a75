#include "app/workspace/jobs/job_queue.h"

#include "app/workspace/jobs/wake.h"
#include "tests/app/workspace/waiting.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

TEST(JobQueue, TurnsAnExceptionIntoASentenceAndContinues) {
    app::JobQueue<int> queue(app::Waiting::kKeep);
    queue.start("Counting", [](const auto&) -> models::Result<int> {
        throw std::runtime_error("no fingers left");
    });
    queue.start("Counting", [](const auto&) -> models::Result<int> { throw std::bad_alloc(); });
    queue.start("Counting", [](const auto&) -> models::Result<int> { return 7; });
    tests::wait_for([&] { return !queue.progress(); });
    const auto results = queue.take();
    ASSERT_EQ(results.size(), 3U);
    EXPECT_NE(results[0].error().message.find("Counting failed (no fingers left)"),
              std::string::npos);
    EXPECT_NE(results[1].error().message.find("memory"), std::string::npos);
    EXPECT_EQ(results[2].value(), 7);
    EXPECT_FALSE(queue.busy());
}

TEST(JobQueue, RunsAllWaitingJobsInOrder) {
    tests::Gate gate;
    app::JobQueue<int> queue(app::Waiting::kKeep);
    for (int i = 0; i < 5; ++i) {
        queue.start("Counting", [&gate, i](const auto&) -> models::Result<int> {
            gate.wait();
            return i;
        });
    }
    EXPECT_TRUE(queue.busy());
    gate.open();
    tests::wait_for([&] { return !queue.progress(); });
    std::vector<int> numbers;
    for (const auto& result : queue.take()) numbers.push_back(*result);
    EXPECT_EQ(numbers, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(JobQueue, RunsOnlyTheNewestWaitingJobWhenTheOthersAreDropped) {
    tests::Gate started, gate;
    app::JobQueue<int> queue(app::Waiting::kDrop);
    queue.start("Counting", [&](const auto&) -> models::Result<int> {
        started.open();
        gate.wait();
        return 0;
    });
    started.wait();
    queue.start("Counting", [](const auto&) -> models::Result<int> { return 1; });
    queue.start("Counting", [](const auto&) -> models::Result<int> { return 2; });
    gate.open();
    tests::wait_for([&] { return !queue.progress(); });
    const auto results = queue.take();
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[0].value(), 0);
    EXPECT_EQ(results[1].value(), 2);
}

/// Says on which thread it was destroyed.
struct Tracked {
    explicit Tracked(std::atomic<std::thread::id>& on) : destroyed_on(&on) {}
    ~Tracked() { destroyed_on->store(std::this_thread::get_id()); }
    std::atomic<std::thread::id>* destroyed_on;
};
using TrackedPtr = std::shared_ptr<const Tracked>;

TEST(JobQueue, DestroysWhatIsDiscardedOnItsThread) {
    std::atomic<std::thread::id> destroyed_on, jobs_run_on;
    app::JobQueue<TrackedPtr> queue(app::Waiting::kKeep);
    queue.start("Making", [&](const auto&) -> models::Result<TrackedPtr> {
        jobs_run_on = std::this_thread::get_id();
        return std::make_shared<const Tracked>(destroyed_on);
    });
    tests::wait_for([&] { return !queue.progress(); });
    for (auto& made : queue.take()) queue.discard(std::move(*made));
    EXPECT_FALSE(queue.busy());
    tests::wait_for([&] { return destroyed_on.load() == jobs_run_on.load(); });
}

TEST(JobQueue, WithoutAJobDiscardsAtOnce) {
    std::atomic<std::thread::id> destroyed_on;
    app::JobQueue<TrackedPtr> queue(app::Waiting::kKeep);
    queue.discard(std::make_shared<const Tracked>(destroyed_on));
    EXPECT_EQ(destroyed_on.load(), std::this_thread::get_id());
}

TEST(JobQueue, FinishesWaitingJobsBeforeItIsDestroyed) {
    int written = 0;
    {
        app::JobQueue<int> queue(app::Waiting::kKeep);
        for (int i = 0; i < 3; ++i) {
            queue.start("Writing", [&](const auto&) -> models::Result<int> { return ++written; });
        }
    }
    EXPECT_EQ(written, 3);
}

TEST(JobQueue, DropsTheRunningAndTheWaitingJobsWhenItIsCancelled) {
    tests::Gate reported;
    app::JobQueue<int> queue(app::Waiting::kKeep);
    queue.start("Reading a", [&](const auto& report) -> models::Result<int> {
        report(0.25);
        reported.open();
        while (report(0.5)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return 1;
    });
    queue.start("Reading b", [](const auto&) -> models::Result<int> { return 2; });
    reported.wait();
    const auto progress = queue.progress();
    ASSERT_TRUE(progress);
    EXPECT_EQ(progress->name, "Reading a");
    EXPECT_GE(progress->share, 0.25);
    EXPECT_EQ(progress->waiting, 1U);
    queue.cancel();
    tests::wait_for([&] { return !queue.busy(); });
    EXPECT_TRUE(queue.take().empty());
    queue.start("Reading c", [](const auto&) -> models::Result<int> { return 3; });
    tests::wait_for([&] { return !queue.progress(); });
    EXPECT_EQ(queue.take().size(), 1U);
}

/// Freeing a large trace takes long: it must not keep the window from asking what the queue does.
TEST(JobQueue, FreesWhatAJobHoldsAndWhatACancelledOneMadeWithoutItsLock) {
    app::JobQueue<std::shared_ptr<int>> queue(app::Waiting::kKeep);
    int freed = 0;
    const auto tracked = [&] {
        return std::shared_ptr<int>(new int(7), [&](const int* number) {
            std::ignore = queue.progress();  // waits forever where the thread holds the lock
            ++freed;
            delete number;
        });
    };
    queue.start("Reading", [held = tracked()](const auto&) -> models::Result<std::shared_ptr<int>> {
        return std::shared_ptr<int>();
    });
    tests::wait_for([&] { return !queue.progress(); });
    EXPECT_EQ(freed, 1);
    EXPECT_EQ(queue.take().size(), 1U);
    tests::Gate started, gate;
    queue.start("Reading", [&](const auto&) -> models::Result<std::shared_ptr<int>> {
        started.open();
        gate.wait();
        return tracked();
    });
    started.wait();
    queue.cancel();
    gate.open();
    // The next job runs after the result of the first is gone.
    queue.start("Counting", [&](const auto&) -> models::Result<std::shared_ptr<int>> {
        return std::make_shared<int>(freed);
    });
    tests::wait_for([&] { return !queue.progress(); });
    const auto results = queue.take();
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(**results[0], 2);
}

std::atomic<int> num_wakes = 0;

class Wakes : public testing::Test {
protected:
    Wakes() {
        num_wakes = 0;
        app::set_wake_window([] { ++num_wakes; });
    }
    ~Wakes() override { app::set_wake_window(nullptr); }

    /// Wakes of a job that reports so many times while it gets done, from no time to its end.
    int of_reports(int count) {
        app::JobQueue<int> queue(app::Waiting::kKeep);
        int while_it_ran = 0;
        queue.start("Counting", [&](const auto& report) -> models::Result<int> {
            for (int i = 1; i <= count; ++i) report(static_cast<double>(i) / count);
            while_it_ran = num_wakes;
            return 0;
        });
        tests::wait_for([&] { return !queue.progress(); });
        return while_it_ran;
    }
};

TEST_F(Wakes, AJobThatReportsOftenWakesTheWindowForSomeReportsOnly) {
    EXPECT_GE(of_reports(100'000), 2);  // for each half at least
    EXPECT_LT(num_wakes, 50'000);
}

TEST_F(Wakes, AShareThatGrowsByHalfWakesItAtOnce) { EXPECT_GE(of_reports(2), 2); }

TEST_F(Wakes, TheEndOfAJobWakesTheWindow) {
    const int before_end = of_reports(1);
    tests::wait_for([&] { return num_wakes > before_end; });
}

}  // namespace
