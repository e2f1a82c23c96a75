#pragma once

#include "models/config/result.h"
#include "profiler/capture/capture_options.h"
#include "profiler/capture/processor_share.h"
#include "profiler/protocol/exit_code.h"
#include "profiler/protocol/worker_server.h"

#include <c10/util/Exception.h>

#include <string>
#include <utility>
#include <vector>

/// The parts that the worker's answers have in common.
namespace app {

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

/// The note of a measurement on a processor; a GPU's times do not depend on the host's threads.
inline std::string busy_note(const profiler::Request& request,
                             const profiler::ProcessorShare& processor) {
    return request.device == "cpu" ? profiler::busy_machine_note(processor.share()) : "";
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
