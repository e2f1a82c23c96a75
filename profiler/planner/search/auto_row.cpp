#include "profiler/planner/search/auto_row.h"

#include "profiler/planner/search/recipe_search.h"
#include "profiler/planner/search/recipe_words.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

namespace profiler {
namespace {

/// How often the best batch is looked for again after the simulator said that less fits.
constexpr int kMostRounds = 8;

/// "1.4 %".
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// The fastest mix of a batch by the search's estimates.
struct BatchPoint {
    BatchScene scene;
    LayerChoice fastest;
    double rate = 0;  // sequences a second
};

/// What was chosen: a mix of a frontier at its batch.
struct Choice {
    BatchScene scene;
    std::vector<LayerChoice> choices;  // at this batch; peaks rise, times fall
    std::size_t index = 0;
};

class AutoRowBuilder {
public:
    AutoRowBuilder(AutoRow& row, const AutoRequest& request, const PlannerData& data,
                   const MetaTraceSource& source, BatchInterpolation& interpolation)
        : row_(row),
          own_(row.row),
          request_(request),
          data_(data),
          source_(source),
          search_(own_, request, data, source, interpolation) {}

    void fill() {
        if (const auto ok = build(); !ok) {
            row_ = AutoRow{.row = own_};
            row_.row.status = PlanStatus::kNotSupported;
            row_.row.reason = ok.error().message;
        }
    }

private:
    models::Result<void> build() {
        if (const auto ok = search_.prepare(); !ok) return ok;
        row_.num_candidates = static_cast<int64_t>(search_.num_candidates());
        const auto own_max = find_max_batch(search_.interpolation(), search_.memory_options(),
                                            search_.capacity_bytes());
        if (!own_max) return tl::unexpected(own_max.error());
        own_max_batch_ = *own_max;
        const auto& batch_size = request_.plan.batch_size;
        auto choice = batch_size ? choose_at(*batch_size) : choose_batch();
        if (!choice) return tl::unexpected(choice.error());
        if (!*choice) return say_what_takes_least(batch_size.value_or(1));
        return report(**choice);
    }

    /// None: nothing fits at this batch.
    models::Result<std::optional<Choice>> choose_at(int64_t batch_size) {
        if (batch_size > search_.interpolation().largest_valid_batch())
            return std::optional<Choice>();
        auto scene = search_.look_at(batch_size);
        if (!scene) return tl::unexpected(scene.error());
        std::vector<LayerChoice> choices = pareto_layer_choices(scene->problem);
        const auto index = search_.fastest_fitting(*scene, choices);
        if (!index) return tl::unexpected(index.error());
        if (!*index) return std::optional<Choice>();
        return std::optional(Choice{std::move(*scene), std::move(choices), **index});
    }

