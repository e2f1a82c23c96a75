#pragma once

#include "app/commands/options/command_line.h"

#include <string>
#include <vector>

/// The commands of `temposcope`, one file each. `add_NAME_command` describes the options and says
/// what to run.
namespace app {

void add_capture_command(CommandLine& line);
void add_run_command(CommandLine& line);
void add_sweep_command(CommandLine& line);
void add_plan_command(CommandLine& line);
void add_explain_command(CommandLine& line);
void add_info_command(CommandLine& line);
void add_compare_command(CommandLine& line);
void add_movement_command(CommandLine& line);
void add_layouts_command(CommandLine& line);
void add_bench_command(CommandLine& line);
void add_replay_command(CommandLine& line);
void add_export_command(CommandLine& line);
void add_import_command(CommandLine& line);
void add_view_command(CommandLine& line);
void add_open_command(CommandLine& line);
void add_doctor_command(CommandLine& line);
void add_mcp_command(CommandLine& line);

/// Opens the window with these files and returns when the user closes it.
Outcome open_window(const std::vector<std::string>& files);

}  // namespace app
