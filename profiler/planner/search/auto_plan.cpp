#include "profiler/planner/search/auto_plan.h"

#include "models/config/switches.h"
#include "profiler/planner/plan_row.h"
#include "profiler/planner/search/recipe_search.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/planner/step/capacity_search.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

using models::Recipe;
using Layers = std::vector<int64_t>;

/// "1.4 %".
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// What `plan --auto` says about a recipe that it chose.
class AutoSentences {
public:
    /// `own` is the row with the workload's own recipe, which fits up to `own_max_batch` (0: it
    /// does not fit). All arguments must outlive this object.
    AutoSentences(const PlanRow& own, const PlanRequest& request, RecipeSearch& search,
                  int64_t own_max_batch)
        : own_(own), request_(request), search_(search), own_max_batch_(own_max_batch) {}

    /// What the chosen recipe gains and costs against the workload's own.
    models::Result<std::string> gain(const SearchBatch& batch,
                                     const SimulatedChoice& chosen) const {
        const std::string& own = own_.workload.recipe_name;
        const std::string at = batch_text(batch.batch_size);
        const std::string words = describe_techniques(chosen.workload, own_.workload);
        if (search_.num_candidates() == 1) {
            return fmt::format("{} fits at batch {}. No other recipe was tried.", own, at);
        }
        if (words == "nothing") {
            return fmt::format(
                "{} is the fastest recipe that fits at batch {}: saving memory would not make it "
                "faster.",
                own, at);
        }
        const double share = chosen.time.total_ns() / batch.own_step_ns - 1;
        const std::string uses = fmt::format(" It uses {}.", words);
        const std::string time =
            fmt::format("{} {} time", percent(std::abs(share)), share < 0 ? "less" : "more");
        if (batch.batch_size <= own_max_batch_) {
            return fmt::format("At batch {} a step takes {} than with {}, which also fits.{}", at,
                               time, own, uses);
        }
        if (const std::string rates = compared_rates(batch.batch_size, chosen); !rates.empty()) {
            return fmt::format("Fits batch {} instead of {} with {}. {}{}", at, own_max_batch_, own,
                               rates, uses);
        }
        const auto limit = end_of_own(batch.batch_size);
        if (!limit) return tl::unexpected(limit.error());
        return fmt::format(
            "Fits batch {}, where {} {}. A step takes {} than {} would take there.{}", at, own,
            *limit, time, own, uses);
    }

    /// Why the next faster choice of the frontier was not chosen; null: there is none.
    models::Result<std::string> why(const SearchBatch& batch, const LayerChoice* faster) const {
        if (search_.num_candidates() == 1) {
            return std::string("There is only one recipe, so there is none to compare it with.");
        }
        if (faster == nullptr)
            return fmt::format("No recipe is faster at batch {}.", batch.batch_size);
        const auto simulated = search_.simulate(batch, *faster);
        if (!simulated) return tl::unexpected(simulated.error());
        if ((*simulated)->fits) {
            return std::string("A faster recipe fits too, but the search stopped before it.");
        }
        const auto needed = search_.needed_bytes(**simulated);
        if (!needed) return tl::unexpected(needed.error());
        return fmt::format("The next faster recipe at batch {} needs {}, {} more than the GPU has.",
                           batch.batch_size,
                           text_of_need(*needed, (*simulated)->peaks, search_.capacity_bytes()),
                           format_bytes(*needed - search_.capacity_bytes()));
    }

private:
    /// "8", or "8 per GPU" with several GPUs.
    std::string batch_text(int64_t batch_size) const {
        return fmt::format("{}{}", batch_size, request_.parallel.num_gpus > 1 ? " per GPU" : "");
    }

    /// Why the workload's own recipe is not at this batch: the words after its name.
    models::Result<std::string> end_of_own(int64_t batch_size) const {
        if (own_max_batch_ > 0) return fmt::format("fits only up to {}", own_max_batch_);
        const auto least = least_capacity_bytes(search_.interpolation(), search_.memory_options(),
                                                batch_size, search_.capacity_bytes());
        if (!least) return tl::unexpected(least.error());
        return fmt::format("needs {} more than the GPU has",
                           format_bytes(*least - search_.capacity_bytes()));
    }

    /// "12.9 sequences/s instead of 11.3." if the search chose the batch; else nothing.
    std::string compared_rates(int64_t batch_size, const SimulatedChoice& chosen) const {
        if (request_.batch_size || own_max_batch_ == 0) return {};
        const auto own = search_.at_batch(own_max_batch_);
        if (!own) return {};
        return fmt::format("{:.1f} sequences/s instead of {:.1f}.",
                           search_.sequences_per_s(batch_size, chosen.time.total_ns()),
                           search_.sequences_per_s(own_max_batch_, own->own_step_ns));
    }

