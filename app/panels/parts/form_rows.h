#pragma once

#include "models/config/recipe.h"

#include <string>
#include <vector>

/// Rows of a form: a table with a column of labels and a column of controls.
namespace app {

/// Begins a row; the control that follows fills the second column.
void form_row(const char* label);

/// A row in which presets are ticked, each beside what it does, and chosen recipes of the user's
/// own can be taken away. `preview` is shown while the list
/// is closed; presets that `is_offered` refuses are left out.
void recipes_row(std::vector<std::string>& chosen, const std::string& preview,
                 bool (*is_offered)(const models::Recipe&));

}  // namespace app
