/// A worker without torch. TEMPOSCOPE_FAKE chooses what happens to each capture.
#include "profiler/protocol/worker_server.h"
#include "profiler/trace/trace_bytes.h"
#include "profiler/trace/trace_file.h"
#include "tests/profiler/planner/toy_step.h"
#include "tests/support/trace_builder.h"

#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

using namespace tests;
using namespace std::chrono_literals;

tl::unexpected<ErrorFrame> error(std::string message, int exit_code = 1) {
    return tl::unexpected(ErrorFrame{.message = std::move(message), .exit_code = exit_code});
}

/// Steps of the recipe `tempo` take 8 % longer than those of the others.
WorkerOutcome write_steps(const Request& request, const std::string& act, WorkerServer& server) {
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return error(workload.error().message);
    TraceBuilder b(*workload);
    for (int64_t step = 0; step < request.steps; ++step) {
        if (request.takes_turns) {
            const auto turn = server.wait_for_turn(
                {.held_bytes = 1 << 20, .available_bytes = act == "large" ? 0 : int64_t{1} << 40});
            if (!turn) return tl::unexpected(ErrorFrame{.message = "Gone.", .cancelled = true});
            const nlohmann::json turns{{"run", turn->run}, {"recipes", turn->recipes}};
            b.trace().runs.set<&Run::software>(
                Id<Run>(0),
                b.trace().strings.intern(nlohmann::json{{"measured_in_turn", turns}}.dump()));
        }
        server.send(profiler::Progress{"step", step, request.steps});
        b.begin_step();
        b.free(b.allocate({.bytes = 1000 * workload->batch_size, .op = b.op("aten::addmm")}));
        b.wait((step + 1) * (workload->recipe_name == "tempo" ? 1'080'000 : 1'000'000));
        b.end_step(act == "nan" ? std::nan("") : 0.5);
    }
    if (request.kind == RequestKind::kSweep) {
        const auto point = b.trace().sweep_points.append({.batch_size = 1});
        b.trace().sweep_samples.append({.point = point, .step_time_ns = 1'000'000});
        b.trace().sweep_points.append({.batch_size = 2, .outcome = SweepOutcome::kOutOfMemory});
    }
    const auto written = write_trace(b.finish(), request.output_path);
    if (!written) return error(written.error().message);
    return ResultFrame{.path = request.output_path, .summary = nlohmann::json::object()};
}

WorkerOutcome trace_toy(const Request& request, const std::string& act) {
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return error(workload.error().message);
    if (act == "out-of-memory") return error("There is not enough memory on this machine.", 3);
    return ResultFrame{.summary = nlohmann::json::object(),
                       .payload = to_bytes(make_toy_step(*workload))};
}

WorkerOutcome answer(const Request& request, WorkerServer& server) {
    const char* variable = std::getenv("TEMPOSCOPE_FAKE");
    const std::string act = variable == nullptr ? "" : variable;
    if (request.kind == RequestKind::kPredictStep) return trace_toy(request, act);
    if (request.kind == RequestKind::kDoctor) {
        return ResultFrame{
            .path = "",
            .summary = {{"checks",
                         {{{"name", "torch"}, {"status", "ok"}, {"detail", "2.11.0"}},
                          {{"name", "driver"},
                           {"status", "missing"},
                           {"detail", "no NVIDIA driver"},
                           {"remedy", "Install one to measure on a GPU."}}}}}};
    }
    server.send(profiler::Progress{"warm-up", 1, 1});
    server.send(profiler::Sample{.allocated_bytes = 1 << 20, .peak_bytes = 1 << 21});
    if (act == "out-of-memory") {
        return tl::unexpected(ErrorFrame{.message = "Out of memory: batch 8 does not fit.",
                                         .exit_code = 3,
                                         .fields = {"batch_size"}});
    }
    if (act == "slow") {
        while (!server.cancelled()) std::this_thread::sleep_for(10ms);
        return tl::unexpected(ErrorFrame{.message = "The capture was cancelled; nothing was saved.",
                                         .cancelled = true});
    }
    if (act == "dies") std::abort();
    return write_steps(request, act, server);
}

}  // namespace

int main() {
    WorkerServer server;
    return server.serve([&](const Request& request) { return answer(request, server); });
}
