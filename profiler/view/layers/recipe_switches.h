#pragma once

#include "models/config/workload.h"
#include "profiler/trace/trace.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// The switches of a recipe as rows of buttons: what A and B chose, and the recipe that each other
/// value leads to.
namespace profiler {

struct SwitchOption {
    std::string name;    // "in_place"
    std::string phrase;  // "in-place GELU"
    std::string recipe;  // of the whole step, with this value: "gelu=in_place,masks=bit"
};

struct RecipeSwitchRow {
    std::string name;  // "gelu"
    std::vector<SwitchOption> options;
    std::array<std::size_t, 2> chosen{kNone, kNone};  // option of A and B

    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
};

/// One row per switch of a layer. The chosen values are those of `layer`. An option's recipe is
/// that of B, or of A if there is no B, with the value in all layers; where the value needs other
/// switches, these are set too. Empty if a trace does not say its workload. `second` may be null.
std::vector<RecipeSwitchRow> recipe_switches(const Trace& first, const Trace* second,
                                             int64_t layer);
std::vector<RecipeSwitchRow> recipe_switches(const models::Workload& first,
                                             const models::Workload* second, int64_t layer);

/// Canonical text of a trace's recipe: equal for traces of the same recipe, however the user named
/// it. Nullopt if the trace does not say.
std::optional<std::string> canonical_recipe(const Trace& trace);

}  // namespace profiler
