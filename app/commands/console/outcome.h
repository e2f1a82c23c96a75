#pragma once

#include "app/commands/console/option_names.h"
#include "models/config/result.h"
#include "profiler/protocol/exit_code.h"

#include <cstddef>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

/// How a command ends.
namespace app {

using profiler::ExitCode;

struct Failure {
    ExitCode code = ExitCode::kFailed;
    std::string message;  // one sentence
};

using Outcome = tl::expected<ExitCode, Failure>;

inline tl::unexpected<Failure> failed(models::Error error) {
    return tl::unexpected(Failure{error.out_of_memory ? ExitCode::kOutOfMemory : ExitCode::kFailed,
                                  with_options(std::move(error.message), error.fields)});
}
inline tl::unexpected<Failure> wrong_usage(models::Error error) {
    return tl::unexpected(
        Failure{ExitCode::kUsage, with_options(std::move(error.message), error.fields)});
}
template <typename... Args>
tl::unexpected<Failure> fail_with(ExitCode code, fmt::format_string<Args...> text, Args&&... args) {
    return tl::unexpected(Failure{code, fmt::format(text, std::forward<Args>(args)...)});
}

/// A job of several that ran out of memory. The others go on.
struct OutOfMemoryJob {
    std::size_t job = 0;     // its place in the list
    std::string sentence;    // why, and what to do
    bool has_trace = false;  // its file shows what filled the memory
};
using OutOfMemoryJobs = std::vector<OutOfMemoryJob>;

}  // namespace app
