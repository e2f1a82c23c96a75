#include "app/commands/command.h"
#include "app/commands/console/terminal.h"
#include "app/window/session.h"
#include "profiler/trace/file/readable_file.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>

namespace app {

Outcome open_window(const std::vector<std::string>& files) {
    WindowOptions options;
    for (const std::string& file : files) {
        std::error_code error;
        if (!std::filesystem::is_directory(file, error)) {
            const auto readable = profiler::check_readable(file);
            if (!readable) return failed(readable.error());
        }
        options.files.emplace_back(file);
    }
    const auto closed = run_window(options);
    if (!closed) return failed(closed.error());
    return ExitCode::kOk;
}

void add_open_command(CommandLine& line) {
    Command& command = line.add_command("open", "Open traces in the window");
    auto files = std::make_shared<std::vector<std::string>>();
    command.add({.names = "FILE",
                 .help = "traces, PyTorch memory snapshots, or folders of them",
                 .is_required = true},
                files.get());
    command.footer(
        "Without a command, temposcope opens the window with the traces of the last time.\n\n"
        "Example:\n"
        "  temposcope open out/original.tscope out/tempo.tscope\n"
        "  temposcope open snapshot.pickle\n");
    command.on_run([files](Output& output) {
        const Outcome outcome = open_window(*files);
        if (outcome) output.document({{"files", *files}});
        return outcome;
    });
}

}  // namespace app
