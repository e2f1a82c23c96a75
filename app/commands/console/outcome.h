#pragma once

#include "models/config/result.h"
#include "profiler/protocol/exit_code.h"

#include <string>
#include <string_view>
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

/// The sentence with the options of `fields` before its full stop, since layers below do not know
/// options: "... choose a smaller batch." and batch_size -> "... choose a smaller batch (--batch)."
std::string with_options(std::string sentence, const std::vector<std::string_view>& fields);

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

}  // namespace app
