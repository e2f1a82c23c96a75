#pragma once

#include "profiler/view/layers/layer_view.h"

#include <imgui.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace app {

struct SwitchColors {
    ImU32 a = 0;
    std::optional<ImU32> b = {};  // empty: there is no B
    bool with_letters = true;     // the chosen values carry an A and a B
};

/// What a click on a value changes; nullopt: not known yet.
struct SwitchEffect {
    using Rows = std::vector<std::pair<std::string, std::string>>;

    std::function<std::optional<int64_t>(const profiler::SwitchOption&)> peak_change_bytes;
    std::function<std::optional<Rows>(const profiler::SwitchOption&)> rows;  // of its tooltip
};

/// One row per switch with its values as buttons. The value of B, or of A where there is no B, is
/// lit; an arrow on the others says whether they lower or raise the peak. `asked` is the recipe
/// asked for last: its button shows that until B has it. Returns the value that was clicked; its
/// recipe is the one to show. Null: none was.
const profiler::SwitchOption* draw_recipe_switches(
    const std::vector<profiler::RecipeSwitchRow>& rows, const SwitchColors& colors,
    const std::string& asked, const SwitchEffect& effect = {});

}  // namespace app
