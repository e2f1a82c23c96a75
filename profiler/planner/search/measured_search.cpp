#include "profiler/planner/search/measured_search.h"

#include "models/config/batch_bisection.h"
#include "models/config/switches.h"
#include "profiler/planner/search/step_recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace profiler {
namespace {

using models::LayerRecipes;
using models::Recipe;
using models::Result;

/// The point of the largest batch up to `batch_size`; null if there is none.
const PlanPoint* point_up_to(const MeasuredRecipe& measured, int64_t batch_size) {
    const PlanPoint* found = nullptr;
    for (const PlanPoint& point : measured.curve) {
        if (point.batch_size <= batch_size) found = &point;
    }
    return found;
}

bool is_unsaturated(const PlanPoint& smaller, const PlanPoint& larger) {
    const double batch_ratio =
        static_cast<double>(larger.batch_size) / static_cast<double>(smaller.batch_size);
    const double time_ratio =
        static_cast<double>(larger.step_time_ns) / static_cast<double>(smaller.step_time_ns);
    return time_ratio < kUnsaturatedTimeShare * batch_ratio;
}

/// Whether throughput still rises over the last two doublings of the batch. True with fewer points:
/// nothing says that it does not.
bool rises_with_batch(const MeasuredRecipe& measured) {
    const PlanPoint* const last = point_up_to(measured, measured.max_batch_size);
    const PlanPoint* const half = last ? point_up_to(measured, last->batch_size / 2) : nullptr;
    const PlanPoint* const quarter = half ? point_up_to(measured, half->batch_size / 2) : nullptr;
    if (quarter == nullptr) return true;
    return is_unsaturated(*quarter, *half) && is_unsaturated(*half, *last);
}

/// Measures recipes of a space, each once, and remembers the best one.
class SearchedRecipes {
public:
    SearchedRecipes(const ConversionSpace& space, std::vector<std::string> techniques,
                    const MeasureRecipe& measure_recipe)
        : space_(space), techniques_(std::move(techniques)), measure_recipe_(measure_recipe) {}

    std::size_t num_techniques() const { return techniques_.size(); }
    const std::string& technique(std::size_t index) const { return techniques_[index]; }
    LayerCounts all(int64_t count) const { return LayerCounts(techniques_.size(), count); }
    const MeasuredRecipe& best() const { return search_.tried[search_.chosen]; }

    Result<double> rate_of(const LayerCounts& counts) {
        for (const MeasuredRecipe& one : search_.tried) {
            if (one.counts == counts) return one.sequences_per_s();
        }
        LayerRecipes recipe = recipe_of(space_, techniques_, counts);
        auto measured = measure_recipe_(recipe, likely_batch());
        if (!measured) return tl::unexpected(measured.error());
        const double rate = measured->sequences_per_s();
        measured->counts = counts;
        measured->recipe = std::move(recipe);
        search_.tried.push_back(std::move(*measured));
        const bool is_first = search_.tried.size() == 1;
        if (!is_first && rate > best().sequences_per_s() * (1 + kLeastGain)) {
            search_.chosen = search_.tried.size() - 1;
        }
        return rate;
    }

    MeasuredSearch take(std::string why) {
        search_.why = std::move(why);
        return std::move(search_);
    }

private:
    int64_t likely_batch() const {
        return search_.tried.empty() ? 0 : search_.tried.back().max_batch_size;
    }

    const ConversionSpace& space_;
    std::vector<std::string> techniques_;
    const MeasureRecipe& measure_recipe_;
    MeasuredSearch search_;
};

/// "9.12 instead of 8.30 sequences/s"
std::string gain_text(const SearchedRecipes& searched, double own_rate) {
    return fmt::format("{:.3g} instead of {:.3g} sequences/s", searched.best().sequences_per_s(),
                       own_rate);
}

/// Bisects the number of layers that have one technique; the other techniques stay as in the best
/// recipe so far. Keeps the half whose end is faster, as AutoTempo does.
Result<void> bisect_layers(SearchedRecipes& searched, std::size_t technique, int64_t num_layers) {
    LayerCounts counts = searched.best().counts;
    const auto rate_at = [&](int64_t count) {
        counts[technique] = count;
        return searched.rate_of(counts);
    };
    int64_t low = 0, high = num_layers;
    auto low_rate = rate_at(low);
    if (!low_rate) return tl::unexpected(low_rate.error());
    auto high_rate = rate_at(high);
    if (!high_rate) return tl::unexpected(high_rate.error());
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        auto rate = rate_at(middle);
        if (!rate) return tl::unexpected(rate.error());
        const bool keeps_low = *low_rate > *high_rate;
        (keeps_low ? high : low) = middle;
        (keeps_low ? high_rate : low_rate) = rate;
    }
    return {};
}

std::string smart_sentence(const SearchedRecipes& searched, double own_rate, int64_t num_layers) {
    const LayerCounts& counts = searched.best().counts;
    if (counts == searched.all(0)) {
        return "No number of layers with any technique trains faster than none.";
    }
    std::string layers;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        layers += fmt::format("{}{} in {} of {} layers", i == 0 ? "" : ", ", searched.technique(i),
                              counts[i], num_layers);
    }
    return fmt::format("{}: {}.", gain_text(searched, own_rate), layers);
}

}  // namespace

