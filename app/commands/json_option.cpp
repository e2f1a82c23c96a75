#include "app/commands/command.h"

#include <CLI/CLI.hpp>

namespace app {

void add_json_option(CLI::App& command, Chosen& chosen) {
    command.add_flag("--json", chosen.json, "one JSON document on standard output");
}

}  // namespace app
