#include "profiler/view/plan/recipe_frontier_view.h"

#include "models/config/layer_recipes.h"
#include "models/config/switches.h"
#include "profiler/analysis/step/throughput.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

using models::Recipe;

constexpr double kMargin = 0.10;          // of an axis, beside the outermost dots
constexpr double kSameMemory = 1.05;      // GPUs whose memory differs by less share a line
constexpr std::size_t kMostGpuNames = 2;  // on a line
/// A ceiling so far beyond the dots, as a multiple of the last dot, still stretches the axis.
constexpr double kNearCeiling = 1.35;

/// The recipe of all layers; empty if layers have recipes of their own.
std::optional<Recipe> uniform_recipe(const std::string& text) {
    const auto parsed = models::parse_layer_recipes(text);
    if (!parsed || !parsed->layers.empty()) return std::nullopt;
    return parsed->recipe;
}

/// Each switch of a layer that differs from the baseline, in words.
std::vector<std::string_view> changed_phrases(const Recipe& recipe) {
    const Recipe baseline;
    std::vector<std::string_view> phrases;
    models::for_each_switch([&](const auto& table) {
        if (table.name == models::kOptimizerSwitch.name) return;
        const models::SwitchValue& value = table.chosen(recipe);
        if (&value != &table.chosen(baseline)) phrases.push_back(value.phrase);
    });
    return phrases;
}

void describe(RecipeDot& dot) {
    const auto recipe = uniform_recipe(dot.recipe);
    if (!recipe) {
        dot.name = dot.title = dot.recipe;
        dot.detail = "a recipe for each layer";
        dot.num_switches = 1;
        return;
    }
    Recipe own = *recipe;
    own.optimizer = Recipe{}.optimizer;
    const auto phrases = changed_phrases(own);
    dot.name = models::to_text(own);
    const std::string words =
        phrases.empty() ? "the baseline" : fmt::to_string(fmt::join(phrases, ", "));
    dot.title = capitalized(words);
    dot.detail = dot.name;
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        if (preset.recipe != own) continue;
        dot.name = dot.title = preset.name;
        dot.detail = words;
        dot.is_preset = true;
        break;
    }
    dot.num_switches = static_cast<int>(phrases.size());
}

RecipeDot make_dot(const PlanRow& row, const FrontierRequest& request) {
    RecipeDot dot{.recipe = recipe_text(row), .figures = figures_at(row, request.batch_size)};
    describe(dot);
    const bool by_batch = request.axis == FrontierAxis::kMaxBatch;
    dot.x =
        static_cast<double>(by_batch ? row.max_batch_size.value_or(0) : dot.figures.needed_bytes);
    dot.y = by_batch ? row.best_sequences_per_s : dot.figures.sequences_per_s;
    return dot;
}

void add_dots(RecipeFrontierView& view, const FrontierRequest& request) {
    for (const PlanRow& row : request.planned->rows) {
        const bool runs = row.max_batch_size.value_or(0) > 0 && !row.memory_curve.empty();
        if (!runs || !has_times(row)) {
            RecipeDot named{.recipe = recipe_text(row)};
            describe(named);
            view.refused.push_back(
                {named.name, row.reason.empty() ? "There is no model of its time." : row.reason});
            continue;
        }
        view.dots.push_back(make_dot(row, request));
        add_notes(row, view.notes);
    }
}

/// x so that less is better, whatever the axis.
double cost_of(const RecipeFrontierView& view, const RecipeDot& dot) {
    return view.axis == FrontierAxis::kPeakMemory ? dot.x : -dot.x;
}

