#include "app/workspace/view_orders.h"

#include "models/config/layer_recipes.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/throughput.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace app {
namespace {

using profiler::MeasuredStep;
using profiler::PairRecipe;

bool has_step(const DocumentPtr& document) { return document && document->has_step; }

const profiler::StepIndex* step_of(const DocumentPtr& document) {
    return has_step(document) ? document->index.get() : nullptr;
}

/// A and B, whether they have a recorded step or not.
profiler::Steps all_steps(const Selection& selection) {
    const auto index = [](const DocumentPtr& one) { return one ? one->index.get() : nullptr; };
    return {index(selection.a), index(selection.b)};
}

/// A request that borrows from A and B.
template <typename Request>
ViewOrder<Request> of_pair(const Selection& selection, Request request) {
    return {std::move(request), {selection.a, selection.b}};
}

profiler::LedgerSpan span_of(const profiler::TimeRange& range, const profiler::TimeMap& map) {
    const auto to_clock = [&](double time_ns) {
        return std::llround(std::clamp(map.to_own(time_ns), -0x1p60, 0x1p60));
    };
    return {to_clock(range.start_ns), to_clock(range.end_ns)};
}

/// The Memory timeline and the Kernels panel share phases and modules; the wider one decides.
TimeWindow window_of_phases(const TimeAxis& time) {
    TimeWindow window = time.window;
    window.width_px = std::max(window.width_px, time.kernels_width_px);
    return with_margins(window);
}

/// What all requests of the Blocks panel begin with: A must have a step, and the panel must be in
/// sight.
bool draws_blocks(const WindowState& window) {
    const BlocksQuery& query = window.own.blocks;
    return window.open.blocks && has_step(window.selection.a) && query.width_px > 0 &&
           query.height_px > 0;
}

bool is_difference(const WindowState& window) {
    return window.own.blocks.show == BlocksQuery::Show::kDifference && has_step(window.selection.b);
}

/// The card of the query; for logical ops of a trace without a card of its own, the usual one.
/// Null: the trace's own.
const profiler::Gpu* card_of(const MovementOrder& order, const profiler::Trace& trace) {
    std::string id = order.query.gpu;
    const bool is_logical = order.query.ops == profiler::MovementOps::kLogical;
    if (id.empty() && is_logical && !profiler::gpu_of_trace(trace, *order.gpus)) {
        id = order.usual_gpu;
    }
    if (id.empty()) return nullptr;
    const auto gpu = profiler::find_gpu(*order.gpus, id);
    return gpu ? *gpu : nullptr;
}

}  // namespace

profiler::Steps recorded_steps(const Selection& selection) {
    const profiler::StepIndex* const a = step_of(selection.a);
    return {a, a ? step_of(selection.b) : nullptr};
}

/// A program that failed before its first step has a verdict, too.
std::optional<ViewOrder<profiler::AdviceRequest>> order_advice(const WorkspaceState& state) {
    const DocumentPtr& a = state.selection.a;
    if (!a || (!a->has_step && a->trace->failures.empty())) return std::nullopt;
    return ViewOrder<profiler::AdviceRequest>{.request = {.step = a->index.get(),
                                                          .target = state.queries.advice,
                                                          .data = &state.planner_data,
                                                          .trials = state.trials},
                                              .documents = {a}};
}

std::optional<ViewOrder<profiler::PairRequest>> order_pair(const WorkspaceState& state) {
    const profiler::Steps steps = recorded_steps(state.selection);
    if (!steps.a || !steps.b || !state.time.alignment) return std::nullopt;
    return of_pair(state.selection, profiler::PairRequest{steps, state.time.alignment});
}

profiler::TimelineRequest timeline_request(const Selection& selection, const TimeAxis& time,
                                           const TimeWindow& window) {
    return {.steps = recorded_steps(selection),
            .names = {"A  " + selection.label_a.name, "B  " + selection.label_b.name},
            .start_ns = window.start_ns,
            .end_ns = window.end_ns,
            .width_px = window.width_px,
            .alignment = time.alignment};
}