Result<std::vector<std::string>> techniques_of(const ConversionSpace& space) {
    std::vector<std::string> techniques;
    std::string_view whole_step;
    models::for_each_switch([&](const auto& table) {
        if (space.from.*table.member == space.to.*table.member) return;
        if (table.is_for_step) whole_step = table.name;
        techniques.push_back(fmt::format("{}={}", table.name, table.chosen(space.to).name));
    });
    if (!whole_step.empty()) {
        return models::fail(
            "The two recipes differ in {}, which is one choice for the whole step, and the search "
            "chooses for single layers: give both the same.",
            whole_step);
    }
    if (techniques.size() > static_cast<std::size_t>(kMostSwitches)) {
        return models::fail(
            "The two recipes differ in {} switches, and the search chooses among at most {}: name "
            "recipes that are more alike.",
            techniques.size(), kMostSwitches);
    }
    if (techniques.empty()) {
        return models::fail("The two recipes are the same: there is nothing to choose.");
    }
    return techniques;
}

LayerRecipes recipe_of(const ConversionSpace& space, const std::vector<std::string>& techniques,
                       const LayerCounts& counts) {
    std::vector<Recipe> layers(static_cast<std::size_t>(space.num_layers), space.from);
    for (std::size_t i = 0; i < techniques.size(); ++i) {
        for (int64_t layer = 0; layer < counts[i]; ++layer) {
            // The text of a switch of ours: it always applies.
            (void)apply_recipe_items(layers[static_cast<std::size_t>(layer)], techniques[i]);
        }
    }
    return layer_recipes_of(most_frequent(layers), layers);
}

const PlanPoint* MeasuredRecipe::best() const {
    const auto best = std::ranges::max_element(curve, {}, &PlanPoint::sequences_per_s);
    return best == curve.end() ? nullptr : &*best;
}

double MeasuredRecipe::sequences_per_s() const {
    const PlanPoint* const point = best();
    return point == nullptr ? 0 : point->sequences_per_s;
}

Result<MeasuredRecipe> measure_batches(const MeasureBatch& measure_batch, int64_t likely,
                                       int64_t most) {
    MeasuredRecipe measured;
    models::BatchBisection search{.most = most};
    int64_t batch_size = std::clamp<int64_t>(likely, 1, most);
    int64_t less = 1;
    while (true) {
        const auto tried = measure_batch(batch_size);
        if (!tried) return tl::unexpected(tried.error());
        const std::optional<PlanPoint>& point = *tried;
        search.answer(batch_size, point.has_value());
        if (point) measured.curve.push_back(*point);
        if (search.is_done()) break;
        // Below a likely batch that does not fit: 1, 2, 4, ... less, until one does.
        batch_size =
            search.fits > 0
                ? search.next()
                : search.next(std::max<int64_t>(search.fails - std::exchange(less, 2 * less), 1));
    }
    measured.max_batch_size = search.fits;
    std::ranges::sort(measured.curve, {}, &PlanPoint::batch_size);
    return measured;
}

Result<MeasuredSearch> search_fast(const ConversionSpace& space,
                                   const MeasureRecipe& measure_recipe) {
    auto techniques = techniques_of(space);
    if (!techniques) return tl::unexpected(techniques.error());
    SearchedRecipes searched(space, std::move(*techniques), measure_recipe);
    const auto own_rate = searched.rate_of(searched.all(0));
    if (!own_rate) return tl::unexpected(own_rate.error());
    if (!rises_with_batch(searched.best())) {
        return searched.take(
            "Throughput no longer rises with the batch, so memory for a larger batch gains "
            "nothing: the techniques were not run.");
    }
    const auto rate = searched.rate_of(searched.all(space.num_layers));
    if (!rate) return tl::unexpected(rate.error());
    if (searched.best().counts == searched.all(0)) {
        return searched.take(
            fmt::format("All techniques in all layers train {:.3g} instead of {:.3g} sequences/s.",
                        *rate, *own_rate));
    }
    return searched.take(
        fmt::format("{}: all techniques in all layers.", gain_text(searched, *own_rate)));
}

Result<MeasuredSearch> search_smart(const ConversionSpace& space,
                                    const MeasureRecipe& measure_recipe) {
    auto techniques = techniques_of(space);
    if (!techniques) return tl::unexpected(techniques.error());
    SearchedRecipes searched(space, std::move(*techniques), measure_recipe);
    const auto own_rate = searched.rate_of(searched.all(0));
    if (!own_rate) return tl::unexpected(own_rate.error());
    const auto rate = searched.rate_of(searched.all(space.num_layers));
    if (!rate) return tl::unexpected(rate.error());
    for (std::size_t i = 0; i < searched.num_techniques(); ++i) {
        const auto done = bisect_layers(searched, i, space.num_layers);
        if (!done) return tl::unexpected(done.error());
    }
    return searched.take(smart_sentence(searched, *own_rate, space.num_layers));
}

}  // namespace profiler
