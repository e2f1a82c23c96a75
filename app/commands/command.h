#pragma once

#include "app/commands/console/outcome.h"

#include <functional>
#include <string>

namespace CLI {
class App;
}

/// The commands of `temposcope`, one file each. `add_NAME_command` describes the options; when the
/// command line names the command, it stores what to run in `chosen`.
namespace app {

class Output;

struct Chosen {
    std::function<Outcome(Output&)> run;  // empty: no command, the window opens
    bool json = false;
};

void add_capture_command(CLI::App& program, Chosen& chosen);
void add_sweep_command(CLI::App& program, Chosen& chosen);
void add_plan_command(CLI::App& program, Chosen& chosen);
void add_info_command(CLI::App& program, Chosen& chosen);
void add_compare_command(CLI::App& program, Chosen& chosen);
void add_replay_command(CLI::App& program, Chosen& chosen);
void add_export_command(CLI::App& program, Chosen& chosen);
void add_open_command(CLI::App& program, Chosen& chosen);
void add_doctor_command(CLI::App& program, Chosen& chosen);

/// `--json`, as every command that prints has it.
void add_json_option(CLI::App& command, Chosen& chosen);

}  // namespace app