std::optional<ViewOrder<profiler::TimelineRequest>> order_timeline(const WorkspaceState& state) {
    const TimeWindow window = window_of_phases(state.time);
    if (!has_step(state.selection.a) || window.width_px <= 0) return std::nullopt;
    return of_pair(state.selection, timeline_request(state.selection, state.time, window));
}

std::optional<ViewOrder<profiler::RibbonRequest>> order_ribbon(const WorkspaceState& state) {
    const TimeWindow window = window_of_phases(state.time);
    if (!has_step(state.selection.a) || window.width_px <= 0) return std::nullopt;
    return of_pair(state.selection,
                   profiler::RibbonRequest{.steps = recorded_steps(state.selection),
                                           .start_ns = window.start_ns,
                                           .end_ns = window.end_ns,
                                           .width_px = window.width_px,
                                           .alignment = state.time.alignment});
}

std::optional<ViewOrder<profiler::KernelsRequest>> order_kernels(const WorkspaceState& state) {
    const TimeAxis& time = state.time;
    // The Kernels panel and the lane in the Memory timeline share the view; the wider one decides.
    const int width_px = std::max(time.kernels_width_px, time.lane_width_px);
    if (!has_step(state.selection.a) || width_px <= 0) return std::nullopt;
    const TimeWindow window = with_margins(time.window);
    return of_pair(state.selection,
                   profiler::KernelsRequest{.steps = recorded_steps(state.selection),
                                            .start_ns = window.start_ns,
                                            .end_ns = window.end_ns,
                                            .width_px = 2 * width_px,  // with the margins
                                            .alignment = time.alignment,
                                            .marks = state.marks});
}

std::optional<ViewOrder<profiler::MarksRequest>> order_marks(const WorkspaceState& state) {
    const Selection& selection = state.selection;
    if (!has_step(selection.a) || !selection.marks) return std::nullopt;
    return of_pair(selection, profiler::MarksRequest{all_steps(selection), *selection.marks});
}

std::optional<ViewOrder<profiler::LedgerRequest>> order_ledger(const WindowState& window) {
    const Selection& selection = window.selection;
    const LedgerQuery& query = window.own.ledger;
    if (!window.open.ledger || !has_step(selection.a)) return std::nullopt;
    profiler::LedgerRequest request{.steps = recorded_steps(selection),
                                    .filter = query.filter,
                                    .sort_by = query.sort_by,
                                    .descending = query.descending,
                                    .only_differences = query.only_differences,
                                    .grouping = query.grouping};
    if (!query.compare) request.steps.b = nullptr;
    for (size_t i = 0; selection.range && i < request.steps.size(); ++i) {
        request.spans[i] = span_of(*selection.range, profiler::map_of(window.time.alignment, i));
    }
    return of_pair(selection, std::move(request));
}

profiler::LayerRequest layer_request(const DocumentPtr& a, const DocumentPtr& b,
                                     const profiler::LayerRange& layers) {
    return {{step_of(a), step_of(b)}, layers};
}

std::optional<ViewOrder<profiler::LayerRequest>> order_layers(const WorkspaceState& state) {
    const Selection& selection = state.selection;
    if (!has_step(selection.a)) return std::nullopt;
    const int64_t middle = selection.a->trace->run().num_layers / 2;
    return of_pair(selection,
                   layer_request(selection.a, selection.b,
                                 selection.layers.value_or(profiler::LayerRange{middle, middle})));
}

std::optional<ViewOrder<profiler::FlameRequest>> order_flame(const WindowState& window) {
    const Selection& selection = window.selection;
    const FlameQuery& query = window.own.flame;
    if (!window.open.flame || !query.is_drawn || !has_step(selection.a)) return std::nullopt;
    return of_pair(selection, profiler::FlameRequest{.steps = recorded_steps(selection),
                                                     .alignment = window.time.alignment,
                                                     .moment_ns = selection.moment_ns,
                                                     .mode = query.mode,
                                                     .combine_layers = query.combine_layers,
                                                     .by_stack = query.by_stack,
                                                     .search = query.search});
}