    const PlanRow& own_;
    const PlanRequest& request_;
    RecipeSearch& search_;
    int64_t own_max_batch_;
};

/// How often the best batch is searched again after the simulator found less room than estimated.
constexpr int kMostRounds = 8;

/// The fastest per-layer recipe at a batch, by the estimates of the search.
struct BatchPoint {
    SearchBatch batch;
    LayerChoice fastest;
    double rate = 0;  // sequences per second
};

/// A recipe on the frontier of one batch.
struct Choice {
    SearchBatch batch;
    std::vector<LayerChoice> choices;  // at this batch; peaks rise, times fall
    std::size_t index = 0;
};

class AutoRowBuilder {
public:
    AutoRowBuilder(AutoRow& row, const AutoRequest& request, const PlannerData& data,
                   InterpolationCache& interpolations, BatchInterpolation& own)
        : row_(row),
          own_(row.row),
          request_(request),
          data_(data),
          interpolations_(interpolations),
          search_(own_, request, data, interpolations.source(), own) {}

    void fill() {
        if (const auto ok = build(); !ok) {
            row_ = AutoRow{.row = own_};
            row_.row.refuse(ok.error());
        }
    }

private:
    models::Result<void> build() {
        if (const auto ok = search_.prepare(); !ok) return ok;
        row_.num_candidates = static_cast<int64_t>(search_.num_candidates());
        const auto own_max = largest_batch(search_.interpolation(), search_.memory_options(),
                                           search_.capacity_bytes(), request_.plan);
        if (!own_max) return tl::unexpected(own_max.error());
        own_max_batch_ = *own_max;
        const auto& batch_size = request_.plan.batch_size;
        auto choice = batch_size ? choose_at(*batch_size) : choose_batch();
        if (!choice) return tl::unexpected(choice.error());
        if (!*choice) return say_least_recipe(batch_size.value_or(1));
        return report(**choice);
    }

    /// Empty if nothing fits at this batch.
    models::Result<std::optional<Choice>> choose_at(int64_t batch_size) {
        if (batch_size > search_.interpolation().largest_valid_batch())
            return std::optional<Choice>();
        auto batch = search_.at_batch(batch_size);
        if (!batch) return tl::unexpected(batch.error());
        std::vector<LayerChoice> choices = pareto_layer_choices(batch->problem);
        const auto index = search_.fastest_fitting(*batch, choices);
        if (!index) return tl::unexpected(index.error());
        if (!*index) return std::optional<Choice>();
        return std::optional(Choice{std::move(*batch), std::move(choices), **index});
    }

    /// The batch of the highest throughput. The estimates choose a batch, and the simulator checks
    /// it. If it finds less room than was estimated, the search is repeated with that limit.
    models::Result<std::optional<Choice>> choose_batch() {
        int64_t limit_bytes = search_.capacity_bytes();
        std::optional<Choice> best;
        for (int round = 0; round < kMostRounds; ++round) {
            if (const auto ok = try_batches(limit_bytes); !ok) {
                return tl::unexpected(ok.error());
            }
            if (points_.empty()) return std::optional<Choice>();
            const BatchPoint& point = best_point();
            if (best && point.batch.batch_size == best->batch.batch_size) break;
            auto choice = choose_at(point.batch.batch_size);
            if (!choice) return choice;
            if (!*choice) {
                const auto simulated = search_.simulate(point.batch, point.fastest);
                if (!simulated) return tl::unexpected(simulated.error());
                const auto needed = search_.needed_bytes(**simulated);
                if (!needed) return tl::unexpected(needed.error());
                const int64_t over_bytes = *needed - search_.capacity_bytes();
                limit_bytes = point.fastest.peak_bytes - std::max<int64_t>(over_bytes, 1);
                continue;
            }
            const int64_t peak_bytes = (*choice)->choices[(*choice)->index].peak_bytes;
            const bool agrees = peak_bytes >= point.fastest.peak_bytes;
            best = std::move(*choice);
            if (agrees) break;
            limit_bytes = peak_bytes;
        }
        // The estimates may refuse what fits without a search.
        if (!best && own_max_batch_ > 0) return choose_at(own_max_batch_);
        if (!best) return best;
        return at_own_best_batch(std::move(*best));
    }

