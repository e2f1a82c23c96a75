/// A worker without torch. TEMPOSCOPE_FAKE chooses what happens to each capture.
#include "profiler/layouts/encoder_ops.h"
#include "profiler/layouts/layout_plan.h"
#include "profiler/protocol/measurements.h"
#include "profiler/protocol/worker_server.h"
#include "profiler/trace/file/trace_bytes.h"
#include "profiler/trace/file/trace_file.h"
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

/// A layer of `original` takes 4 MiB and 1 ms for each sequence. In-place GELU saves 1 MiB; the
/// in-place LayerNorm saves 1 MiB too, and takes 2 ms. A step takes 20 ms more.
WorkerOutcome try_batches(const Request& request, WorkerServer& server) {
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return error(workload.error().message);
    int64_t bytes = 0, time_ns = 0;
    for (int64_t layer = 0; layer < workload->model.num_layers; ++layer) {
        const auto recipe = recipe_of_layer(layer_recipes_of(*workload), layer);
        const bool has_gelu = recipe.gelu == models::Gelu::kInPlace;
        const bool has_norm = recipe.layer_norm == models::LayerNorm::kFromOutput;
        bytes += (4 - (has_gelu ? 1 : 0) - (has_norm ? 1 : 0)) * (int64_t{1} << 20);
        time_ns += has_norm ? 3'000'000 : 1'000'000;
    }
    MeasuredBatches tried{.device_name = "A processor of a test"};
    for (const int64_t batch_size : request.batch_sizes) {
        MeasuredBatch& batch = tried.batches.emplace_back(MeasuredBatch{.batch_size = batch_size});
        batch.fits = bytes * batch_size <= request.memory_limit_bytes;
        for (int64_t step = 0; batch.fits && step < request.steps; ++step) {
            if (request.takes_turns && !server.wait_for_turn({.held_bytes = 1})) break;
            batch.step_times_ns.push_back(20'000'000 + time_ns * batch_size);
        }
    }
    return ResultFrame{.summary = to_json(tried)};
}

/// Every configuration takes as many microseconds as its orders differ from sorted ones.
WorkerOutcome measure_layouts(const Request& request) {
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return error(workload.error().message);
    const models::ModelConfig& model = workload->model;
    LayoutGraph graph = make_layout_graph({.batch_size = workload->batch_size,
                                           .seq_len = workload->seq_len,
                                           .hidden_size = model.hidden_size,
                                           .num_heads = model.num_heads,
                                           .intermediate_size = model.intermediate_size});
    graph.device_name = "A processor of a test";
    graph.num_rounds = request.steps;
    for (LayoutTensor& tensor : graph.tensors) {
        const std::size_t count = tensor.orders.size();
        const bool has_copies = tensor.role != LayoutRole::kWeight;
        if (has_copies) tensor.copy_ns.assign(count * count, 3000);
    }
    for (LayoutOp& op : graph.ops) {
        for (LayoutConfiguration& one : op.configurations) {
            one.time_ns = 10'000;
            for (const uint8_t order : one.orders) one.time_ns += 1000 * order;
        }
    }
    return ResultFrame{.summary = to_json(graph)};
}

/// A layer takes 1 ms; each one after the first takes 1 ms more than the one before.
WorkerOutcome time_layout_runs(const Request& request) {
    std::vector<double> times_ns;
    for (const nlohmann::json& one : request.layout_runs) {
        const auto run = layout_run_from_json(one);
        if (!run) return error(run.error().message);
        times_ns.push_back(1e6 * static_cast<double>(times_ns.size() + 1));
    }
    return ResultFrame{.summary = {{"times_ns", times_ns}}};
}

WorkerOutcome answer(const Request& request, WorkerServer& server) {
    const char* variable = std::getenv("TEMPOSCOPE_FAKE");
    const std::string act = variable == nullptr ? "" : variable;
    if (request.kind == RequestKind::kPredictStep) return trace_toy(request, act);
    if (request.kind == RequestKind::kTryBatches) return try_batches(request, server);
    if (request.kind == RequestKind::kMeasureLayouts) return measure_layouts(request);
    if (request.kind == RequestKind::kTimeLayoutRuns) return time_layout_runs(request);
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
    if (request.kind == RequestKind::kBenchmark) {
        return ResultFrame{.summary = {{"device", "A fake processor"},
                                       {"time_ns", 2'000'000},
                                       {"samples", 3},
                                       {"peak_allocated_bytes", 1 << 30},
                                       {"out_of_memory", false}}};
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