std::optional<ViewOrder<profiler::RangeRequest>> order_range(const WindowState& window) {
    const Selection& selection = inspected(window.own.inspector, window.selection);
    if (!window.open.inspector || !has_step(selection.a) || !selection.range) return std::nullopt;
    return of_pair(selection, profiler::RangeRequest{.steps = recorded_steps(selection),
                                                     .start_ns = selection.range->start_ns,
                                                     .end_ns = selection.range->end_ns,
                                                     .alignment = window.time.alignment});
}

std::optional<ViewOrder<profiler::InspectorRequest>> order_inspector(const WindowState& window) {
    const Selection& selection = inspected(window.own.inspector, window.selection);
    if (!window.open.inspector || !selection.a) return std::nullopt;
    if (!selection.category && !selection.tensor && !selection.call) return std::nullopt;
    profiler::InspectorRequest request{.steps = all_steps(selection),
                                       .category = selection.category};
    if (const auto& tensor = selection.tensor) {
        request.tensor = {tensor->in_b ? 1U : 0U, tensor->storage, tensor->allocation};
    }
    if (const auto& call = selection.call) {
        request.call = {call->in_b ? 1U : 0U, call->id};
    }
    return of_pair(selection, std::move(request));
}

/// Without documents, so that the old lines stay until the new plan is ready.
std::optional<ViewOrder<StepPlanRequest>> order_planner(const WorkspaceState& state) {
    if (!state.queries.planner.is_drawn) return std::nullopt;
    if (plans_nothing(state.queries.planner, state.selection)) return std::nullopt;
    const PlannerForm form = shown_form(state.queries.planner, state.selection);
    return ViewOrder<StepPlanRequest>{.request = planner_request(form, state.queries.plan.gpu)};
}

// ---- the Blocks panel -----------------------------------------------------------------------

size_t shown_trace(const Selection& selection, const BlocksQuery& query) {
    return query.show == BlocksQuery::Show::kB && has_step(selection.b) ? 1 : 0;
}

profiler::BlockColoring coloring_of(const Selection& selection, const BlocksQuery& query) {
    using profiler::BlockColoring;
    if (query.coloring) return *query.coloring;
    const bool only_stacks =
        selection.a && selection.a->trace->ops.empty() && !selection.a->trace->stacks.empty();
    return only_stacks ? BlockColoring::kOp : BlockColoring::kCategory;
}

double moment_of(const Selection& selection) {
    if (selection.moment_ns) return *selection.moment_ns;
    return selection.a ? static_cast<double>(selection.a->index->peak().time_ns) : 0;
}

std::optional<ViewOrder<profiler::BlocksRequest>> order_blocks(const WindowState& window) {
    if (!draws_blocks(window)) return std::nullopt;
    const BlocksQuery& query = window.own.blocks;
    TimeWindow shown = window.time.window;
    shown.width_px = query.width_px;
    return of_pair(window.selection,
                   profiler::BlocksRequest{
                       .time = timeline_request(window.selection, window.time, with_margins(shown)),
                       .shown = shown_trace(window.selection, query),
                       .difference = is_difference(window),
                       .height_px = query.height_px,
                       .phase_strip_px = query.phase_strip_px,
                       .low_bytes = query.low_bytes,
                       .high_bytes = query.high_bytes,
                       .all = window.time.limits,
                       .minimap_px = query.minimap_px,
                       .order = query.order,
                       .coloring = coloring_of(window.selection, query)});
}

std::optional<ViewOrder<profiler::LiveBlocksRequest>> order_live_blocks(const WindowState& window) {
    if (!draws_blocks(window)) return std::nullopt;
    return of_pair(window.selection, profiler::LiveBlocksRequest{
                                         .steps = recorded_steps(window.selection),
                                         .alignment = window.time.alignment,
                                         .shown = shown_trace(window.selection, window.own.blocks),
                                         .difference = is_difference(window),
                                         .moment_ns = moment_of(window.selection)});
}

