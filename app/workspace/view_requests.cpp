#include "app/workspace/view_requests.h"

#include "profiler/view/compare_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

namespace app {
namespace {

profiler::TimelineSource timeline_source(const Document& document, std::string name) {
    return {document.trace.get(), &document.curve, &document.report->peak, std::move(name)};
}

profiler::LedgerSource ledger_source(const DocumentPtr& document) {
    if (!document || !document->has_step) return {};
    return {&document->report->ledger,
            document->report->closed_form ? &*document->report->closed_form : nullptr,
            document->trace->run().num_layers};
}

profiler::LedgerSpan span_of(const profiler::TimeRange& range, const profiler::TimeMap& map) {
    const auto to_clock = [&](double time_ns) {
        return std::llround(std::clamp(map.to_own(time_ns), -0x1p60, 0x1p60));
    };
    return {to_clock(range.start_ns), to_clock(range.end_ns)};
}

profiler::LayerSource layer_source(const DocumentPtr& document) {
    if (!document || !document->has_step) return {};
    return {document->trace.get(), &document->report->ledger, &document->report->peak};
}

profiler::FlameSource flame_source(const DocumentPtr& document) {
    if (!document || !document->has_step) return {};
    return {document->trace.get(), &document->report->peak, &document->storage_names};
}

profiler::RangeSource range_source(const Document& document) {
    return {document.trace.get(), &document.curve, &document.storage_names};
}

profiler::InspectorSource inspector_source(const Document& document) {
    const auto& closed_form = document.report->closed_form;
    return {{document.trace.get(), &document.blocks, document.block_details.get(),
             &document.storage_names},
            &document.report->ledger,
            closed_form ? &*closed_form : nullptr,
            &document.activity,
            &document.report->peak};
}

bool has_step(const Selection& selection) { return selection.a && selection.a->has_step; }

models::Result<profiler::Comparison> compare_documents(const std::vector<DocumentPtr>& documents) {
    std::vector<profiler::NamedTrace> traces;
    for (const DocumentPtr& d : documents) {
        traces.push_back({d->file.string(), d->trace, d->report});
    }
    return profiler::compare(traces);
}

/// The recipes of the first step, with that step's workload. Empty: no document has one.
std::optional<PlanQuestion> plan_question(const std::vector<DocumentPtr>& documents,
                                          const profiler::Comparison& comparison,
                                          const PlanChoice& choice) {
    // With the memory curve, as the Planner and the frontier ask: then all share the rows.
    PlanQuestion question{.gpus = {choice.gpu}, .wants_memory_curve = true};
    const auto has_file = [&](const DocumentPtr& document) {
        const auto& files = comparison.columns.front().files;
        return std::find(files.begin(), files.end(), document->file.string()) != files.end();
    };
    const auto first = std::find_if(documents.begin(), documents.end(), has_file);
    if (first == documents.end()) return std::nullopt;
    if (!(*first)->step) return std::nullopt;
    question.workload = *(*first)->step;
    for (const profiler::ComparisonColumn& column : comparison.columns) {
        if (column.baseline != 0) continue;
        const std::string& recipe = column.recipe_of_trace;
        auto& recipes = question.recipes;
        if (std::find(recipes.begin(), recipes.end(), recipe) == recipes.end()) {
            recipes.push_back(recipe);
        }
    }
    return question;
}

/// What a user compares first, by the presets' names.
constexpr std::array kUsualRecipes{"original", "tempo", "checkpoint", "best"};

/// The batch of the captured steps; of sweeps alone, the one that they traced.
int64_t batch_of(const profiler::Comparison& comparison) {
    const auto captured =
        std::find_if(comparison.columns.begin(), comparison.columns.end(),
                     [](const auto& column) { return column.peak_allocated_bytes > 0; });
    return captured == comparison.columns.end() ? comparison.columns.front().batch_size
                                                : captured->batch_size;
}

/// The recipes that no open file has, of those that a user would ask for; nullopt: there is no step
/// to plan, or Compare is full.
std::optional<PlanQuestion> usual_question(const std::vector<DocumentPtr>& documents,
                                           const profiler::Comparison& comparison,
                                           const PlanChoice& choice) {
    const auto& columns = comparison.columns;
    const bool is_one_step = std::all_of(columns.begin(), columns.end(),
                                         [](const auto& column) { return column.baseline == 0; });
    const auto open = plan_question(documents, comparison, choice);
    if (!is_one_step || !open) return std::nullopt;
    PlannerQuery query{.workload = open->workload, .optimizer = open->workload.recipe.optimizer};
    query.recipes.assign(kUsualRecipes.begin(), kUsualRecipes.end());
    PlanQuestion question = planner_question(query, choice.gpu);
    question.batch_size = batch_of(comparison);
    if (auto original = models::with_recipe(question.workload, "original")) {
        question.workload = std::move(*original);  // so that the question does not depend on A
    }
    const auto is_open = [&](const std::string& recipe) {
        return std::find(open->recipes.begin(), open->recipes.end(), recipe) != open->recipes.end();
    };
    std::erase_if(question.recipes, is_open);
    const size_t room =
        profiler::kMostComparedColumns - std::min(profiler::kMostComparedColumns, columns.size());
    if (question.recipes.size() > room) question.recipes.resize(room);
    for (const profiler::ComparisonColumn& column : columns) {
        if (column.peak_allocated_bytes == 0) question.recipes.push_back(column.recipe_of_trace);
    }
    if (question.recipes.empty()) return std::nullopt;
    return question;
}

/// Whether a plan of usual recipes is of this step and GPU. Some of its recipes may be open by now.
bool answers(const UsualPlan& usual, std::optional<PlanQuestion> question) {
    if (!question) return false;
    question->recipes = usual.question.recipes;
    return *question == usual.question;
}

/// `open` is what was planned of the open recipes.
models::Result<CompareResult> show_comparison(const CompareRequest& request,
                                              profiler::Comparison comparison,
                                              profiler::Plan open) {
    CompareResult result{.usual = usual_question(request.documents, comparison, request.choice)};
    if (request.usual && answers(*request.usual, result.usual)) {
        const profiler::Plan& usual = request.usual->plan;
        profiler::add_planned_columns(comparison, usual);
        open.rows.insert(open.rows.end(), usual.rows.begin(), usual.rows.end());
    }
    result.view = profiler::build_compare_view(comparison);
    profiler::add_plan(result.view, comparison, open);
    result.comparison = std::move(comparison);
    return result;
}

}  // namespace

models::Result<CompareResult> build_comparison(Predictor& predictor,
                                               const CompareRequest& request) {
    auto comparison = compare_documents(request.documents);
    if (!comparison) return tl::unexpected(comparison.error());
    const auto question = plan_question(request.documents, *comparison, request.choice);
    auto result = show_comparison(request, std::move(*comparison),
                                  question ? predictor.known_plan(*question) : profiler::Plan());
    if (question) result->view.no_plan_text = "Planning ...";
    return result;
}

models::Result<CompareResult> build_planned_comparison(Predictor& predictor,
                                                       const CompareRequest& request,
                                                       const Predictor::Report& report) {
    auto comparison = compare_documents(request.documents);
    if (!comparison) return tl::unexpected(comparison.error());
    const auto question = plan_question(request.documents, *comparison, request.choice);
    if (!question) return show_comparison(request, std::move(*comparison), {});
    auto plan = predictor.plan(*question, report);
    auto result = show_comparison(request, std::move(*comparison),
                                  plan ? std::move(*plan) : profiler::Plan());
    if (!plan) result->view.no_plan_text = plan.error().message;
    return result;
}

UsualPlan build_usual_plan(Predictor& predictor, const PlanQuestion& question,
                           const Predictor::Report& report) {
    auto plan = predictor.plan(question, report);
    return {question, plan ? std::move(*plan) : profiler::Plan()};
}

std::optional<Wanted<CompareRequest>> wanted_planned_comparison(const SlotInputs& inputs) {
    const std::string& recipe = inputs.recipe_being_planned;
    const DocumentPtr& b = inputs.selection.b;
    if (!recipe.empty() && b && b->canonical_recipe == recipe) return std::nullopt;
    auto wanted = wanted_comparison(inputs);
    if (wanted) wanted->documents = inputs.documents;
    return wanted;
}

std::optional<Wanted<CompareRequest>> wanted_comparison(const SlotInputs& inputs) {
    if (inputs.documents.empty()) return std::nullopt;
    return Wanted<CompareRequest>{
        .request = {inputs.documents, inputs.plan_choice, inputs.usual_plan}};
}

/// Without documents, so that the recipes stay in sight until others are planned.
std::optional<Wanted<PlanQuestion>> wanted_usual_plan(const SlotInputs& inputs) {
    if (!inputs.usual_question) return std::nullopt;
    return Wanted<PlanQuestion>{.request = *inputs.usual_question};
}

std::optional<Wanted<profiler::PairRequest>> wanted_pair(const SlotInputs& inputs) {
    const auto& [a, b] = std::tie(inputs.selection.a, inputs.selection.b);
    if (!a || !b || !a->has_step || !b->has_step || !inputs.time.alignment) return std::nullopt;
    const auto source = [](const Document& document) {
        return profiler::PairSource{document.trace.get(), &document.curve, document.report.get()};
    };
    return Wanted<profiler::PairRequest>{
        .request = {{source(*a), source(*b)}, inputs.time.alignment}, .documents = {a, b}};
}

profiler::TimelineRequest timeline_request(const Selection& selection, const TimeAxis& time,
                                           const TimeWindow& window) {
    profiler::TimelineRequest request{.start_ns = window.start_ns,
                                      .end_ns = window.end_ns,
                                      .width_px = window.width_px,
                                      .alignment = time.alignment};
    if (!has_step(selection)) return request;
    request.sources.push_back(timeline_source(*selection.a, "A  " + selection.look_a.name));
    if (selection.b && time.alignment) {
        request.sources.push_back(timeline_source(*selection.b, "B  " + selection.look_b.name));
    }
    return request;
}

/// The Memory timeline and the Kernels panel share phases and modules; the wider one decides.
TimeWindow window_of_phases(const TimeAxis& time) {
    TimeWindow window = time.window;
    window.width_px = std::max(window.width_px, time.kernels_width_px);
    return with_margins(window);
}

std::optional<Wanted<profiler::TimelineRequest>> wanted_timeline(const SlotInputs& inputs) {
    const Selection& selection = inputs.selection;
    const TimeAxis& time = inputs.time;
    const TimeWindow window = window_of_phases(time);
    if (!has_step(selection) || window.width_px <= 0) return std::nullopt;
    return Wanted<profiler::TimelineRequest>{.request = timeline_request(selection, time, window),
                                             .documents = {selection.a, selection.b}};
}

std::optional<Wanted<profiler::RibbonRequest>> wanted_ribbon(const SlotInputs& inputs) {
    const Selection& selection = inputs.selection;
    const TimeAxis& time = inputs.time;
    const TimeWindow window = window_of_phases(time);
    if (!has_step(selection) || window.width_px <= 0) return std::nullopt;
    profiler::RibbonRequest request{.start_ns = window.start_ns,
                                    .end_ns = window.end_ns,
                                    .width_px = window.width_px,
                                    .alignment = time.alignment};
    request.sources.push_back({selection.a->trace.get(), &selection.a->modules});
    if (selection.b && time.alignment) {
        request.sources.push_back({selection.b->trace.get(), &selection.b->modules});
    }
    return Wanted<profiler::RibbonRequest>{.request = std::move(request),
                                           .documents = {selection.a, selection.b}};
}

std::optional<Wanted<profiler::ActivityRequest>> wanted_kernels(const SlotInputs& inputs) {
    const Selection& selection = inputs.selection;
    const TimeAxis& time = inputs.time;
    // The Kernels panel and the lane in the Memory timeline share the view; the wider one decides.
    const int width_px = std::max(time.kernels_width_px, time.lane_width_px);
    if (!has_step(selection) || width_px <= 0) return std::nullopt;
    const TimeWindow window = with_margins(time.window);
    profiler::ActivityRequest request{.start_ns = window.start_ns,
                                      .end_ns = window.end_ns,
                                      .width_px = 2 * width_px,  // with the margins
                                      .alignment = time.alignment,
                                      .marks = inputs.marks};
    request.sources.push_back({selection.a->trace.get(), &selection.a->activity});
    if (selection.b && time.alignment) {
        request.sources.push_back({selection.b->trace.get(), &selection.b->activity});
    }
    return Wanted<profiler::ActivityRequest>{.request = std::move(request),
                                             .documents = {selection.a, selection.b}};
}

std::optional<Wanted<profiler::MarksRequest>> wanted_marks(const SlotInputs& inputs) {
    const Selection& selection = inputs.selection;
    if (!has_step(selection) || !selection.marks) return std::nullopt;
    profiler::MarksRequest request{.traces = {selection.a->trace.get()}, .marks = *selection.marks};
    if (selection.b) request.traces.push_back(selection.b->trace.get());
    return Wanted<profiler::MarksRequest>{.request = std::move(request),
                                          .documents = {selection.a, selection.b}};
}

std::optional<Wanted<profiler::LedgerRequest>> wanted_ledger(const WindowInputs& inputs) {
    const Selection& selection = inputs.selection;
    const LedgerQuery& query = inputs.queries.ledger;
    if (!inputs.open.ledger || !has_step(selection)) return std::nullopt;
    profiler::LedgerSource first = ledger_source(selection.a);
    profiler::LedgerSource second = ledger_source(query.compare ? selection.b : nullptr);
    const profiler::TimeMap same;
    if (selection.range) first.span = span_of(*selection.range, same);
    if (selection.range && second.ledger && inputs.time.alignment) {
        second.span = span_of(*selection.range, inputs.time.alignment->second);
    }
    return Wanted<profiler::LedgerRequest>{.request = {.first = first,
                                                       .second = second,
                                                       .filter = query.filter,
                                                       .sort_by = query.sort_by,
                                                       .descending = query.descending,
                                                       .only_differences = query.only_differences,
                                                       .grouping = query.grouping},
                                           .documents = {selection.a, selection.b}};
}

profiler::LayerRequest layer_request(const DocumentPtr& a, const DocumentPtr& b,
                                     const profiler::LayerRange& layers) {
    return {.first = layer_source(a), .second = layer_source(b), .layers = layers};
}

std::optional<Wanted<profiler::LayerRequest>> wanted_layers(const SlotInputs& inputs) {
    const Selection& selection = inputs.selection;
    if (!has_step(selection)) return std::nullopt;
    const int64_t middle = selection.a->trace->run().num_layers / 2;
    return Wanted<profiler::LayerRequest>{
        .request = layer_request(selection.a, selection.b,
                                 selection.layers.value_or(profiler::LayerRange{middle, middle})),
        .documents = {selection.a, selection.b}};
}

std::optional<Wanted<profiler::FlameRequest>> wanted_flame(const WindowInputs& inputs) {
    const Selection& selection = inputs.selection;
    const FlameQuery& query = inputs.queries.flame;
    if (!inputs.open.flame || !query.is_drawn || !has_step(selection)) return std::nullopt;
    return Wanted<profiler::FlameRequest>{.request = {.first = flame_source(selection.a),
                                                      .second = flame_source(selection.b),
                                                      .alignment = inputs.time.alignment,
                                                      .moment_ns = selection.moment_ns,
                                                      .mode = query.mode,
                                                      .combine_layers = query.combine_layers,
                                                      .by_stack = query.by_stack,
                                                      .search = query.search},
                                          .documents = {selection.a, selection.b}};
}

std::optional<Wanted<profiler::RangeRequest>> wanted_range(const WindowInputs& inputs) {
    const Selection& selection = inspected(inputs.queries.inspector, inputs.selection);
    if (!inputs.open.inspector || !has_step(selection) || !selection.range) return std::nullopt;
    profiler::RangeRequest request{.start_ns = selection.range->start_ns,
                                   .end_ns = selection.range->end_ns,
                                   .alignment = inputs.time.alignment};
    request.sources.push_back(range_source(*selection.a));
    if (selection.b && inputs.time.alignment) {
        request.sources.push_back(range_source(*selection.b));
    }
    return Wanted<profiler::RangeRequest>{.request = std::move(request),
                                          .documents = {selection.a, selection.b}};
}

std::optional<Wanted<profiler::InspectorRequest>> wanted_inspector(const WindowInputs& inputs) {
    const Selection& selection = inspected(inputs.queries.inspector, inputs.selection);
    if (!inputs.open.inspector || !selection.a) return std::nullopt;
    if (!selection.category && !selection.tensor && !selection.activity) return std::nullopt;
    profiler::InspectorRequest request;
    request.category = selection.category;
    request.sources.push_back(inspector_source(*selection.a));
    if (selection.b) request.sources.push_back(inspector_source(*selection.b));
    if (const auto& tensor = selection.tensor) {
        request.tensor = {tensor->in_b ? 1U : 0U, tensor->storage, tensor->allocation};
    }
    if (const auto& activity = selection.activity) {
        request.call = {activity->in_b ? 1U : 0U, activity->id};
    }
    return Wanted<profiler::InspectorRequest>{.request = std::move(request),
                                              .documents = {selection.a, selection.b}};
}

/// Without documents, so that the old lines stay until the new plan is ready.
std::optional<Wanted<PlanQuestion>> wanted_planner(const SlotInputs& inputs) {
    if (!inputs.planner.is_drawn) return std::nullopt;
    const PlannerQuery query = shown_query(inputs.planner, inputs.selection);
    return Wanted<PlanQuestion>{.request = planner_question(query, inputs.plan_choice.gpu)};
}

}  // namespace app