    /// The choice, or a faster one at the batch where the chosen recipe is fastest. Estimates of
    /// memory may end at a smaller batch than the simulator allows.
    models::Result<std::optional<Choice>> at_own_best_batch(Choice choice) {
        const auto chosen = search_.simulate(choice.batch, choice.choices[choice.index]);
        if (!chosen) return tl::unexpected(chosen.error());
        const double rate =
            search_.sequences_per_s(choice.batch.batch_size, (*chosen)->time.total_ns());
        fill_plan_row((*chosen)->workload, choice.batch.batch_size);
        if (row_.row.status != PlanStatus::kOk || row_.row.best_sequences_per_s <= rate) {
            return std::optional(std::move(choice));
        }
        auto other = choose_at(*row_.row.best_batch_size);
        if (!other) return other;
        if (!*other) return std::optional(std::move(choice));
        const auto faster = search_.simulate((*other)->batch, (*other)->choices[(*other)->index]);
        if (!faster) return tl::unexpected(faster.error());
        const double other_rate =
            search_.sequences_per_s((*other)->batch.batch_size, (*faster)->time.total_ns());
        if (other_rate > rate) return other;
        return std::optional(std::move(choice));
    }

    /// Fills points_ with the fastest recipe of every batch at which one fits.
    models::Result<void> try_batches(int64_t limit_bytes) {
        points_.clear();
        const auto largest = search_.find_largest_batch(limit_bytes);
        if (!largest) return tl::unexpected(largest.error());
        if (*largest == 0) return {};
        const bool dense = search_.interpolation().interpolates_ops();
        const std::vector<int64_t> coarse = sampled_batches(*largest, dense);
        if (const auto ok = add_points(coarse, limit_bytes); !ok) return ok;
        if (!dense || points_.empty()) return {};
        const int64_t best = best_point().batch.batch_size;
        if (const auto ok = add_points(batches_between({best, *largest}, coarse), limit_bytes);
            !ok) {
            return ok;
        }
        std::ranges::sort(points_, {},
                          [](const BatchPoint& point) { return point.batch.batch_size; });
        return {};
    }

    models::Result<void> add_points(const std::vector<int64_t>& batches, int64_t limit_bytes) {
        for (const int64_t batch_size : batches) {
            auto batch = search_.at_batch(batch_size);
            if (!batch) return tl::unexpected(batch.error());
            batch->problem.most_peak_bytes = limit_bytes;
            std::vector<LayerChoice> choices = pareto_layer_choices(batch->problem);
            if (choices.empty()) continue;
            const double rate =
                search_.sequences_per_s(batch_size, search_.step_ns(*batch, choices.back()));
            points_.push_back({std::move(*batch), std::move(choices.back()), rate});
        }
        return {};
    }

    const BatchPoint& best_point() const {
        return *std::ranges::max_element(points_, {}, &BatchPoint::rate);
    }

    models::Result<void> report(const Choice& choice) {
        const auto chosen = search_.simulate(choice.batch, choice.choices[choice.index]);
        if (!chosen) return tl::unexpected(chosen.error());
        fill_plan_row((*chosen)->workload, choice.batch.batch_size);
        const AutoSentences sentences(own_, request_.plan, search_, own_max_batch_);
        const bool is_fastest = choice.index + 1 == choice.choices.size();
        auto why =
            sentences.why(choice.batch, is_fastest ? nullptr : &choice.choices[choice.index + 1]);
        if (!why) return tl::unexpected(why.error());
        row_.why = std::move(*why);
        auto sentence = sentences.gain(choice.batch, **chosen);
        if (!sentence) return tl::unexpected(sentence.error());
        row_.sentence = std::move(*sentence);
        return request_.plan.batch_size ? add_memory_frontier(choice) : add_batch_frontier(choice);
    }

    void fill_plan_row(const models::Workload& workload, int64_t batch_size) {
        PlanRequest one = request_.plan;
        one.batch_size = batch_size;
        row_.row = start_row(one, data_, workload, own_.gpu);
        if (row_.row.status != PlanStatus::kOk) return;
        const auto interpolation =
            interpolations_.get(step_to_trace(own_, request_.plan, data_, workload));
        if (!interpolation) return row_.row.refuse(interpolation.error());
        fill_row(row_.row, one, data_, **interpolation);
    }