std::optional<ViewOrder<profiler::SegmentMapRequest>> order_segments(const WindowState& window) {
    const BlocksQuery& query = window.own.blocks;
    if (!draws_blocks(window) || query.segment_px <= 0) return std::nullopt;
    const profiler::Steps steps = recorded_steps(window.selection);
    const size_t shown = shown_trace(window.selection, query);
    const bool replayed = query.what_if.shows_map && window.replayed &&
                          window.replayed->trace == &steps[shown].trace();
    return of_pair(window.selection,
                   profiler::SegmentMapRequest{.steps = steps,
                                               .alignment = window.time.alignment,
                                               .shown = shown,
                                               .moment_ns = moment_of(window.selection),
                                               .width_px = query.segment_px,
                                               .layout = replayed ? window.replayed : nullptr,
                                               .address = query.segment});
}

std::optional<ViewOrder<profiler::WhatIfRequest>> order_what_if(const WindowState& window) {
    const BlocksQuery& query = window.own.blocks;
    if (!draws_blocks(window) || !query.what_if.is_open) return std::nullopt;
    const profiler::Steps steps = recorded_steps(window.selection);
    return of_pair(window.selection,
                   profiler::WhatIfRequest{&steps[shown_trace(window.selection, query)],
                                           query.what_if.choice, query.what_if.tries_all});
}

// ---- the Movement panel ---------------------------------------------------------------------

std::optional<ViewOrder<MovementOrder>> order_movement(const WorkspaceState& state) {
    const MovementQuery& query = state.queries.movement;
    if (!query.is_drawn || !has_step(state.selection.a)) return std::nullopt;
    return of_pair(state.selection,
                   MovementOrder{recorded_steps(state.selection), query, state.queries.plan.gpu,
                                 &state.frontier_plans.gpus()});
}

profiler::MovementView build_movement(const MovementOrder& order) {
    profiler::MovementRequest request{.steps = order.steps,
                                      .ops = order.query.ops,
                                      .scope = order.query.scope,
                                      .sort_by = order.query.sort_by,
                                      .descending = order.query.descending};
    for (size_t i = 0; i < order.steps.size(); ++i) {
        const profiler::Trace& trace = order.steps[i].trace();
        request.peaks[i] = profiler::peaks_of_trace(trace, *order.gpus, card_of(order, trace));
    }
    return profiler::build_movement_view(request);
}

// ---- the Recipe frontier --------------------------------------------------------------------

