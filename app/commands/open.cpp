#include "app/commands/command.h"
#include "app/commands/console/terminal.h"
#include "app/commands/window.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

namespace app {

void add_open_command(CLI::App& program, Chosen& chosen) {
    auto* command = program.add_subcommand("open", "Open traces in the window");
    auto files = std::make_shared<std::vector<std::string>>();
    command->add_option("FILE", *files, "traces, PyTorch memory snapshots, or folders of them")
        ->required();
    command->footer(
        "Without a command, temposcope opens the window, which lists the recent files.\n\n"
        "Examples:\n"
        "  temposcope open out/original.tscope out/tempo.tscope\n"
        "  temposcope open snapshot.pickle\n");
    add_json_option(*command, chosen);
    command->callback([files, &chosen] {
        chosen.run = [files](Output& output) {
            const Outcome outcome = open_window(*files);
            if (outcome) output.document({{"files", *files}});
            return outcome;
        };
    });
}

}  // namespace app
