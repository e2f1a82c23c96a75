#pragma once

#include "app/workspace/panel_events.h"
#include "app/workspace/selection.h"
#include "profiler/view/recipe_switches.h"

#include <string>
#include <vector>

namespace app {

/// One row per switch with its values as buttons. A's value carries an A, B's value is lit and
/// carries a B. Choosing another value asks for its recipe (PanelEvents::try_recipe). `asked` is
/// the recipe asked for last: its button shows that until B has it.
void draw_recipe_switches(const std::vector<profiler::RecipeSwitchRow>& rows,
                          const Selection& selection, std::string& asked, PanelEvents& events);

}  // namespace app