namespace {

/// A trace of another optimizer stands at the recipe that has the Planner's.
std::vector<PairRecipe> recipes_of_pair(const WorkspaceState& state, models::Optimizer optimizer) {
    std::vector<PairRecipe> recipes;
    const auto add = [&](const DocumentPtr& document, const char* letter) {
        if (!document || !document->canonical_recipe) return;
        recipes.push_back(
            {letter, models::with_optimizer_of(*document->canonical_recipe, optimizer)});
    };
    add(state.selection.a, "A");
    add(state.selection.b, "B");
    return recipes;
}

/// The open traces that ran this step with some recipe.
std::vector<MeasuredStep> measured_of(const WorkspaceState& state, const PlannerForm& form) {
    std::vector<MeasuredStep> measured;
    for (const DocumentPtr& document : state.documents) {
        const profiler::Source source = document->trace->run().source;
        const bool on_gpu = source == profiler::Source::kMeasuredCuda;
        if (!on_gpu && source != profiler::Source::kMeasuredCpu) continue;
        if (!document->has_step || !document->step || !document->canonical_recipe) continue;
        if (!profiler::why_out_of_memory(*document->trace).empty()) continue;  // no whole step
        if (!models::comparable(*document->step, form.workload)) continue;
        if (document->step->recipe.optimizer != form.optimizer) continue;
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

StepPlanRequest frontier_request(const WorkspaceState& state) {
    const PlannerForm form = shown_form(state.queries.planner, state.selection);
    StepPlanRequest request = planner_request(form, state.queries.plan.gpu);
    request.recipes.clear();
    request.keeps_traces = false;
    const models::LayerRecipes own{.recipe = {.optimizer = form.optimizer}, .layers = {}};
    request.workload = models::with_recipe(std::move(request.workload), own);
    for (PairRecipe& one : recipes_of_pair(state, form.optimizer)) {
        request.recipes.push_back(std::move(one.recipe));
    }
    for (MeasuredStep& step : measured_of(state, form)) {
        request.recipes.push_back(std::move(step.recipe));
    }
    for (std::string& recipe : recipes_between(state.queries.frontier)) {
        request.recipes.push_back(std::move(recipe));
    }
    return request;
}

/// Without documents, so that the old dots stay until the new view is ready.
std::optional<ViewOrder<profiler::FrontierRequest>> order_frontier(const WorkspaceState& state) {
    if (!state.queries.frontier.is_drawn) return std::nullopt;
    if (plans_nothing(state.queries.planner, state.selection)) return std::nullopt;
    const PlannerForm form = shown_form(state.queries.planner, state.selection);
    return ViewOrder<profiler::FrontierRequest>{
        .request = {.planned = state.frontier_plans.plan(),
                    .axis = state.queries.frontier.axis,
                    .batch_size = form.workload.batch_size,
                    .gpu = state.queries.plan.gpu,
                    .gpus = &state.frontier_plans.gpus(),
                    .pair = recipes_of_pair(state, form.optimizer),
                    .measured = measured_of(state, form)}};
}

// ---- the Ranks panel ------------------------------------------------------------------------

std::optional<ViewOrder<std::vector<DocumentPtr>>> order_rank_run(const WorkspaceState& state) {
    if (state.queries.ranks.width_px <= 0) return std::nullopt;
    std::vector<DocumentPtr> ranks = ranks_beside(state.selection.a, state.documents);
    if (ranks.empty()) return std::nullopt;
    return ViewOrder<std::vector<DocumentPtr>>{.request = ranks, .documents = ranks};
}

std::optional<ViewOrder<profiler::RanksRequest>> order_ranks(const WorkspaceState& state) {
    const auto& ranks = state.rank_run;
    const DocumentPtr& a = state.selection.a;
    if (!ranks || ranks->documents != ranks_beside(a, state.documents)) return std::nullopt;
    TimeWindow window = state.time.window;
    window.width_px = state.queries.ranks.width_px;
    window = with_margins(window);
    profiler::RanksRequest request{
        .run = std::shared_ptr<const profiler::RankRun>(ranks, &ranks->run),
        .ranks = {},
        .axis_rank = 0,
        .start_ns = window.start_ns,
        .end_ns = window.end_ns,
        .width_px = window.width_px};
    for (const DocumentPtr& document : ranks->documents) {
        if (document == a) request.axis_rank = request.ranks.size();
        request.ranks.push_back(document->index.get());
    }
    return ViewOrder<profiler::RanksRequest>{.request = std::move(request),
                                             .documents = ranks->documents};
}

// ---- the search -----------------------------------------------------------------------------

std::optional<ViewOrder<SearchRequest>> order_search(const WorkspaceState& state) {
    const auto& [a, b] = std::tie(state.selection.a, state.selection.b);
    if (!state.queries.search.is_open || !a) return std::nullopt;
    SearchRequest request{{a}, state.queries.search.text};
    if (b) request.documents.push_back(b);
    return ViewOrder<SearchRequest>{std::move(request), {a, b}};
}

// ---- the comparison -------------------------------------------------------------------------

std::optional<ViewOrder<CompareRequest>> order_comparison(const WorkspaceState& state) {
    if (state.documents.empty()) return std::nullopt;
    return ViewOrder<CompareRequest>{
        .request = {state.documents, state.queries.plan.gpu, state.usual_plan}};
}

std::optional<ViewOrder<CompareRequest>> order_planned_comparison(const WorkspaceState& state) {
    const std::string& recipe = state.recipe_being_planned;
    const DocumentPtr& b = state.selection.b;
    if (!recipe.empty() && b && b->canonical_recipe == recipe) return std::nullopt;
    auto order = order_comparison(state);
    if (order) order->documents = state.documents;
    return order;
}

/// Without documents, so that the recipes stay in sight until others are planned.
std::optional<ViewOrder<StepPlanRequest>> order_usual_plan(const WorkspaceState& state) {
    if (!state.usual_request) return std::nullopt;
    return ViewOrder<StepPlanRequest>{.request = *state.usual_request};
}

}  // namespace app