    models::Result<void> say_least_recipe(int64_t batch_size) {
        if (batch_size > search_.interpolation().largest_valid_batch()) {
            fill_plan_row(own_.workload, batch_size);
            return {};
        }
        const auto batch = search_.at_batch(batch_size);
        if (!batch) return tl::unexpected(batch.error());
        const models::Workload least = search_.workload_of(smallest_choice(batch->problem));
        fill_plan_row(least, batch_size);
        if (row_.row.status == PlanStatus::kDoesNotFit) {
            row_.row.reason =
                fmt::format("{} That is with {}, the recipe that needs the least memory.",
                            row_.row.reason, least.recipe_name);
        }
        return {};
    }

    FrontierPoint point_at(const SearchBatch& batch, const LayerChoice& choice, double step_ns,
                           int64_t peak_bytes) const {
        return {.recipe = search_.workload_of(choice).recipe_name,
                .batch_size = batch.batch_size,
                .step_time_ns = whole_ns(step_ns),
                .sequences_per_s = search_.sequences_per_s(batch.batch_size, step_ns),
                .peak_allocated_bytes = peak_bytes};
    }

    FrontierPoint point_of(const SearchBatch& batch, const LayerChoice& choice) const {
        return point_at(batch, choice, search_.step_ns(batch, choice), choice.peak_bytes);
    }

    models::Result<FrontierPoint> simulated_point(const SearchBatch& batch,
                                                  const LayerChoice& choice) {
        const auto result = search_.simulate(batch, choice);
        if (!result) return tl::unexpected(result.error());
        FrontierPoint point = point_at(batch, choice, (*result)->time.total_ns(),
                                       (*result)->peaks.peak_allocated_bytes);
        point.is_simulated = true;
        point.fits = (*result)->fits;
        return point;
    }

    /// Peak and time at the batch of the request. The chosen point and its neighbours are
    /// simulated. The estimates of the others are corrected by the error of the chosen point's
    /// estimate.
    models::Result<void> add_memory_frontier(const Choice& choice) {
        const auto chosen = simulated_point(choice.batch, choice.choices[choice.index]);
        if (!chosen) return tl::unexpected(chosen.error());
        const FrontierPoint estimate = point_of(choice.batch, choice.choices[choice.index]);
        std::vector<FrontierPoint> points;
        for (std::size_t i = 0; i < choice.choices.size(); ++i) {
            const bool is_near = i + 1 >= choice.index && i <= choice.index + 1;
            if (is_near) {
                const auto point = simulated_point(choice.batch, choice.choices[i]);
                if (!point) return tl::unexpected(point.error());
                points.push_back(*point);
                points.back().is_chosen = i == choice.index;
                continue;
            }
            FrontierPoint point = point_of(choice.batch, choice.choices[i]);
            point.peak_allocated_bytes +=
                chosen->peak_allocated_bytes - estimate.peak_allocated_bytes;
            point.step_time_ns += chosen->step_time_ns - estimate.step_time_ns;
            point.sequences_per_s =
                search_.sequences_per_s(point.batch_size, static_cast<double>(point.step_time_ns));
            points.push_back(point);
        }
        keep_undominated(points, [](const FrontierPoint& a, const FrontierPoint& b) {
            return a.peak_allocated_bytes <= b.peak_allocated_bytes &&
                   a.step_time_ns <= b.step_time_ns;
        });
        return {};
    }

    /// The fastest recipe at each batch from the chosen batch on.
    models::Result<void> add_batch_frontier(const Choice& choice) {
        auto chosen = simulated_point(choice.batch, choice.choices[choice.index]);
        if (!chosen) return tl::unexpected(chosen.error());
        chosen->is_chosen = true;
        std::vector<FrontierPoint> points{*chosen};
        for (const BatchPoint& point : points_) {
            if (point.batch.batch_size <= choice.batch.batch_size) continue;
            if (points.size() > 1) {
                points.push_back(point_of(point.batch, point.fastest));
                // For the row's own recipe the largest batch is known exactly.
                const bool fits = points.back().batch_size <= own_max_batch_ ||
                                  points.back().recipe != own_.workload.recipe_name;
                if (!fits) points.pop_back();
                continue;
            }
            const auto next = simulated_point(point.batch, point.fastest);  // the neighbour
            if (!next) return tl::unexpected(next.error());
            if (*next->fits) points.push_back(*next);
        }
        keep_undominated(points, [](const FrontierPoint& a, const FrontierPoint& b) {
            return a.batch_size >= b.batch_size && a.sequences_per_s >= b.sequences_per_s;
        });
        return {};
    }

