#include "profiler/protocol/worker_client.h"
#include "profiler/protocol/worker_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace profiler {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Runs the client against fake_worker.cpp.
class Worker : public testing::Test {
protected:
    void SetUp() override { setenv("TEMPOSCOPE_WORKER", TEMPOSCOPE_FAKE_WORKER_PATH, 1); }
    void TearDown() override {
        unsetenv("TEMPOSCOPE_WORKER");
        unsetenv("TEMPOSCOPE_FAKE_WORKER");
    }

    static WorkerClient start() {
        auto client = WorkerClient::start();
        if (!client) throw std::runtime_error(client.error().message);
        return std::move(*client);
    }
    static Request request(const char* act) {
        return {
            .kind = RequestKind::kCapture, .workload = {{"act", act}}, .output_path = "a.tscope"};
    }
    static ErrorFrame error_of(const char* act) {
        WorkerClient client = start();
        const auto outcome = client.run(request(act));
        return outcome ? ErrorFrame{"no error"} : outcome.error();
    }
    /// Of a worker that misbehaves before it reads the request.
    static ErrorFrame error_before_requests(const char* act) {
        setenv("TEMPOSCOPE_FAKE_WORKER", act, 1);
        return error_of("echo");
    }
};

TEST_F(Worker, BytesOfAnAnswerArriveAsTheyWereSent) {
    WorkerClient client = start();
    for (int i = 0; i < 2; ++i) {
        const auto outcome = client.run(request("payload"));
        ASSERT_TRUE(outcome) << outcome.error().message;
        EXPECT_EQ(outcome->payload, std::string("\0\n\xff", 3));
        EXPECT_EQ(client.run(request("echo"))->payload, "");
    }
}

TEST_F(Worker, AnswersRequestsOneAfterAnother) {
    WorkerClient client = start();
    for (int64_t i = 1; i <= 3; ++i) {
        Request asked = request("echo");
        asked.steps = i;
        const auto outcome = client.run(asked);
        ASSERT_TRUE(outcome) << outcome.error().message;
        EXPECT_EQ(outcome->path, "a.tscope");
        EXPECT_EQ(outcome->summary["steps"], i);
    }
}

TEST_F(Worker, ReportsProgressAndAtMostThirtySamplesASecond) {
    WorkerClient client = start();
    std::vector<int64_t> done;
    std::vector<Sample> samples;
    const auto began = std::chrono::steady_clock::now();
    const auto outcome =
        client.run(request("progress"),
                   {.progress = [&](const Progress& progress) { done.push_back(progress.done); },
                    .sample = [&](const Sample& sample) { samples.push_back(sample); }});
    const auto elapsed = std::chrono::steady_clock::now() - began;
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(done, (std::vector<int64_t>{1, 2, 3}));
    ASSERT_FALSE(samples.empty());
    EXPECT_EQ(samples[0].phase, "forward");
    EXPECT_LE(static_cast<int64_t>(samples.size()), 1 + elapsed / 33ms);
}

TEST_F(Worker, TakesATurnAtATime) {
    WorkerClient client = start();
    Request asked = request("turns");
    asked.workload["recipe_name"] = "tempo";
    asked.workload["log"] = "/dev/null";
    asked.workload["held"] = 7;
    asked.steps = 2;
    WorkerState state = client.begin(asked);
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(std::holds_alternative<WaitsForTurn>(state)) << i;
        EXPECT_EQ(std::get<WaitsForTurn>(state).held_bytes, 7);
        state = client.resume({.run = "a", .recipes = 2});
    }
    ASSERT_TRUE(std::holds_alternative<WorkerOutcome>(state));
    EXPECT_TRUE(std::get<WorkerOutcome>(state));
}

TEST_F(Worker, CancelEndsAWorkerThatWaitsForItsTurn) {
    WorkerClient client = start();
    Request asked = request("turns");
    asked.workload["recipe_name"] = "tempo";
    asked.workload["log"] = "/dev/null";
    ASSERT_TRUE(std::holds_alternative<WaitsForTurn>(client.begin(asked)));
    client.cancel();
    const WorkerState state = client.resume({.run = "a"});
    ASSERT_TRUE(std::holds_alternative<WorkerOutcome>(state));
    EXPECT_TRUE(std::get<WorkerOutcome>(state).error().cancelled);
}

TEST_F(Worker, CapturesTheLogAndKeepsItsEnd) {
    WorkerClient client = start();
    ASSERT_TRUE(client.run(request("chatter")));
    // The last lines may still be in the pipe; the next request drains it.
    ASSERT_TRUE(client.run(request("echo")));
    EXPECT_THAT(client.log(), HasSubstr("line 19999\n"));
    EXPECT_LE(client.log().size(), WorkerLog::kMaxBytes);
}

