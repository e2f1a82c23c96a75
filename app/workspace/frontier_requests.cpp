#include "app/workspace/frontier_requests.h"

#include "models/config/layer_recipes.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/throughput.h"

#include <algorithm>
#include <utility>

namespace app {
namespace {

using profiler::FrontierMark;
using profiler::MeasuredStep;

/// A trace of another optimizer stands at the recipe that has the Planner's.
std::vector<FrontierMark> marks_of(const WorkspaceState& state, models::Optimizer optimizer) {
    std::vector<FrontierMark> marks;
    const auto add = [&](const DocumentPtr& document, const char* letter) {
        if (!document || !document->canonical_recipe) return;
        marks.push_back(
            {letter, profiler::with_optimizer_of(*document->canonical_recipe, optimizer)});
    };
    add(state.selection.a, "A");
    add(state.selection.b, "B");
    return marks;
}

/// The open traces that ran this step with some recipe.
std::vector<MeasuredStep> measured_of(const WorkspaceState& state, const PlannerQuery& query) {
    std::vector<MeasuredStep> measured;
    for (const DocumentPtr& document : state.documents) {
        const profiler::Source source = document->trace->run().source;
        const bool on_gpu = source == profiler::Source::kMeasuredCuda;
        if (!on_gpu && source != profiler::Source::kMeasuredCpu) continue;
        if (!document->has_step || !document->step || !document->canonical_recipe) continue;
        if (!profiler::why_out_of_memory(*document->trace).empty()) continue;  // no whole step
        if (!models::comparable(*document->step, query.workload)) continue;
        if (document->step->recipe.optimizer != query.optimizer) continue;
        MeasuredStep step{.name = document->recipe,
                          .recipe = *document->canonical_recipe,
                          .peak_allocated_bytes = document->index->peak().allocated_bytes};
        std::vector<int64_t> times_ns;
        const auto& steps = document->trace->steps;
        for (size_t i = 0; on_gpu && i < static_cast<size_t>(steps.size()); ++i) {
            const profiler::Step one = steps[profiler::Id<profiler::Step>(i)];
            times_ns.push_back(one.end_ns - one.start_ns);
        }
        if (on_gpu) step.step_time_ns = profiler::median(std::move(times_ns));
        measured.push_back(std::move(step));
    }
    return measured;
}

std::vector<std::string> recipes_between(const FrontierQuery& query) {
    const auto from = models::parse_layer_recipes(query.from);
    const auto to = models::parse_layer_recipes(query.to);
    if (!from || !to || !from->layers.empty() || !to->layers.empty()) return {};
    std::vector<std::string> texts;
    for (const auto& recipe : profiler::recipes_between(from->recipe, to->recipe)) {
        texts.push_back(models::to_text(recipe));
    }
    return texts;
}

}  // namespace

PlanQuestion frontier_wish(const WorkspaceState& state) {
    const PlannerQuery query = shown_query(state.queries.planner, state.selection);
    PlanQuestion wish = planner_question(query, state.queries.plan.gpu);
    wish.recipes.clear();
    wish.keeps_traces = false;
    const models::LayerRecipes own{.recipe = {.optimizer = query.optimizer}, .layers = {}};
    wish.workload = models::with_recipe(std::move(wish.workload), own);
    for (FrontierMark& mark : marks_of(state, query.optimizer)) {
        wish.recipes.push_back(std::move(mark.recipe));
    }
    for (MeasuredStep& step : measured_of(state, query)) {
        wish.recipes.push_back(std::move(step.recipe));
    }
    for (std::string& recipe : recipes_between(state.queries.frontier)) {
        wish.recipes.push_back(std::move(recipe));
    }
    return wish;
}

/// Without documents, so that the old dots stay until the new view is ready.
std::optional<ViewOrder<profiler::FrontierRequest>> order_frontier(const WorkspaceState& state) {
    if (!state.queries.frontier.is_drawn) return std::nullopt;
    const PlannerQuery query = shown_query(state.queries.planner, state.selection);
    return ViewOrder<profiler::FrontierRequest>{
        .request = {.planned = state.frontier_plans.plan(),
                    .axis = state.queries.frontier.axis,
                    .batch_size = query.workload.batch_size,
                    .gpu = state.queries.plan.gpu,
                    .gpus = &state.frontier_plans.gpus(),
                    .marks = marks_of(state, query.optimizer),
                    .measured = measured_of(state, query)}};
}

}  // namespace app
