#include "app/commands/command.h"
#include "app/commands/console/terminal.h"
#include "app/commands/options/command_line.h"
#include "app/commands/window.h"

#include <csignal>
#include <exception>
#include <string>

/// `temposcope`: the window and every command. This program does not link libtorch; work that needs
/// libtorch runs in `temposcope-worker`.
namespace {

constexpr const char* kDescription =
    "Temposcope shows where the memory of a Transformer's training step goes, and what another\n"
    "recipe (Tempo, DeepSpeed, checkpointing, ...) would save and cost.";

constexpr const char* kExamples =
    "Without a command the window opens.\n\n"
    "Examples:\n"
    "  temposcope capture --model bert-large --layers 3 --recipe original,tempo -o out\n"
    "  temposcope compare out/*.tscope\n"
    "  temposcope open out/*.tscope\n\n"
    "Exit codes: 0 ok; 1 failed; 2 wrong usage; 3 out of memory; 4 a --fail-if... condition held.";

void add_commands(app::CommandLine& line) {
    app::add_capture_command(line);
    app::add_sweep_command(line);
    app::add_plan_command(line);
    app::add_info_command(line);
    app::add_compare_command(line);
    app::add_replay_command(line);
    app::add_export_command(line);
    app::add_open_command(line);
    app::add_doctor_command(line);
}

int finish(const app::Outcome& outcome, app::Output& output) {
    if (!outcome) {
        app::print_error(outcome.error().message);
        return static_cast<int>(outcome.error().code);
    }
    if (const auto written = output.flush(); !written) {
        app::print_error(written.error().message);
        return static_cast<int>(app::ExitCode::kFailed);
    }
    return static_cast<int>(*outcome);
}

int run(int argc, char** argv) {
    app::CommandLine line("temposcope", "temposcope " TEMPOSCOPE_VERSION, kDescription, kExamples);
    add_commands(line);
    const auto parsed = line.parse(argc, argv);
    if (!parsed) {
        app::print_error(parsed.error().message);
        return static_cast<int>(app::ExitCode::kUsage);
    }
    if (!*parsed) return static_cast<int>(app::ExitCode::kOk);
    app::Output output(line.json());
    return finish(line.has_command() ? line.run(output) : app::open_window({}), output);
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a write to a closed pipe shall fail, not end the program
    std::signal(SIGXFSZ, SIG_IGN);  // the same for a write over the size limit (ulimit -f)
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        app::print_error(std::string("an internal error: ") + error.what());
        return static_cast<int>(app::ExitCode::kFailed);
    }
}