TEST_F(Worker, CancelEndsTheRequest) {
    WorkerClient client = start();
    bool cancelled = false;
    const auto outcome = client.run(request("wait"), {.progress = [&](const Progress& progress) {
                                        if (progress.done == 3 && !cancelled) client.cancel();
                                        cancelled = progress.done >= 3;
                                    }});
    ASSERT_FALSE(outcome);
    EXPECT_TRUE(outcome.error().cancelled);
    EXPECT_EQ(outcome.error().message, "The capture was cancelled.");
}

TEST_F(Worker, CancelBeforeTheWorkerIsReadyIsNotLost) {
    WorkerClient client = start();
    std::thread canceller([&] { client.cancel(); });
    const auto outcome = client.run(request("wait"));
    canceller.join();
    ASSERT_FALSE(outcome);
    EXPECT_TRUE(outcome.error().cancelled);
}

TEST_F(Worker, SaysWhichWorkWasCancelled) {
    Request asked = request("echo");
    for (const auto& [kind, message] :
         {std::pair(RequestKind::kCapture, "The capture was cancelled."),
          std::pair(RequestKind::kPredictStep, "The prediction was cancelled."),
          std::pair(RequestKind::kMeasureLayouts, "The measurement was cancelled.")}) {
        WorkerClient client = start();
        client.cancel();
        asked.kind = kind;
        const auto outcome = client.run(asked);
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().message, message);
    }
}

TEST_F(Worker, CancelInsistsWithSigtermThenSigkill) {
    for (const char* act : {"deaf", "immortal"}) {
        setenv("TEMPOSCOPE_FAKE_WORKER", act, 1);
        WorkerClient client = start();
        std::thread canceller([&] {
            std::this_thread::sleep_for(50ms);
            client.cancel();
        });
        const auto outcome = client.run(request("echo"));
        canceller.join();
        ASSERT_FALSE(outcome);
        EXPECT_TRUE(outcome.error().cancelled) << outcome.error().message;
    }
}

TEST_F(Worker, ASilentWorkerIsEndedAfterItsTimeout) {
    WorkerClient client = start();
    const auto outcome = client.run(request("hang"), {.timeout = 1s});
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().message, HasSubstr("said nothing for 1 s"));
    EXPECT_FALSE(client.run(request("echo")));
    WorkerClient next = start();
    EXPECT_TRUE(next.run(request("progress"), {.timeout = 10s}));
}

TEST_F(Worker, DeathIsOneSentence) {
    EXPECT_THAT(error_of("segv").message, HasSubstr("killed by signal 11 (Segmentation fault)"));
    EXPECT_THAT(error_of("kill").message, HasSubstr("killed by signal 9 (Killed)"));
    EXPECT_THAT(error_of("exit").message, HasSubstr("ended with status 7"));
    EXPECT_THAT(error_of("exit").message, HasSubstr("Its last line was: fake worker"));
}

TEST_F(Worker, ErrorsOfTheWorkloadArriveWithTheirExitCode) {
    EXPECT_EQ(error_of("throw").message, "The workload threw.");
    EXPECT_EQ(error_of("throw").exit_code, 1);
    EXPECT_EQ(error_of("out-of-memory").exit_code, 3);
}

TEST_F(Worker, AWorkerWithoutMemorySaysSo) {
    for (const char* act :
         {"bad-alloc", "bad-alloc-in-thread", "no-stack-for-a-thread", "no-room-for-a-library"}) {
        const ErrorFrame error = error_of(act);
        EXPECT_THAT(error.message, HasSubstr("The worker ran out of memory: choose a smaller"));
        EXPECT_EQ(error.exit_code, 3) << act;
        EXPECT_TRUE(to_error(error).out_of_memory) << act;
    }
}

TEST_F(Worker, HostileFramesAreOneSentence) {
    EXPECT_THAT(error_before_requests("oversized").message, HasSubstr("another build"));
    EXPECT_THAT(error_before_requests("broken-json").message, HasSubstr("another build"));
    EXPECT_THAT(error_before_requests("unknown-kind").message, HasSubstr("another build"));
    EXPECT_THAT(error_before_requests("truncated").message, HasSubstr("before it answered"));
    EXPECT_THAT(error_before_requests("no-hello").message, HasSubstr("did not say its version"));
}

TEST_F(Worker, AnotherVersionIsOneSentence) {
    const ErrorFrame error = error_before_requests("other-version");
    EXPECT_THAT(error.message, HasSubstr("version 9.9.9"));
    EXPECT_THAT(error.message, HasSubstr(std::string(build_version())));
    EXPECT_THAT(error.message, HasSubstr("TEMPOSCOPE_WORKER"));
}