/// One sweep by rising cost: a dot is on the frontier if it is faster than all before it. Of dots
/// that are equal in both only the one with the fewest switches is.
void find_frontier(RecipeFrontierView& view) {
    std::vector<std::size_t> order(view.dots.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t i, std::size_t j) {
        const RecipeDot &a = view.dots[i], &b = view.dots[j];
        const double cost_a = cost_of(view, a), cost_b = cost_of(view, b);
        if (cost_a != cost_b) return cost_a < cost_b;
        if (a.y != b.y) return a.y > b.y;
        return a.num_switches < b.num_switches;
    });
    for (const std::size_t i : order) {
        RecipeDot& dot = view.dots[i];
        if (!view.frontier.empty() && view.dots[view.frontier.back()].y >= dot.y) {
            dot.beaten_by = view.frontier.back();
            continue;
        }
        dot.is_on_frontier = true;
        view.frontier.push_back(i);
    }
    if (view.axis == FrontierAxis::kMaxBatch) std::ranges::reverse(view.frontier);
}

/// Within a limit of memory the best throughput stays until the next dot; for a batch that is
/// wanted, that of the next dot holds. Where no recipe runs, the line stands at 0.
void add_line(RecipeFrontierView& view) {
    const auto add = [&](double x, double y) {
        view.line_x.push_back(x);
        view.line_y.push_back(y);
    };
    if (view.frontier.empty()) return;
    const auto dot = [&](std::size_t i) -> const RecipeDot& { return view.dots[view.frontier[i]]; };
    const bool by_batch = view.axis == FrontierAxis::kMaxBatch;
    by_batch ? add(view.first_x, dot(0).y) : add(dot(0).x, 0);
    for (std::size_t i = 0; i < view.frontier.size(); ++i) {
        if (i > 0) by_batch ? add(dot(i - 1).x, dot(i).y) : add(dot(i).x, dot(i - 1).y);
        add(dot(i).x, dot(i).y);
    }
    const RecipeDot& last = dot(view.frontier.size() - 1);
    by_batch ? add(last.x, 0) : add(view.last_x, last.y);
}

/// Only where the same thing, not memory, limits the batch of all recipes.
void explain_equal_batches(RecipeFrontierView& view, const FrontierRequest& request) {
    if (view.axis != FrontierAxis::kMaxBatch || view.dots.size() < 2) return;
    const PlanRow* first = nullptr;
    for (const PlanRow& row : request.planned->rows) {
        if (!find_dot(view, recipe_text(row))) continue;
        if (first == nullptr) first = &row;
        if (row.max_batch_size != first->max_batch_size || row.other_limit != first->other_limit) {
            return;
        }
    }
    view.same_batch_reason = other_limit_text(*first);
}

/// GPUs with nearly the same memory share a line; the chosen GPU has its own.
std::vector<MemoryCeiling> all_ceilings(const FrontierRequest& request) {
    std::vector<const Gpu*> gpus;
    for (const Gpu& gpu : *request.gpus) gpus.push_back(&gpu);
    std::ranges::stable_sort(gpus, [](const Gpu* a, const Gpu* b) {
        return a->usable_memory_bytes.value < b->usable_memory_bytes.value;
    });
    std::vector<MemoryCeiling> ceilings;
    std::vector<std::size_t> counts;
    for (const Gpu* gpu : gpus) {
        const double bytes = gpu->usable_memory_bytes.value;
        const bool is_chosen = gpu->id == request.gpu;
        const bool joins = !ceilings.empty() && !is_chosen && !ceilings.back().is_chosen &&
                           bytes < ceilings.back().bytes * kSameMemory;
        if (!joins) {
            ceilings.push_back({bytes, std::string(short_gpu_name(gpu->name)), is_chosen});
            counts.push_back(1);
        } else if (++counts.back() <= kMostGpuNames) {
            ceilings.back().label += fmt::format(", {}", short_gpu_name(gpu->name));
        }
    }
    for (std::size_t i = 0; i < ceilings.size(); ++i) {
        if (counts[i] > kMostGpuNames) {
            ceilings[i].label += fmt::format(" +{}", counts[i] - kMostGpuNames);
        }
    }
    return ceilings;
}

struct Ends {
    double first = 0;
    double last = 0;
};

/// The ends of an axis with some room beside its values; the values may be one.
Ends with_margins(double least, double most) {
    const double room = std::max(kMargin * (most - least), 0.01 * std::abs(most));
    return {std::max(0.0, least - room), most + std::max(room, 1e-9)};
}

