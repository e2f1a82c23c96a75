#include "app/commands/command.h"
#include "app/commands/console/terminal.h"
#include "app/commands/window.h"

#include <nlohmann/json.hpp>

#include <memory>

namespace app {

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
