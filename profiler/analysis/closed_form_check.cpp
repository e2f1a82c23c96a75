#include "profiler/analysis/closed_form.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace profiler {
namespace {

/// The recipe of `layer`, when its neighbours have the same (what a layer hands to the next is
/// charged by both their recipes); nullopt otherwise.
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

}  // namespace

std::optional<ClosedFormCheck> check_against_closed_form(const Trace& trace) {
    const auto json = nlohmann::json::parse(trace.text(trace.run().workload), nullptr, false);
    if (json.is_discarded()) return std::nullopt;
    auto workload = models::workload_from_json(json);
    if (!workload || workload->model.num_layers < 3) return std::nullopt;

    ClosedFormCheck check;
    check.layer = workload->model.num_layers / 2;
    const auto recipe = recipe_around(trace, check.layer, workload->recipe);
    if (!recipe) return std::nullopt;
    workload->recipe = *recipe;
    const auto form = closed_form_of_layer(*workload, trace.run().source == Source::kMeasuredCpu);
    if (!form) return std::nullopt;

    check.closed_form_bytes = form->total_bytes;
    const Ledger ledger = build_ledger(trace);
    if (ledger.rows.empty()) return std::nullopt;
    for (const LedgerRow& row : ledger.rows) {
        if (row.layer == check.layer) check.ledger_bytes += row.size_bytes;
    }
    return check;
}

}  // namespace profiler