void set_axes(RecipeFrontierView& view, const FrontierRequest& request) {
    if (view.dots.empty()) return;
    Ends x{view.dots[0].x, view.dots[0].x}, y{view.dots[0].y, view.dots[0].y};
    const auto include = [&](double at_x, double at_y) {
        x = {std::min(x.first, at_x), std::max(x.last, at_x)};
        y = {std::min(y.first, at_y), std::max(y.last, at_y)};
    };
    for (const RecipeDot& dot : view.dots) include(dot.x, dot.y);
    for (const MeasuredDot& dot : view.measured) include(dot.x, dot.y);
    x = with_margins(x.first, x.last);
    y = with_margins(y.first, y.last);
    if (view.axis == FrontierAxis::kPeakMemory && request.gpus != nullptr) {
        const std::vector<MemoryCeiling> ceilings = all_ceilings(request);
        for (const MemoryCeiling& one : ceilings) {  // the next one above the dots
            if (one.bytes < x.last) continue;
            if (one.bytes < x.last * kNearCeiling) x.last = one.bytes + 0.04 * (x.last - x.first);
            break;
        }
        for (const MemoryCeiling& one : ceilings) {
            const bool is_inside = one.bytes > x.first && one.bytes < x.last;
            if (is_inside || one.is_chosen) view.ceilings.push_back(one);
        }
    }
    view.first_x = x.first;
    view.last_x = x.last;
    view.first_y = y.first;
    view.last_y = y.last;
}

/// "11.0 GiB, 2.7 % less than predicted".
std::string against(const std::string& text, double measured, double predicted) {
    if (predicted <= 0) return text;
    const double percent = 100 * (measured - predicted) / predicted;
    if (std::abs(percent) < 0.05) return text + ", as predicted";
    return fmt::format("{}, {:.1f} % {} than predicted", text, std::abs(percent),
                       percent < 0 ? "less" : "more");
}

void add_marks(RecipeFrontierView& view, const FrontierRequest& request) {
    for (const PairRecipe& one : request.pair) {
        if (const auto dot = find_dot(view, one.recipe)) view.marks.push_back({one.letter, *dot});
    }
    // A step has one peak, and says nothing about the largest batch.
    if (view.axis == FrontierAxis::kMaxBatch) return;
    for (const MeasuredStep& step : request.measured) {
        const auto index = find_dot(view, step.recipe);
        if (!index) continue;
        const RecipeDot& dot = view.dots[*index];
        const int64_t bytes = step.peak_allocated_bytes + dot.figures.context_bytes;
        MeasuredDot measured{.dot = *index,
                             .name = step.name,
                             .x = static_cast<double>(bytes),
                             .y = dot.y,
                             .is_memory_only = step.step_time_ns <= 0};
        measured.memory_text = against(format_bytes(bytes), measured.x, dot.x);
        if (!measured.is_memory_only) {
            measured.y = sequences_per_s(view.batch_size, step.step_time_ns);
            measured.rate_text = against(format_rate(measured.y), measured.y, dot.y);
        }
        view.measured.push_back(std::move(measured));
    }
}

/// Its tensors would fit on the GPU, but not the gaps between them.
bool is_refused_by_gaps(const RecipeFrontierView& view, const RecipeDot& dot) {
    return !dot.figures.fits && dot.figures.needed_bytes <= view.usable_bytes;
}

}  // namespace

RecipeFrontierView build_recipe_frontier_view(const FrontierRequest& request) {
    RecipeFrontierView view{.axis = request.axis, .batch_size = request.batch_size};
    if (request.gpus != nullptr) {
        for (const Gpu& gpu : *request.gpus) {
            if (gpu.id != request.gpu) continue;
            view.gpu = short_gpu_name(gpu.name);
            view.usable_bytes = static_cast<int64_t>(gpu.usable_memory_bytes.value);
        }
    }
    if (!request.planned) return view;
    add_dots(view, request);
    find_frontier(view);
    add_marks(view, request);
    set_axes(view, request);
    add_line(view);
    explain_equal_batches(view, request);
    return view;
}

