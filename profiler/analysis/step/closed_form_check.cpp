#include "profiler/analysis/step/closed_form.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/recorded_program.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace profiler {
namespace {

/// The recipe of `layer` if its neighbours have the same one, otherwise nullopt: the recipes of
/// both layers decide what is saved between them.
std::optional<models::Recipe> recipe_around(const Trace& trace, int64_t layer,
                                            const models::Recipe& of_workload) {
    const std::string_view text = trace.text(trace.run().recipe_per_layer);
    if (text.empty()) return of_workload;
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_array() || static_cast<int64_t>(json.size()) < layer + 2) return std::nullopt;
    const auto index = static_cast<std::size_t>(layer);
    if (!json[index].is_string()) return std::nullopt;
    if (json[index] != json[index - 1] || json[index] != json[index + 1]) return std::nullopt;
    const auto recipe = models::parse_recipe(json[index].get_ref<const std::string&>());
    return recipe ? std::optional(*recipe) : std::nullopt;
}

bool differs_by_layer(const Trace& trace) {
    const std::string_view text = trace.text(trace.run().recipe_per_layer);
    if (text.empty()) return false;
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_array()) return true;
    return std::any_of(json.begin(), json.end(),
                       [&](const nlohmann::json& recipe) { return recipe != json.front(); });
}

/// A layer in the middle of the stack; nullopt: there is none that begins a checkpoint.
std::optional<int64_t> middle_layer(const models::Workload& workload) {
    const int64_t num_layers = workload.model.num_layers;
    const int64_t stride =
        std::max<int64_t>(models::layers_per_checkpoint(workload.recipe.checkpoint, num_layers), 1);
    const int64_t layer = std::max(num_layers / 2 / stride * stride, stride);
    return layer < num_layers - 1 ? std::optional(layer) : std::nullopt;
}

struct LayerOfStep {
    models::Workload workload;
    LayerSplit split;
};

/// What a layer of the trace trains. Errors: why there is none to compare.
models::Result<LayerOfStep> step_of(const Trace& trace) {
    if (auto workload = workload_of(trace)) return LayerOfStep{std::move(*workload)};
    const auto program = program_of(trace);
    if (!program || !program->spread) {
        return models::fail("the trace does not say which model ran");
    }
    const auto& [workload, parallel] = *program->spread;
    if (parallel.strategy == models::Strategy::kPipeline) {
        return models::fail("a stage of a pipeline has some of the layers");
    }
    const bool is_split = parallel.strategy == models::Strategy::kTensor;
    return LayerOfStep{workload, {.num_gpus = is_split ? parallel.group_size : 1}};
}

/// "saves 452,984,832 B for backward, equal to the closed form n(16e+2)+T(2e+1)+4Rs."
std::string what_it_saves(const ClosedFormCheck& check) {
    const std::string saved =
        fmt::format("saves {} for backward", format_exact_bytes(check.ledger_bytes));
    if (check.equal()) {
        return fmt::format("{}, equal to the closed form {}.", saved, check.form.formula);
    }
    return fmt::format("{}; the closed form {} says {}.", saved, check.form.formula,
                       format_exact_bytes(check.form.total_bytes));
}

}  // namespace

models::Result<ClosedFormCheck> check_against_closed_form(const Trace& trace,
                                                          const Ledger& ledger) {
    const auto nothing = [](std::string_view why) {
        return models::fail("There is no closed form to compare with: {}.", why);
    };
    auto step = step_of(trace);
    if (!step) return nothing(step.error().message);
    models::Workload& workload = step->workload;
    if (ledger.rows.empty()) return nothing("nothing is saved for backward");
    if (workload.model.num_layers < 3) {
        return nothing(fmt::format(
            "closed forms hold for a middle layer, which shares its input and output with its "
            "neighbours, and {} {} no middle; capture at least three layers",
            workload.model.num_layers,
            workload.model.num_layers == 1 ? "layer has" : "layers have"));
    }
    const auto layer = middle_layer(workload);
    if (!layer) return nothing("no middle layer begins a checkpoint; capture at least four layers");
    const auto recipe = recipe_around(trace, *layer, workload.recipe);
    if (!recipe) return nothing("the middle layer's neighbours have other recipes");
    if (recipe->checkpoint == models::Checkpoint::kSqrt && differs_by_layer(trace)) {
        return nothing("where recipes differ by layer, checkpoints begin at other layers");
    }
    workload.recipe = *recipe;
    workload.layer_recipes.clear();
    auto form =
        closed_form_of_layer(workload, trace.run().source == Source::kMeasuredCpu, step->split);
    if (!form) return tl::unexpected(form.error());

    ClosedFormCheck check{.layer = *layer, .form = std::move(*form)};
    for (const LedgerRow& row : ledger.rows) {
        if (row.layer == *layer) check.ledger_bytes += row.size_bytes;
    }
    return check;
}

models::Result<ClosedFormCheck> check_against_closed_form(const Trace& trace) {
    return check_against_closed_form(trace, build_ledger(trace));
}

std::string to_sentence(const ClosedFormCheck& check) {
    return fmt::format("Layer {} {}", check.layer, what_it_saves(check));
}

std::string to_sentence_below_rows(const ClosedFormCheck& check) {
    return fmt::format("Checked on the middle layer, {}: it {}", check.layer, what_it_saves(check));
}

}  // namespace profiler