    /// The batch of the highest throughput: by estimates, then again with what the simulator left
    /// of the memory, until it agrees.
    models::Result<std::optional<Choice>> choose_batch() {
        int64_t limit_bytes = search_.capacity_bytes();
        std::optional<Choice> best;
        for (int round = 0; round < kMostRounds; ++round) {
            if (const auto ok = look_at_batches(limit_bytes); !ok) {
                return tl::unexpected(ok.error());
            }
            if (points_.empty()) return std::optional<Choice>();
            const BatchPoint& point = best_point();
            if (best && point.scene.batch_size == best->scene.batch_size) break;
            auto choice = choose_at(point.scene.batch_size);
            if (!choice) return choice;
            if (!*choice) {
                const auto simulated = search_.simulate(point.scene, point.fastest);
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
        // What fits without a search is not given up.
        if (!best && own_max_batch_ > 0) return choose_at(own_max_batch_);
        if (!best) return best;
        return at_own_best_batch(std::move(*best));
    }

    /// The choice, or that at the batch where the chosen recipe itself is fastest, where that is
    /// faster: estimates of memory may end the batches a little before the simulator does.
    models::Result<std::optional<Choice>> at_own_best_batch(Choice choice) {
        const auto chosen = search_.simulate(choice.scene, choice.choices[choice.index]);
        if (!chosen) return tl::unexpected(chosen.error());
        const double rate =
            search_.sequences_per_s(choice.scene.batch_size, (*chosen)->time.total_ns());
        fill_plan_row((*chosen)->workload, choice.scene.batch_size);
        if (row_.row.status != PlanStatus::kOk || row_.row.best_sequences_per_s <= rate) {
            return std::optional(std::move(choice));
        }
        auto other = choose_at(*row_.row.best_batch_size);
        if (!other) return other;
        if (!*other) return std::optional(std::move(choice));
        const auto faster = search_.simulate((*other)->scene, (*other)->choices[(*other)->index]);
        if (!faster) return tl::unexpected(faster.error());
        const double other_rate =
            search_.sequences_per_s((*other)->scene.batch_size, (*faster)->time.total_ns());
        if (other_rate > rate) return other;
        return std::optional(std::move(choice));
    }

    /// Fills points_ with the fastest mix of every batch that has one.
    models::Result<void> look_at_batches(int64_t limit_bytes) {
        points_.clear();
        const auto largest = search_.find_largest_batch(limit_bytes);
        if (!largest) return tl::unexpected(largest.error());
        if (*largest == 0) return {};
        const bool dense = search_.interpolation().has_line_of_ops();
        const std::vector<int64_t> coarse = batches_up_to(*largest, dense);
        if (const auto ok = add_points(coarse, limit_bytes); !ok) return ok;
        if (!dense || points_.empty()) return {};
        const int64_t best = best_point().scene.batch_size;
        if (const auto ok = add_points(batches_beside({best, *largest}, coarse), limit_bytes);
            !ok) {
            return ok;
        }
        std::sort(points_.begin(), points_.end(), [](const BatchPoint& a, const BatchPoint& b) {
            return a.scene.batch_size < b.scene.batch_size;
        });
        return {};
    }

    models::Result<void> add_points(const std::vector<int64_t>& batches, int64_t limit_bytes) {
        for (const int64_t batch_size : batches) {
            auto scene = search_.look_at(batch_size);
            if (!scene) return tl::unexpected(scene.error());
            scene->problem.most_peak_bytes = limit_bytes;
            std::vector<LayerChoice> choices = pareto_layer_choices(scene->problem);
            if (choices.empty()) continue;
            const double rate =
                search_.sequences_per_s(batch_size, search_.step_ns(*scene, choices.back()));
            points_.push_back({std::move(*scene), std::move(choices.back()), rate});
        }
        return {};
    }

    const BatchPoint& best_point() const {
        return *std::max_element(
            points_.begin(), points_.end(),
            [](const BatchPoint& a, const BatchPoint& b) { return a.rate < b.rate; });
    }

    models::Result<void> report(const Choice& choice) {
        const auto chosen = search_.simulate(choice.scene, choice.choices[choice.index]);
        if (!chosen) return tl::unexpected(chosen.error());
        fill_plan_row((*chosen)->workload, choice.scene.batch_size);
        if (const auto ok = add_why(choice); !ok) return ok;
        if (const auto ok = add_sentence(choice, **chosen); !ok) return ok;
        return request_.plan.batch_size ? add_memory_frontier(choice) : add_batch_frontier(choice);
    }

    void fill_plan_row(const models::Workload& workload, int64_t batch_size) {
        PlanRequest one = request_.plan;
        one.batch_size = batch_size;
        row_.row = start_row(one, data_, workload, *own_.gpu);
        if (row_.row.status != PlanStatus::kOk) return;
        auto interpolation = BatchInterpolation::trace(
            traced_workload(workload, *own_.setup, data_.calibration), source_);
        if (!interpolation) {
            row_.row.status = PlanStatus::kNotSupported;
            row_.row.reason = interpolation.error().message;
            return;
        }
        fill_row(row_.row, one, data_, *interpolation);
    }

    models::Result<void> say_what_takes_least(int64_t batch_size) {
        if (batch_size > search_.interpolation().largest_valid_batch()) {
            fill_plan_row(own_.workload, batch_size);
            return {};
        }
        const auto scene = search_.look_at(batch_size);
        if (!scene) return tl::unexpected(scene.error());
        const models::Workload least = search_.workload_of(smallest_choice(scene->problem));
        fill_plan_row(least, batch_size);
        if (row_.row.status == PlanStatus::kDoesNotFit) {
            row_.row.reason = fmt::format("{} This is with {}, the recipe that takes least.",
                                          row_.row.reason, least.recipe_name);
        }
        return {};
    }

    models::Result<void> add_why(const Choice& choice) {
        if (row_.num_candidates == 1) {
            row_.why = "--recipe names no other recipe to compare with.";
            return {};
        }
        if (choice.index + 1 == choice.choices.size()) {
            row_.why = fmt::format("No recipe is faster at batch {}.", choice.scene.batch_size);
            return {};
        }
        const LayerChoice& faster = choice.choices[choice.index + 1];
        const auto next = search_.simulate(choice.scene, faster);
        if (!next) return tl::unexpected(next.error());
        const SimulatedChoice& simulated = **next;
        if (simulated.fits) {
            row_.why = "A faster recipe fits, too, but the search for it was ended.";
            return {};
        }
        const auto needed = search_.needed_bytes(simulated);
        if (!needed) return tl::unexpected(needed.error());
        row_.why = fmt::format(
            "The next faster recipe at batch {}, {}, would need {} for tensors, {} more than there "
            "is.",
            choice.scene.batch_size, simulated.workload.recipe_name, format_bytes(*needed),
            format_bytes(*needed - search_.capacity_bytes()));
        return {};
    }

    /// What a user would quote.
    models::Result<void> add_sentence(const Choice& choice, const SimulatedChoice& chosen) {
        const int64_t batch_size = choice.scene.batch_size;
        const std::string& own = own_.workload.recipe_name;
        const TechniqueWords words = describe_techniques(chosen.workload, own_.workload);
        if (row_.num_candidates == 1) {
            row_.sentence = fmt::format("{} alone was looked at; it fits at batch {}.", own,
                                        batch_text(batch_size));
            return {};
        }
        if (words.text == "nothing") {
            row_.sentence = fmt::format(
                "{} is the fastest recipe that fits at batch {}: nothing that saves memory pays.",
                own, batch_text(batch_size));
            return {};
        }
        const double share = chosen.time.total_ns() / choice.scene.own_step_ns - 1;
        std::string text = words.text;
        text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
        if (batch_size <= own_max_batch_) {
            row_.sentence =
                fmt::format("{} {} {} {} time a step than {} at batch {}, which fits, too.", text,
                            words.is_plural ? "take" : "takes", percent(std::abs(share)),
                            share < 0 ? "less" : "more", own, batch_text(batch_size));
            return {};
        }
        const auto limit = end_of_own(batch_size);
        if (!limit) return tl::unexpected(limit.error());
        const std::string bargain =
            share < 0
                ? fmt::format("{} batch {} and {} {} less time a step there than {} would take",
                              words.is_plural ? "allow" : "allows", batch_text(batch_size),
                              words.is_plural ? "take" : "takes", percent(-share), own)
                : fmt::format("{} batch {} for {} more time a step than {}",
                              words.is_plural ? "buy" : "buys", batch_text(batch_size),
                              percent(share), own);
        row_.sentence = fmt::format("{} {}, which {}{}.", text, bargain, *limit,
                                    compared_rates(batch_size, chosen));
        return {};
    }

    /// "8", of several GPUs "8 a GPU".
    std::string batch_text(int64_t batch_size) const {
        const bool is_shared = request_.plan.parallel.num_gpus > 1;
        return fmt::format("{}{}", batch_size, is_shared ? " a GPU" : "");
    }

    /// Why the workload's own recipe is not there: what follows "which".
    models::Result<std::string> end_of_own(int64_t batch_size) {
        if (own_max_batch_ > 0) {
            return fmt::format("ends at batch {}", batch_text(own_max_batch_));
        }
        const auto least = least_capacity_bytes(search_.interpolation(), search_.memory_options(),
                                                batch_size, search_.capacity_bytes());
        if (!least) return tl::unexpected(least.error());
        return fmt::format("does not fit at batch {}: it needs {} more than there is",
                           batch_text(batch_size), format_bytes(*least - search_.capacity_bytes()));
    }

    /// ": 12.9 sequences/s instead of 11.3" where the batch is the search's; else nothing.
    std::string compared_rates(int64_t batch_size, const SimulatedChoice& chosen) {
        if (request_.plan.batch_size || own_max_batch_ == 0) return {};
        const auto own = search_.look_at(own_max_batch_);
        if (!own) return {};
        return fmt::format(": {:.1f} sequences/s instead of {:.1f}",
                           search_.sequences_per_s(batch_size, chosen.time.total_ns()),
                           search_.sequences_per_s(own_max_batch_, own->own_step_ns));
    }

    FrontierPoint point_of(const BatchScene& scene, const LayerChoice& choice) const {
        const double step_ns = search_.step_ns(scene, choice);
        return {.recipe = search_.workload_of(choice).recipe_name,
                .batch_size = scene.batch_size,
                .step_time_ns = whole_ns(step_ns),
                .sequences_per_s = search_.sequences_per_s(scene.batch_size, step_ns),
                .peak_allocated_bytes = choice.peak_bytes};
    }

    models::Result<FrontierPoint> simulated_point(const BatchScene& scene,
                                                  const LayerChoice& choice) {
        const auto result = search_.simulate(scene, choice);
        if (!result) return tl::unexpected(result.error());
        const double step_ns = (*result)->time.total_ns();
        FrontierPoint point = point_of(scene, choice);
        point.step_time_ns = whole_ns(step_ns);
        point.sequences_per_s = search_.sequences_per_s(scene.batch_size, step_ns);
        point.peak_allocated_bytes = (*result)->peaks.peak_allocated_bytes;
        point.is_simulated = true;
        point.fits = (*result)->fits;
        return point;
    }

    /// Peak and time at the batch that was asked for. The chosen point and its neighbours are
    /// simulated; the estimates of the others are moved by what the chosen one's was off.
    models::Result<void> add_memory_frontier(const Choice& choice) {
        const auto chosen = simulated_point(choice.scene, choice.choices[choice.index]);
        if (!chosen) return tl::unexpected(chosen.error());
        const FrontierPoint estimate = point_of(choice.scene, choice.choices[choice.index]);
        std::vector<FrontierPoint> points;
        for (std::size_t i = 0; i < choice.choices.size(); ++i) {
            const bool is_near = i + 1 >= choice.index && i <= choice.index + 1;
            if (is_near) {
                const auto point = simulated_point(choice.scene, choice.choices[i]);
                if (!point) return tl::unexpected(point.error());
                points.push_back(*point);
                points.back().is_chosen = i == choice.index;
                continue;
            }
            FrontierPoint point = point_of(choice.scene, choice.choices[i]);
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

    /// The fastest recipe of each batch from the chosen one on.
    models::Result<void> add_batch_frontier(const Choice& choice) {
        auto chosen = simulated_point(choice.scene, choice.choices[choice.index]);
        if (!chosen) return tl::unexpected(chosen.error());
        chosen->is_chosen = true;
        std::vector<FrontierPoint> points{*chosen};
        for (const BatchPoint& point : points_) {
            if (point.scene.batch_size <= choice.scene.batch_size) continue;
            if (points.size() > 1) {
                points.push_back(point_of(point.scene, point.fastest));
                // Of the row's own recipe it is known what fits.
                const bool fits = points.back().batch_size <= own_max_batch_ ||
                                  points.back().recipe != own_.workload.recipe_name;
                if (!fits) points.pop_back();
                continue;
            }
            const auto next = simulated_point(point.scene, point.fastest);  // the neighbour
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
    const PlanRow own_;  // of the workload's own recipe, before it is filled
    const AutoRequest& request_;
    const PlannerData& data_;
    const MetaTraceSource& source_;
    RecipeSearch search_;
    int64_t own_max_batch_ = 0;
    std::vector<BatchPoint> points_;
};

}  // namespace

void fill_auto_row(AutoRow& row, const AutoRequest& request, const PlannerData& data,
                   const MetaTraceSource& source, BatchInterpolation& interpolation) {
    AutoRowBuilder(row, request, data, source, interpolation).fill();
}

}  // namespace profiler
