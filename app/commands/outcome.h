#pragma once

#include "models/config/result.h"

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

/// How a command ends.
namespace app {

enum class ExitCode : uint8_t {
    kOk = 0,
    kFailed = 1,         // one sentence on standard error names the remedy
    kUsage = 2,          // the command line asks for something that does not exist
    kOutOfMemory = 3,    // where the command was not looking for it
    kConditionHeld = 4,  // of a --fail-if... option
};

struct Failure {
    ExitCode code = ExitCode::kFailed;
    std::string message;  // one sentence
};

using Outcome = tl::expected<ExitCode, Failure>;

inline tl::unexpected<Failure> failed(models::Error error) {
    return tl::unexpected(Failure{ExitCode::kFailed, std::move(error.message)});
}
inline tl::unexpected<Failure> wrong_usage(models::Error error) {
    return tl::unexpected(Failure{ExitCode::kUsage, std::move(error.message)});
}
template <typename... Args>
tl::unexpected<Failure> fail_with(ExitCode code, fmt::format_string<Args...> text, Args&&... args) {
    return tl::unexpected(Failure{code, fmt::format(text, std::forward<Args>(args)...)});
}

}  // namespace app