TEST_F(Worker, AMissingLibraryIsQuoted) {
    const ErrorFrame error = error_before_requests("library-missing");
    EXPECT_THAT(error.message, HasSubstr("status 127"));
    EXPECT_THAT(error.message, HasSubstr("libtorch_cpu.so"));
}

TEST_F(Worker, AMissingProgramIsOneSentence) {
    setenv("TEMPOSCOPE_WORKER", "/nowhere/temposcope-worker", 1);
    auto client = WorkerClient::start();
    ASSERT_FALSE(client);
    EXPECT_THAT(client.error().message, HasSubstr("/nowhere/temposcope-worker"));

    unsetenv("TEMPOSCOPE_WORKER");  // beside this test there is none
    client = WorkerClient::start();
    ASSERT_FALSE(client);
    EXPECT_THAT(client.error().message, HasSubstr("temposcope-worker is missing"));
}

/// A folder with a worker of torch 2.15.
std::string worker_of_torch(const std::string& torch) {
    const std::filesystem::path folder = testing::TempDir() + "worker_of_" + torch;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "torch_version") << torch << "\n";
    std::ofstream(folder / "temposcope-worker") << "#!/bin/sh\n";
    EXPECT_EQ(chmod((folder / "temposcope-worker").c_str(), 0755), 0);
    return folder / "temposcope-worker";
}

TEST_F(Worker, IsChosenByItsTorch) {
    const std::string worker = worker_of_torch("2.15");
    setenv("TEMPOSCOPE_WORKER", worker.c_str(), 1);
    EXPECT_EQ(torch_of_worker(worker), "2.15");
    EXPECT_EQ(find_worker_for("").value(), worker);
    EXPECT_EQ(find_worker_for("2.15").value(), worker);
    EXPECT_THAT(find_worker_for("2.14").error().message, HasSubstr("No worker runs torch 2.14"));
    unsetenv("TEMPOSCOPE_WORKER");
}

/// The command of the installed package looks for it.
TEST_F(Worker, OfAPackageIsThatOfItsEnvironment) {
    unsetenv("TEMPOSCOPE_WORKER");
    const std::string worker = worker_of_torch("2.15");
    setenv("TEMPOSCOPE_OWN_WORKER", worker.c_str(), 1);
    EXPECT_EQ(find_worker().value(), worker);
    EXPECT_THAT(find_worker_for("2.14").error().message,
                HasSubstr("This environment has torch 2.15, and torch 2.14 is asked for"));
    setenv("TEMPOSCOPE_NO_WORKER", "torch is not installed here", 1);
    EXPECT_EQ(find_worker().error().message, "torch is not installed here.");
    unsetenv("TEMPOSCOPE_OWN_WORKER");
    unsetenv("TEMPOSCOPE_NO_WORKER");
}

TEST_F(Worker, AFileThatIsNoProgramIsOneSentence) {
    const std::string path = testing::TempDir() + "not_a_program";
    std::ofstream(path) << "\x7f"
                           "ELF but no more";
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
    const auto client = WorkerClient::start(path);
    ASSERT_FALSE(client);
    EXPECT_THAT(client.error().message, HasSubstr("Cannot start " + path));
    std::remove(path.c_str());
}

TEST_F(Worker, StartedByHandItSaysSo) {
    const std::string command =
        std::string(TEMPOSCOPE_FAKE_WORKER_PATH) + " 3</dev/null 2>/dev/null";
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2);
}

/// True when the process is gone or a zombie.
bool is_dead(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    if (!std::getline(stat, text)) return true;
    const std::size_t state = text.rfind(')');
    return state != std::string::npos && text.substr(state).find(" Z") != std::string::npos;
}

TEST_F(Worker, DiesWithTheProgramThatStartedIt) {
    const pid_t program = fork();
    if (program == 0) {
        WorkerClient client = start();
        (void)client.run(request("hang"), {});
        _exit(0);
    }
    // The worker is the only child of that program.
    const std::string children =
        "/proc/" + std::to_string(program) + "/task/" + std::to_string(program) + "/children";
    pid_t worker = 0;
    for (int i = 0; i < 6000 && worker == 0; ++i) {
        std::this_thread::sleep_for(10ms);
        std::ifstream(children) >> worker;
    }
    kill(program, SIGKILL);
    waitpid(program, nullptr, 0);
    ASSERT_NE(worker, 0);
    for (int i = 0; i < 6000 && !is_dead(worker); ++i) std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(is_dead(worker));
}

}  // namespace
}  // namespace profiler
