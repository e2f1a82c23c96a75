#include "app/commands/command.h"
#include "app/commands/console/terminal.h"
#include "app/commands/worker/machine.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace app {
namespace {

Style style_of(CheckStatus status) {
    switch (status) {
        case CheckStatus::kOk:
            return Style::kGood;
        case CheckStatus::kWarning:
            return Style::kWarning;
        case CheckStatus::kMissing:
            return Style::kBad;
    }
    return Style::kPlain;
}

void print_checks(Output& output, const std::vector<MachineCheck>& checks) {
    std::size_t name_width = 0;
    for (const MachineCheck& check : checks) name_width = std::max(name_width, check.name.size());
    for (const MachineCheck& check : checks) {
        const std::string status(name_of(check.status));
        output.line(fmt::format("{:<{}}  {}{}  {}", check.name, name_width,
                                output.styled(status, style_of(check.status)),
                                std::string(7 - status.size(), ' '), check.detail));
        if (!check.remedy.empty()) {
            output.line(fmt::format("{:<{}}           {}", "", name_width,
                                    output.styled(check.remedy, Style::kDim)));
        }
    }
}

Outcome run_doctor(Output& output) {
    const MachineReport report = examine_machine();
    nlohmann::json rows = nlohmann::json::array();
    for (const MachineCheck& check : report.checks) {
        rows.push_back({{"name", check.name},
                        {"status", name_of(check.status)},
                        {"detail", check.detail},
                        {"remedy", check.remedy}});
    }
    output.document(
        {{"version", TEMPOSCOPE_VERSION}, {"can_capture", report.can_capture}, {"rows", rows}});
    print_checks(output, report.checks);
    output.line();
    output.line(
        report.can_capture
            ? "Captures on the CPU can run here, and predictions for any GPU (plan, capture "
              "--device predict:GPU)."
            : "Captures and predictions cannot run here until what is missing above is mended.");
    return ExitCode::kOk;
}

}  // namespace

void add_doctor_command(CommandLine& line) {
    Command& command = line.add_command("doctor", "What this machine offers, and what is missing");
    command.footer("Example:\n  temposcope doctor --json\n");
    command.on_run(run_doctor);
}

}  // namespace app
