#include "profiler/protocol/turn_taking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace profiler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Runs TurnTaking against fake_worker.cpp, whose workers write what they do into one log.
class Turns : public testing::Test {
protected:
    void SetUp() override {
        setenv("TEMPOSCOPE_WORKER", TEMPOSCOPE_FAKE_WORKER_PATH, 1);
        std::string name = testing::TempDir() + "turns-XXXXXX";
        folder_ = mkdtemp(name.data());
    }
    void TearDown() override {
        unsetenv("TEMPOSCOPE_WORKER");
        unsetenv("TEMPOSCOPE_FAKE_WORKER");
        std::filesystem::remove_all(folder_);
    }

    Request request(const std::string& recipe, nlohmann::json more = {}) const {
        nlohmann::json workload{
            {"act", "turns"}, {"recipe_name", recipe}, {"log", (folder_ / "log").string()}};
        if (more.is_object()) workload.update(more);
        return {.kind = RequestKind::kCapture,
                .workload = std::move(workload),
                .output_path = (folder_ / (recipe + ".tscope")).string(),
                .steps = 3};
    }
    std::vector<std::string> log() const {
        std::vector<std::string> lines;
        std::ifstream file(folder_ / "log");
        for (std::string line; std::getline(file, line);) lines.push_back(line);
        return lines;
    }
    tl::expected<void, ErrorFrame> run(std::vector<Request> requests) {
        TurnTaking turns(std::move(requests));
        return turns.run(
            {.started = [this](std::size_t) { ++started_; },
             .progress = {},
             .sample = {},
             .ended = [this](std::size_t index, const WorkerOutcome&) { ended_.push_back(index); },
             .split = [this](const std::string& text) { split_ = text; }});
    }

    std::filesystem::path folder_;
    int started_ = 0;
    std::vector<std::size_t> ended_;
    std::string split_;
};

TEST_F(Turns, OneWorkerRunsAtATimeAndEachRoundGoesTheOtherWay) {
    const auto done = run({request("a"), request("b"), request("c")});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_THAT(log(), ElementsAre("a set up", "b set up", "c set up",  //
                                   "a 0 of 3", "b 0 of 3", "c 0 of 3",  //
                                   "c 1 of 3", "b 1 of 3", "a 1 of 3",  //
                                   "a 2 of 3", "b 2 of 3", "c 2 of 3"));
    EXPECT_THAT(ended_, ElementsAre(0u, 1u, 2u));
    EXPECT_EQ(split_, "");
}

TEST_F(Turns, AnotherRecipeThatDoesNotFitIntoMemoryRunsAfterTheOthers) {
    // The next may need 2000, and b, after one warm-up step, 500 more.
    const nlohmann::json large{{"held", 1000}, {"available", 2499}};
    ASSERT_TRUE(run({request("a"), request("b", large), request("c")}));
    EXPECT_THAT(log(), ElementsAre("a set up", "b set up",                          //
                                   "a 0 of 2", "b 0 of 2", "b 1 of 2", "a 1 of 2",  //
                                   "a 2 of 2", "b 2 of 2",                          //
                                   "c set up", "c 0 of 1", "c 1 of 1", "c 2 of 1"));
    EXPECT_THAT(split_, HasSubstr("do not fit into memory together: a, b are measured before"));
}

TEST_F(Turns, ARecipeMayTakeTwiceTheMemoryOfTheLargestBeforeIt) {
    const auto tempo_and_original = [&](int64_t warmup_steps, int64_t available_bytes) {
        std::filesystem::remove(folder_ / "log");
        Request tempo = request("tempo", {{"held", 1000}, {"available", available_bytes}});
        tempo.warmup_steps = warmup_steps;
        tempo.steps = 1;
        Request original = request("original", {{"held", 2000}});
        original.steps = 1;
        EXPECT_TRUE(run({tempo, original}));
        return log();
    };
    const auto together =
        ElementsAre("tempo set up", "original set up", "tempo 0 of 2", "original 0 of 2");
    const auto apart =
        ElementsAre("tempo set up", "tempo 0 of 1", "original set up", "original 0 of 1");
    EXPECT_THAT(tempo_and_original(2, 2000), together);
    EXPECT_THAT(tempo_and_original(2, 1999), apart);
    EXPECT_THAT(tempo_and_original(1, 2500), together) << "500 for the optimizer's state";
    EXPECT_THAT(tempo_and_original(1, 2499), apart);
}