    /// The chosen point stays.
    template <typename Beats>
    void keep_undominated(const std::vector<FrontierPoint>& points, const Beats& beats) {
        for (std::size_t i = 0; i < points.size(); ++i) {
            bool is_beaten = false;
            for (std::size_t j = 0; j < points.size() && !points[i].is_chosen; ++j) {
                if (j == i || !beats(points[j], points[i])) continue;
                is_beaten |= j < i || !beats(points[i], points[j]);
            }
            if (!is_beaten) row_.frontier.push_back(points[i]);
        }
    }

    AutoRow& row_;
    const PlanRow own_;  // with the workload's own recipe, not filled
    const AutoRequest& request_;
    const PlannerData& data_;
    InterpolationCache& interpolations_;
    RecipeSearch search_;
    int64_t own_max_batch_ = 0;
    std::vector<BatchPoint> points_;
};

/// Searches, and fills a row that start_row did not refuse.
void fill_auto_row(AutoRow& row, const AutoRequest& request, const PlannerData& data,
                   InterpolationCache& interpolations) {
    const auto own =
        interpolations.get(step_to_trace(row.row, request.plan, data, row.row.workload));
    if (!own) return row.row.refuse(own.error());
    AutoRowBuilder(row, request, data, interpolations, **own).fill();
}

/// The values in which a layer's recipe differs from the reference.
std::vector<std::string_view> phrases_of(const Recipe& recipe, const Recipe& reference) {
    std::vector<std::string_view> phrases;
    models::for_each_switch([&](const auto& table) {
        const models::SwitchValue& value = table.chosen(recipe);
        const bool differs = &value != &table.chosen(reference);
        if (differs && !table.is_for_step) phrases.push_back(value.phrase);
    });
    return phrases;
}

/// "all layers", "layer 3", "layers 0-11 and 20-23".
std::string text_of(const Layers& layers, int64_t num_layers) {
    if (static_cast<int64_t>(layers.size()) == num_layers) return "all layers";
    std::vector<std::string> ranges;
    for (std::size_t i = 0; i < layers.size();) {
        std::size_t last = i;
        while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
        ranges.push_back(last == i ? fmt::format("{}", layers[i])
                                   : fmt::format("{}-{}", layers[i], layers[last]));
        i = last + 1;
    }
    return (layers.size() == 1 ? "layer " : "layers ") + join_with_and(ranges);
}

}  // namespace

bool AutoPlan::has_ok_row() const {
    return std::ranges::any_of(
        rows, [](const AutoRow& row) { return row.row.status == PlanStatus::kOk; });
}

AutoPlan make_auto_plan(const AutoRequest& request, const PlannerData& data,
                        const StepSource& source, const PlanProgress& progress) {
    AutoPlan plan;
    const PlanRequest& grid = request.plan;
    const std::size_t total = grid.workloads.size() * grid.gpus.size();
    InterpolationCache interpolations(source);
    for (const models::Workload& workload : grid.workloads) {
        for (const Gpu* gpu : grid.gpus) {
            if (progress) progress(plan.rows.size(), total, workload);
            AutoRow& row =
                plan.rows.emplace_back(AutoRow{.row = start_row(grid, data, workload, *gpu)});
            if (row.row.status != PlanStatus::kOk) continue;
            fill_auto_row(row, request, data, interpolations);
        }
    }
    return plan;
}

std::string describe_techniques(const models::Workload& chosen, const models::Workload& reference) {
    const int64_t num_layers = chosen.model.num_layers;
    std::vector<std::pair<std::string_view, Layers>> techniques;
    for (int64_t layer = 0; layer < num_layers; ++layer) {
        const Recipe recipe = models::recipe_of_layer(models::layer_recipes_of(chosen), layer);
        for (const std::string_view phrase : phrases_of(recipe, reference.recipe)) {
            std::size_t i = 0;
            while (i < techniques.size() && techniques[i].first != phrase) ++i;
            if (i == techniques.size()) techniques.push_back({phrase, {}});
            techniques[i].second.push_back(layer);
        }
    }
    if (techniques.empty()) return "nothing";

    std::vector<std::string> groups;  // techniques of the same layers
    std::vector<bool> is_said(techniques.size(), false);
    for (std::size_t i = 0; i < techniques.size(); ++i) {
        std::vector<std::string> names;
        for (std::size_t j = i; j < techniques.size(); ++j) {
            if (is_said[j] || techniques[j].second != techniques[i].second) continue;
            is_said[j] = true;
            names.emplace_back(techniques[j].first);
        }
        if (names.empty()) continue;
        groups.push_back(join_with_and(names) + " in " + text_of(techniques[i].second, num_layers));
    }
    std::string text;
    for (const std::string& group : groups) text += (text.empty() ? "" : "; ") + group;
    return text;
}

}  // namespace profiler
