// Stands in for temposcope-worker in the window's tests: the same protocol, a synthetic trace, and
// about a second of work that can be cancelled. Halfway it waits as long as a file named `hold`
// lies beside its output. A batch of 99 makes it run out of memory before the first step, 97 in a
// step of `original`, and 98 makes it die. It predicts nothing.
#include "profiler/protocol/worker_server.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/support/synthetic_trace.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

namespace {

using namespace profiler;

constexpr int kTicks = 60;

void wait_while_held(WorkerServer& server, const Request& request) {
    // In the folder of the form, which holds a folder for each capture.
    const auto hold =
        std::filesystem::path(request.output_path).parent_path().parent_path() / "hold";
    while (!server.cancelled() && std::filesystem::exists(hold)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

/// What a worker does that runs out of memory in a step: it keeps the trace up to there.
WorkerOutcome run_out_of_memory(Trace trace, const Request& request) {
    const std::string sentence = "The step needs more memory than the limit of the capture.";
    add_diagnostic(
        trace, {.code = kRanOutOfMemory, .severity = Severity::kError, .explanation = sentence});
    const auto written = write_trace(trace, request.output_path);
    if (!written) return tl::unexpected(ErrorFrame{written.error().message, 1});
    return tl::unexpected(
        ErrorFrame{.message = sentence, .exit_code = 3, .path = request.output_path});
}

WorkerOutcome capture(WorkerServer& server, const Request& request) {
    if (request.kind == RequestKind::kPredictStep) {
        return tl::unexpected(ErrorFrame{"The worker of these tests predicts nothing."});
    }
    const int64_t batch = request.workload.value("batch_size", int64_t{0});
    std::printf("fake worker: batch %lld\n", static_cast<long long>(batch));
    std::fflush(stdout);
    if (batch == 99) {
        return tl::unexpected(
            ErrorFrame{"Not enough memory for this batch; use a smaller one.", 3});
    }
    if (batch == 98) std::abort();
    const double peak = 2.2e9 * static_cast<double>(batch) / 8;
    for (int tick = 0; tick < kTicks; ++tick) {
        if (server.cancelled())
            return tl::unexpected(ErrorFrame{"The capture was cancelled.", 1, true});
        const bool begins_step = tick % (kTicks / 3) == 0;
        if (begins_step && request.takes_turns && !server.wait_for_turn({0, int64_t{1} << 40})) {
            continue;  // cancelled
        }
        const double x = static_cast<double>(tick) / kTicks;
        const double wave = std::abs(std::sin(x * 3.14159 * 3));
        server.send(Progress{"step", tick * 3 / kTicks + 1, 3});
        server.send(Sample{.time_ns = static_cast<int64_t>(x * 1.4e9),
                           .allocated_bytes = static_cast<int64_t>(peak * (0.35 + 0.65 * wave)),
                           .peak_bytes = static_cast<int64_t>(peak),
                           .step = tick * 3 / kTicks,
                           .phase = wave > 0.5 ? "backward" : "forward"});
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (tick == kTicks / 2) wait_while_held(server, request);
    }
    const std::string recipe = request.workload.value("recipe_name", "original");
    Trace trace =
        tests::make_synthetic_trace({.num_allocations = 6000, .in_place = recipe != "original"});
    trace.runs.set<&Run::recipe>(Id<Run>(0), trace.strings.intern(recipe));
    trace.runs.set<&Run::memory_limit_bytes>(Id<Run>(0), request.memory_limit_bytes);
    trace.runs.set<&Run::workload>(Id<Run>(0), trace.strings.intern(request.workload.dump()));
    if (batch == 97 && recipe == "original") return run_out_of_memory(std::move(trace), request);
    const auto written = write_trace(trace, request.output_path);
    if (!written) return tl::unexpected(ErrorFrame{written.error().message, 1});
    return ResultFrame{request.output_path, {}};
}

}  // namespace

int main() {
    WorkerServer server;
    return server.serve([&](const Request& request) { return capture(server, request); });
}