TEST_F(Turns, TheLargestRecipeOfAnEarlierGroupCounts) {
    const nlohmann::json large{{"held", 1000}, {"available", 100}};
    const nlohmann::json small{{"held", 10}, {"available", 1999}};
    Request a = request("a", large), b = request("b", small), c = request("c", small);
    a.steps = b.steps = c.steps = 1;
    ASSERT_TRUE(run({a, b, c}));
    EXPECT_THAT(log(), ElementsAre("a set up", "a 0 of 1", "b set up", "b 0 of 1",  //
                                   "c set up", "c 0 of 1"));
}

TEST_F(Turns, CapturesWithoutAWarmUpRunAlone) {
    Request a = request("a"), b = request("b");
    a.warmup_steps = b.warmup_steps = 0;
    a.steps = b.steps = 1;
    ASSERT_TRUE(run({a, b}));
    EXPECT_THAT(log(), ElementsAre("a set up", "a 0 of 1", "b set up", "b 0 of 1"));
    EXPECT_THAT(split_, HasSubstr("Without a warm-up step the recipes do not take turns"));
}

TEST_F(Turns, ARecipeThatRanOutOfMemoryBesideTheOthersIsTriedAgainAlone) {
    const std::string file = (folder_ / "a-lives").string();
    ASSERT_TRUE(run({request("a", {{"holds", file}}), request("b", {{"needs_absent", file}})}));
    EXPECT_THAT(log(), ElementsAre("a set up", "b out of memory", "a 0 of 1", "a 1 of 1",
                                   "a 2 of 1", "b set up", "b 0 of 1", "b 1 of 1", "b 2 of 1"));
    EXPECT_THAT(ended_, ElementsAre(0u, 1u));
}

TEST_F(Turns, SweepsThatFillTheMemoryRunAlone) {
    Request a = request("a"), b = request("b");
    a.kind = b.kind = RequestKind::kSweep;
    a.steps = b.steps = 1;
    ASSERT_TRUE(run({a, b}));
    EXPECT_THAT(log(), ElementsAre("a set up", "a 0 of 1", "b set up", "b 0 of 1"));
    EXPECT_EQ(split_, "") << "known before, so not worth a warning";
}

TEST_F(Turns, SweepsTakeTurnsWhereTheirLimitsFitTogether) {
    constexpr int64_t kGiB = int64_t{1} << 30;
    const auto sweep = [&](const char* recipe, int64_t available_bytes) {
        Request asked = request(recipe, {{"held", kGiB}, {"available", available_bytes}});
        asked.kind = RequestKind::kSweep;
        asked.memory_limit_bytes = 8 * kGiB;
        asked.steps = 1;
        return asked;
    };
    // 9.5 GiB for the new one, and 8.5 GiB that the first may still take.
    ASSERT_TRUE(run({sweep("a", 18 * kGiB), sweep("b", 9 * kGiB)}));
    EXPECT_THAT(log(), ElementsAre("a set up", "b set up", "a 0 of 2", "b 0 of 2"));
    std::filesystem::remove(folder_ / "log");
    ASSERT_TRUE(run({sweep("a", 17 * kGiB), sweep("b", 9 * kGiB)}));
    EXPECT_THAT(log(), ElementsAre("a set up", "a 0 of 1", "b set up", "b 0 of 1"));
}

TEST_F(Turns, ARecipeThatRunsOutOfMemoryDoesNotStopTheOthers) {
    const std::string file = (folder_ / "a-lives").string();
    std::ofstream(file) << "";  // b never has enough memory
    Request b = request("b", {{"needs_absent", file}});
    b.memory_limit_bytes = 1 << 20;
    ASSERT_TRUE(run({b, request("a")}));
    EXPECT_THAT(ended_, ElementsAre(0u, 1u));
    EXPECT_THAT(log(),
                ElementsAre("b out of memory", "a set up", "a 0 of 1", "a 1 of 1", "a 2 of 1"));
}

TEST_F(Turns, AfterAFailureTheWorkersThatAreSetUpFinish) {
    const auto done = run({request("a"), request("b", {{"fails_at", 1}}), request("c")});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "b failed.");
    EXPECT_THAT(ended_, ElementsAre(1u, 0u, 2u));
}

TEST_F(Turns, AfterAFailedSetUpNoOtherWorkerStarts) {
    Request broken = request("b");
    broken.workload["act"] = "throw";
    const auto done = run({request("a"), broken, request("c")});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "The workload threw.");
    EXPECT_EQ(started_, 2);
    EXPECT_THAT(log(), ElementsAre("a set up", "a 0 of 1", "a 1 of 1", "a 2 of 1"));
}

