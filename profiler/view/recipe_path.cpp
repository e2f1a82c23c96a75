#include "models/config/layer_recipes.h"
#include "models/config/switches.h"
#include "profiler/trace/units.h"
#include "profiler/view/no_value.h"
#include "profiler/view/recipe_frontier_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

// The path of recipe_frontier_view.h.
namespace profiler {
namespace {

using models::Recipe;

constexpr double kNsPerMs = 1e6;

/// One switch that still differs from the end of the path.
struct SwitchChange {
    std::string phrase;
    Recipe after;  // the recipe so far, with this switch as at the end
};

std::vector<SwitchChange> open_changes(const Recipe& now, const Recipe& end) {
    std::vector<SwitchChange> changes;
    models::for_each_switch([&](const auto& table) {
        if (now.*table.member == end.*table.member) return;
        SwitchChange change{std::string(table.chosen(end).phrase), now};
        change.after.*table.member = end.*table.member;
        changes.push_back(std::move(change));
    });
    return changes;
}

/// What is switched first: what only gains, then what pays for itself, then what buys time with
/// memory, and last what only costs. In a group the larger rank first.
struct Order {
    int group = 0;
    double rank = 0;

    friend bool operator<(const Order& a, const Order& b) {
        return a.group != b.group ? a.group < b.group : a.rank > b.rank;
    }
};

Order order_of(const PathStep& step) {
    const auto saved = static_cast<double>(step.saved_bytes);
    const auto lost = static_cast<double>(step.lost_ns);
    if (saved >= 0 && lost <= 0) return {0, saved};
    if (saved > 0) return {1, saved / lost};
    if (lost < 0) return {2, lost / saved};
    return {3, saved};
}

/// "-1.00 ms"; "≈ 0" for 0.
std::string change_of_step(int64_t lost_ns) {
    if (lost_ns == 0) return "≈ 0";
    return with_sign(lost_ns, format_duration(std::abs(lost_ns)));
}

std::string gain_text(int64_t saved_bytes, int64_t lost_ns) {
    if (saved_bytes == 0 && lost_ns == 0) return "no change";
    if (saved_bytes >= 0 && lost_ns <= 0) return "free";
    if (saved_bytes <= 0 && lost_ns >= 0) return "no gain";
    // One of the two is paid with the other.
    const double bytes_per_ms =
        static_cast<double>(saved_bytes) / (static_cast<double>(lost_ns) / kNsPerMs);
    const std::string rate = format_bytes(std::llround(bytes_per_ms)) + "/ms";
    return saved_bytes > 0 ? rate : "costs " + rate;  // less time is paid with memory
}

/// Figures from one dot to the next.
PathStep step_between(const RecipeDot& from, const RecipeDot& to, std::string change) {
    PathStep step{.change = std::move(change), .recipe = to.recipe, .is_planned = true};
    step.saved_bytes = from.needed_bytes - to.needed_bytes;
    step.lost_ns = to.step_time_ns - from.step_time_ns;
    step.memory_text = change_in_bytes(-step.saved_bytes);
    // A prediction cannot resolve a thousandth of the step.
    const bool is_as_fast = std::llabs(step.lost_ns) * 1000 < from.step_time_ns;
    const int64_t shown_ns = is_as_fast ? 0 : step.lost_ns;
    step.time_text = change_of_step(shown_ns);
    step.gain_text = gain_text(step.saved_bytes, shown_ns);
    return step;
}

/// The switches that are left, as one step: none of them can be made alone, or none is planned.
PathStep all_at_once(const RecipeDot& from, const RecipeDot& to,
                     const std::vector<SwitchChange>& changes) {
    std::vector<std::string> phrases;
    for (const SwitchChange& change : changes) phrases.push_back(change.phrase);
    return step_between(from, to, fmt::format("{}", fmt::join(phrases, " + ")));
}

}  // namespace

RecipePath recipe_path(const RecipeFrontierView& view, std::size_t from, std::size_t to) {
    RecipePath path;
    if (from >= view.dots.size() || to >= view.dots.size()) return path;
    const RecipeDot& end = view.dots[to];
    path.total = step_between(view.dots[from], end, "in all");
    const auto first = models::parse_layer_recipes(view.dots[from].recipe);
    const auto last = models::parse_layer_recipes(end.recipe);
    if (!first || !last || !first->layers.empty() || !last->layers.empty()) {
        path.why_none = "Layers have recipes of their own, so no switch leads from one to another.";
        return path;
    }
    if (from == to) path.why_none = "Both are the same recipe.";
    const RecipeDot* here = &view.dots[from];
    Recipe now = first->recipe;
    for (auto changes = open_changes(now, last->recipe); !changes.empty();
         changes = open_changes(now, last->recipe)) {
        std::optional<PathStep> best;
        const SwitchChange* chosen = nullptr;
        for (const SwitchChange& change : changes) {
            const auto dot = find_dot(view, models::to_text(change.after));
            if (!dot) continue;
            PathStep step = step_between(*here, view.dots[*dot], change.phrase);
            if (best && !(order_of(step) < order_of(*best))) continue;
            best = std::move(step);
            chosen = &change;
        }
        if (!best) {
            path.steps.push_back(all_at_once(*here, end, changes));
            break;
        }
        now = chosen->after;
        here = &view.dots[*find_dot(view, best->recipe)];
        path.steps.push_back(std::move(*best));
    }
    return path;
}

}  // namespace profiler
