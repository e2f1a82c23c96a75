#pragma once

#include "app/workspace/workspace.h"
#include "models/config/recipe.h"

#include <string>
#include <string_view>
#include <vector>

namespace profiler {
struct Gpu;
}

/// Rows of a form, which is a table with a column of labels and a column of controls; and lists to
/// choose from.
namespace app {

/// Begins a row; the control that follows fills the second column.
void form_row(const char* label);

/// A row to tick presets, each beside its effect, and to remove the user's own recipes. `preview`
/// is shown while the list is closed. Presets that `is_offered` refuses are left out.
void recipes_row(std::vector<std::string>& chosen, const std::string& preview,
                 bool (*is_offered)(const models::Recipe&));

/// The rows of an open list of GPUs: name at the left, memory at the right. Returns the clicked
/// GPU.
const profiler::Gpu* gpu_rows(const std::vector<profiler::Gpu>& gpus, std::string_view chosen_id);

/// A closed list that shows the chosen GPU, or the chosen id if no GPU has it. Returns the clicked
/// GPU.
const profiler::Gpu* gpu_list(const char* id, const std::vector<profiler::Gpu>& gpus,
                              std::string_view chosen_id);

/// In the place of a plan: A is a program of the user's, and the window plans built-in models.
void draw_nothing_planned(const Workspace& workspace, PanelEvents& events);

}  // namespace app
