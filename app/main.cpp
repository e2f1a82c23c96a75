#include "app/commands/command.h"
#include "app/commands/console/terminal.h"
#include "app/commands/options/help.h"
#include "app/commands/window.h"

#include <csignal>
#include <exception>
#include <memory>
#include <string>

/// `temposcope`: the window and every command. Nothing here links libtorch: what needs it runs in
/// `temposcope-worker`.
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

void describe_program(CLI::App& program, app::Chosen& chosen) {
    program.name("temposcope");
    program.set_version_flag("--version", "temposcope " TEMPOSCOPE_VERSION,
                             "version of the program");
    program.set_help_flag("-h,--help", "this text");
    program.require_subcommand(0, 1);
    program.formatter(std::make_shared<app::HelpFormatter>());
    program.footer(kExamples);
    app::add_capture_command(program, chosen);
    app::add_sweep_command(program, chosen);
    app::add_plan_command(program, chosen);
    app::add_info_command(program, chosen);
    app::add_compare_command(program, chosen);
    app::add_replay_command(program, chosen);
    app::add_export_command(program, chosen);
    app::add_open_command(program, chosen);
    app::add_doctor_command(program, chosen);
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
    CLI::App program{kDescription};
    app::Chosen chosen;
    describe_program(program, chosen);
    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
        app::print_error(app::explain(program, error));
        return static_cast<int>(app::ExitCode::kUsage);
    }
    app::Output output(chosen.json);
    const auto outcome = chosen.run ? chosen.run(output) : app::open_window({});
    return finish(outcome, output);
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an output that cannot be written
    std::signal(SIGXFSZ, SIG_IGN);  // so is a file over the limit of its size (ulimit -f)
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        app::print_error(std::string("something that should not happen did: ") + error.what());
        return static_cast<int>(app::ExitCode::kFailed);
    }
}
