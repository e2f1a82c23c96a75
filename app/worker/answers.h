#pragma once

#include "models/config/result.h"
#include "profiler/capture/capture_options.h"
#include "profiler/capture/cuda_source.h"
#include "profiler/capture/training_device.h"
#include "profiler/protocol/exit_code.h"
#include "profiler/protocol/worker_server.h"
#include "profiler/trace/available_memory.h"

#include <c10/util/Exception.h>
#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the worker answers to requests, and what its answers have in common.
namespace app {

/// Does what `request` asks for: trains, records and writes a trace, or measures. Sends progress
/// and samples through `server`, and asks it whether the request was cancelled. Neither it nor the
/// answers to its kinds of requests throw.
profiler::WorkerOutcome answer_request(const profiler::Request& request,
                                       profiler::WorkerServer& server);

/// Trains the steps of a workload at the batches of the request, and answers with their times
/// (MeasuredBatches). A batch that does not fit is a result. Writes no file.
profiler::WorkerOutcome run_try_batches(const profiler::Request& request,
                                        profiler::WorkerServer& server);

/// Measures the request's device; the result's summary is a DeviceSpeed.
profiler::WorkerOutcome run_calibrate(const profiler::Request& request,
                                      profiler::WorkerServer& server);

/// {device, and what models::to_json(BenchmarkTime) gives}. Memory that does not suffice is a
/// result.
profiler::WorkerOutcome run_benchmark(const profiler::Request& request,
                                      profiler::WorkerServer& server);

/// Measures the ops of an encoder layer of the request's sizes in every dimension order; the
/// result's summary is a LayoutGraph. For kTimeLayoutRuns it runs whole layers; the summary has
/// `times_ns`, the median of each.
profiler::WorkerOutcome run_measure_layouts(const profiler::Request& request,
                                            profiler::WorkerServer& server);

/// Describes torch and each part that CUDA needs, for `temposcope doctor`:
/// {"checks": [{name, status, detail, remedy}, ...]}, with `status` "ok" or "missing". Opens
/// libtorch_cuda and our modules, but creates no CUDA context.
nlohmann::json describe_machine();

// ---- devices -----------------------------------------------------------------------------------

/// The device of a request: "cpu", "cuda", or "auto" (the GPU if it can be used, else the
/// processor). It lives as long as the process.
/// Errors: one sentence on what is missing, and how to go on.
models::Result<profiler::TrainingDevice*> find_training_device(std::string_view name);

/// CUDA as this process has it: of the machine, or a virtual one.
/// Errors: one sentence on what is missing.
models::Result<profiler::CudaSource*> find_cuda();

// ---- parts of answers ---------------------------------------------------------------------------

inline tl::unexpected<profiler::ErrorFrame> failure(
    std::string message, profiler::ExitCode exit_code = profiler::ExitCode::kFailed) {
    return tl::unexpected(profiler::ErrorFrame{.message = std::move(message),
                                               .exit_code = static_cast<int>(exit_code)});
}

/// The same with the fields of the error.
inline tl::unexpected<profiler::ErrorFrame> failure(
    const models::Error& error, profiler::ExitCode exit_code = profiler::ExitCode::kFailed) {
    auto answer = failure(error.message, exit_code);
    answer.value().fields = std::vector<std::string>(error.fields.begin(), error.fields.end());
    return answer;
}

inline tl::unexpected<profiler::ErrorFrame> cancellation(std::string message) {
    auto answer = failure(std::move(message));
    answer.value().cancelled = true;
    return answer;
}

/// Callbacks that send progress to the program and ask whether it has cancelled.
inline profiler::CaptureCallbacks callbacks_to(profiler::WorkerServer& server) {
    return {.progress =
                [&server](std::string_view stage, int64_t done, int64_t total) {
                    server.send(profiler::Progress{std::string(stage), done, total});
                },
            .wait_for_turn = {},
            .phase_begun = {},
            .step_done = {},
            .cancelled = [&server] { return server.cancelled(); }};
}

/// Waits for the program's permission to run a step. Throws Cancelled.
inline profiler::Turn wait_for_turn(profiler::WorkerServer& server) {
    const auto turn = server.wait_for_turn({.held_bytes = profiler::resident_memory_bytes(),
                                            .available_bytes = profiler::available_memory_bytes()});
    if (!turn) throw profiler::Cancelled();
    return {.run = turn->run, .recipes = turn->recipes};
}

/// The first line of an error, without its full stop. Those of torch have a backtrace below it.
inline std::string first_line(const std::exception& error) {
    const auto* const torch = dynamic_cast<const c10::Error*>(&error);
    const std::string text = torch != nullptr ? torch->what_without_backtrace() : error.what();
    std::string line = text.substr(0, text.find('\n'));
    while (line.ends_with('.')) line.pop_back();
    return line;
}

}  // namespace app
