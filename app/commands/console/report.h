#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/console/terminal.h"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>

/// What a command answers, and where the answer goes.
namespace app {

/// One answer in several forms. Only the form that the user asked for is made.
struct Report {
    std::function<nlohmann::json()> json;
    std::function<void(Output&)> text;
    std::function<std::string()> csv = {};  // none: the command writes no file of -o
};

/// Writes the answer to `file`, CSV or JSON by its ending. Empty: to no file.
models::Result<void> write_report(const Report& report, const std::string& file);

/// The same, and to standard output.
Outcome emit(Output& output, const Report& report, const std::string& file = {});

/// Errors: the file of -o ends neither in .csv nor in .json. `mode` is the option because of which
/// -o names such a file.
models::Result<void> check_ending(const std::string& file, std::string_view mode = {});

}  // namespace app