TEST_F(Turns, OneRequestAloneTakesNoTurns) {
    Request echo = request("a");
    echo.workload["act"] = "echo";
    TurnTaking turns({echo});
    nlohmann::json sent;
    ASSERT_TRUE(turns.run(
        {.started = {},
         .progress = {},
         .sample = {},
         .ended = [&](std::size_t, const WorkerOutcome& outcome) { sent = outcome->summary; },
         .split = {}}));
    EXPECT_EQ(sent["takes_turns"], false);
}

TEST_F(Turns, CancelEndsAllWorkersAndNamesTheirFiles) {
    const Request a = request("a");
    Request b = request("b");
    b.workload["act"] = "wait";
    TurnTaking turns({a, b});
    std::thread canceller;
    TurnEvents events;
    events.progress = [&](std::size_t, const Progress& progress) {
        if (progress.done != 3) return;
        std::ofstream(a.output_path + ".partial") << "rows";
        std::ofstream(b.output_path + ".partial") << "rows";
        canceller = std::thread([&] { turns.cancel(); });
    };
    events.ended = [this](std::size_t index, const WorkerOutcome& outcome) {
        EXPECT_TRUE(outcome.error().cancelled);
        ended_.push_back(index);
    };
    const auto done = turns.run(events);
    canceller.join();
    ASSERT_FALSE(done);
    EXPECT_TRUE(done.error().cancelled);
    EXPECT_THAT(done.error().message, HasSubstr("a.tscope.partial, "));
    EXPECT_THAT(done.error().message, HasSubstr("b.tscope.partial."));
    EXPECT_THAT(ended_, ElementsAre(1u, 0u));
}

TEST_F(Turns, CancelDoesNotNameFilesOfRequestsThatDidNotBegin) {
    const Request a = request("a"), c = request("c");
    Request b = request("b");
    b.workload["act"] = "wait";
    std::ofstream(a.output_path + ".partial") << "rows";
    std::ofstream(c.output_path + ".partial") << "rows of an earlier run";
    TurnTaking turns({a, b, c});
    TurnEvents events;
    events.progress = [&](std::size_t, const Progress&) { turns.cancel(); };
    const auto done = turns.run(events);
    ASSERT_FALSE(done);
    EXPECT_TRUE(done.error().cancelled);
    EXPECT_EQ(done.error().message, "The capture was cancelled. What was recorded before is in " +
                                        a.output_path + ".partial.");
}

TEST_F(Turns, CancelBeforeAWorkerIsAskedEndsTheRun) {
    const Request a = request("a"), b = request("b"), c = request("c");
    std::ofstream(b.output_path + ".partial") << "rows of an earlier run";
    TurnTaking turns({a, b, c});
    TurnEvents events;
    events.started = [&](std::size_t index) {
        ++started_;
        if (index == 1) turns.cancel();
    };
    events.ended = [this](std::size_t index, const auto&) { ended_.push_back(index); };
    const auto done = turns.run(events);
    ASSERT_FALSE(done);
    EXPECT_TRUE(done.error().cancelled);
    EXPECT_THAT(done.error().message, Not(HasSubstr("b.tscope.partial")));
    EXPECT_EQ(started_, 2);
    EXPECT_THAT(ended_, ElementsAre(1u, 0u));
    EXPECT_THAT(log(), ElementsAre("a set up"));
}

/// From another thread, at several moments between the start of b's worker and its set-up.
TEST_F(Turns, CancelWhileAWorkerStartsEndsTheRun) {
    for (const int delay_ms : {0, 1, 3, 10, 30}) {
        started_ = 0;
        ended_.clear();
        Request b = request("b");
        b.workload["act"] = "wait";
        TurnTaking turns({request("a"), b, request("c")});
        std::thread canceller;
        TurnEvents events;
        events.started = [&](std::size_t index) {
            ++started_;
            if (index != 1) return;
            canceller = std::thread([&turns, delay_ms] {
                std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
                turns.cancel();
            });
        };
        events.ended = [this](std::size_t index, const auto&) { ended_.push_back(index); };
        const auto done = turns.run(events);
        canceller.join();
        ASSERT_FALSE(done) << delay_ms;
        EXPECT_TRUE(done.error().cancelled) << done.error().message;
        EXPECT_EQ(started_, 2) << delay_ms;
        EXPECT_THAT(ended_, ElementsAre(1u, 0u)) << delay_ms;
    }
}

TEST_F(Turns, AWorkerThatDoesNotLeaveIsKilledOnce) {
    setenv("TEMPOSCOPE_FAKE_WORKER", "deaf", 1);
    const auto began = std::chrono::steady_clock::now();
    {
        auto worker = WorkerClient::start();
        ASSERT_TRUE(worker) << worker.error().message;
        worker->end();
        worker->end();
    }  // its destructor ends it again
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(3500))
        << "2 s of patience, once";
}

}  // namespace
}  // namespace profiler