std::optional<std::size_t> best_within(const RecipeFrontierView& view, double limit) {
    std::optional<std::size_t> best;
    const auto is_within = [&](const RecipeDot& dot) {
        if (view.axis == FrontierAxis::kMaxBatch) return dot.x >= limit;
        return dot.x <= limit && !is_refused_by_gaps(view, dot);
    };
    const auto is_better = [&](const RecipeDot& a, const RecipeDot& b) {
        if (a.y != b.y) return a.y > b.y;
        if (a.x != b.x) return cost_of(view, a) < cost_of(view, b);
        return a.num_switches < b.num_switches;
    };
    for (std::size_t i = 0; i < view.dots.size(); ++i) {
        if (!is_within(view.dots[i])) continue;
        if (!best || is_better(view.dots[i], view.dots[*best])) best = i;
    }
    return best;
}

std::optional<std::size_t> smaller_near_tie(const RecipeFrontierView& view, std::size_t best) {
    if (view.axis != FrontierAxis::kPeakMemory) return std::nullopt;
    constexpr double kShare = 0.99;
    const RecipeDot& fastest = view.dots[best];
    const auto order = [&](std::size_t i) {
        const RecipeDot& dot = view.dots[i];
        return std::tuple(dot.x, -dot.y, dot.num_switches);
    };
    std::optional<std::size_t> smallest;
    for (std::size_t i = 0; i < view.dots.size(); ++i) {
        const RecipeDot& dot = view.dots[i];
        if (dot.x > fastest.x * kShare || dot.y < fastest.y * kShare) continue;
        if (is_refused_by_gaps(view, dot)) continue;
        if (!smallest || order(i) < order(*smallest)) smallest = i;
    }
    return smallest;
}

std::optional<std::size_t> find_dot(const RecipeFrontierView& view, const std::string& recipe) {
    for (std::size_t i = 0; i < view.dots.size(); ++i) {
        if (view.dots[i].recipe == recipe) return i;
    }
    return std::nullopt;
}

// ---- the path from one dot to another -------------------------------------------------------

namespace {

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
    step.saved_bytes = from.figures.needed_bytes - to.figures.needed_bytes;
    step.lost_ns = to.figures.step_time_ns - from.figures.step_time_ns;
    step.memory_text = change_in_bytes(-step.saved_bytes);
    // A prediction cannot resolve a thousandth of the step.
    const bool is_as_fast = std::llabs(step.lost_ns) * 1000 < from.figures.step_time_ns;
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

namespace {

void add_path_step(const PathStep& step, DataTable& table) {
    const Cell saved = step.is_planned ? Cell(step.saved_bytes) : Cell();
    const Cell lost = step.is_planned ? Cell(step.lost_ns) : Cell();
    table.rows.push_back({step.change, step.recipe, saved, lost});
}

}  // namespace

DataTable frontier_data(const RecipeFrontierView& view) {
    const bool by_batch = view.axis == FrontierAxis::kMaxBatch;
    DataTable table{.columns = {"recipe", "canonical_recipe", "gpu", "batch_size",
                                "throughput_sequences_per_s", "needed_bytes", "step_time_ns",
                                "fits", "on_frontier"}};
    if (by_batch) table.columns.insert(table.columns.begin() + 4, "max_batch_size");
    for (const RecipeDot& dot : view.dots) {
        auto& row = table.rows.emplace_back(std::vector<Cell>{
            dot.name, dot.recipe, view.gpu, view.batch_size, dot.y, dot.figures.needed_bytes,
            dot.figures.step_time_ns, dot.figures.fits, dot.is_on_frontier});
        if (by_batch) row.insert(row.begin() + 4, std::llround(dot.x));
    }
    return table;
}

DataTable path_data(const RecipePath& path) {
    DataTable table{.columns = {"switch_to", "recipe", "saved_bytes", "lost_ns"}};
    for (const PathStep& step : path.steps) add_path_step(step, table);
    return table;
}

}  // namespace profiler
