#include "app/commands/command.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/terminal.h"
#include "app/commands/options/command_line.h"
#include "profiler/protocol/messages.h"
#include "profiler/protocol/process_environment.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

/// `temposcope`: the window and every command. This program does not link libtorch; work that needs
/// libtorch runs in `temposcope-worker`.
namespace {

constexpr const char* kDescription =
    "Temposcope shows what fills the memory of a GPU when you train a PyTorch model, and what\n"
    "would make it fit. It records your program unchanged, also on a GPU that you do not have.";

constexpr const char* kExamples =
    "Without a command the window opens.\n\n"
    "Examples, with a train.py of your own:\n"
    "  Record three training steps; then on a simulated H100, which needs no GPU:\n"
    "    temposcope run -- python train.py\n"
    "    temposcope run --gpu h100-sxm -o h100.tscope -- python train.py\n"
    "  What fills the memory, what to do about it, and which lines of code hold it:\n"
    "    temposcope explain train.tscope\n"
    "    temposcope info train.tscope --peak --by line\n"
    "  What checkpointing saves and costs:\n"
    "    temposcope run --gpu h100-sxm --apply checkpoint -o less.tscope -- python train.py\n"
    "    temposcope compare h100.tscope less.tscope\n"
    "  The window, or a page for a browser:\n"
    "    temposcope open train.tscope\n"
    "    temposcope view train.tscope --serve\n\n"
    "Exit codes: 0 ok; 1 failed; 2 wrong usage; 3 out of memory; 4 a --fail-if... condition held.";

void add_commands(app::CommandLine& line) {
    // The help page lists them in this order: a program of the reader's own first, built-in models
    // and the project's own measurements last.
    app::add_run_command(line);
    app::add_explain_command(line);
    app::add_info_command(line);
    app::add_compare_command(line);
    app::add_open_command(line);
    app::add_view_command(line);
    app::add_plan_command(line);
    app::add_replay_command(line);
    app::add_movement_command(line);
    app::add_import_command(line);
    app::add_export_command(line);
    app::add_doctor_command(line);
    app::add_mcp_command(line);
    app::add_capture_command(line);
    app::add_sweep_command(line);
    app::add_bench_command(line);
    app::add_layouts_command(line);
}

int status_of(app::ExitCode code) { return static_cast<int>(code); }

int report_failure(const std::string& sentence, app::ExitCode code) {
    app::print_error(sentence);
    return status_of(code);
}

constexpr const char* kNoMemory =
    "This program ran out of memory: close other programs, or raise the limit on memory "
    "(ulimit -v).";

/// A destructor that needs memory and gets none ends here; those of the JSON library do. The
/// sentence needs memory too: the second attempt does without.
[[noreturn]] void end_after_exception() {
    static std::atomic_flag is_ending;
    if (is_ending.test_and_set()) std::_Exit(status_of(app::ExitCode::kOutOfMemory));
    try {
        if (std::current_exception()) std::rethrow_exception(std::current_exception());
    } catch (const std::bad_alloc&) {
        report_failure(kNoMemory, app::ExitCode::kOutOfMemory);
        std::_Exit(status_of(app::ExitCode::kOutOfMemory));
    } catch (const std::exception& error) {
        report_failure(fmt::format("an internal error: {}; please report it.", error.what()),
                       app::ExitCode::kFailed);
    }
    std::abort();
}

int finish(const app::Outcome& outcome, app::Output& output) {
    if (!outcome) return report_failure(outcome.error().message, outcome.error().code);
    const auto written = output.flush();
    return written ? status_of(*outcome)
                   : report_failure(written.error().message, app::ExitCode::kFailed);
}

/// The text that --help or --version asked for.
int write_answer(const std::string& text) {
    const auto written = app::write_output(text);
    return written ? status_of(app::ExitCode::kOk)
                   : report_failure(written.error().message, app::ExitCode::kFailed);
}

int run(int argc, char** argv) {
    app::CommandLine line("temposcope", "temposcope " TEMPOSCOPE_VERSION, kDescription, kExamples);
    add_commands(line);
    const auto parsed = line.parse(argc, argv);
    if (!parsed) return report_failure(parsed.error().message, app::ExitCode::kUsage);
    if (!*parsed) return write_answer(line.answer());
    app::Output output(line.json());
    return finish(line.has_command() ? line.run(output) : app::open_window({}), output);
}

}  // namespace

int main(int argc, char** argv) {
    profiler::open_missing_standard_streams();
    std::signal(SIGPIPE, SIG_IGN);  // a write to a closed pipe shall fail, not end the program
    std::signal(SIGXFSZ, SIG_IGN);  // the same for a write over the size limit (ulimit -f)
    std::signal(SIGCHLD, SIG_DFL);  // ignored, it would hide how a child ended
    app::clean_up_on_signals();
    std::set_terminate(end_after_exception);
    try {
        return run(argc, argv);
    } catch (const std::bad_alloc&) {
        return report_failure(kNoMemory, app::ExitCode::kOutOfMemory);
    } catch (const std::exception& error) {
        if (profiler::lacks_threads(error)) {
            return report_failure(std::string(profiler::kNoMoreThreads),
                                  app::ExitCode::kOutOfMemory);
        }
        return report_failure(fmt::format("an internal error: {}; please report it.", error.what()),
                              app::ExitCode::kFailed);
    }
}
