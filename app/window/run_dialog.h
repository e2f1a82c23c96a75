#pragma once

#include "app/workspace/program_jobs.h"

#include <optional>
#include <vector>

/// The dialog that runs a program of the user's: command, folder, GPU, steps.
namespace app {

struct RunDialogState {
    bool request_open = false;  // set this to open the dialog
    ProgramForm form;
};

/// Draws the dialog while it is open. Returns the form in the frame in which the user starts it.
std::optional<ProgramForm> draw_run_dialog(const std::vector<profiler::Gpu>& gpus,
                                           RunDialogState& state);

}  // namespace app
