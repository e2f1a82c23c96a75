#include "app/workspace/comparison_order.h"

#include "app/workspace/view_orders.h"

#include <algorithm>
#include <array>
#include <utility>

namespace app {
namespace {

models::Result<profiler::Comparison> compare_documents(const std::vector<DocumentPtr>& documents) {
    std::vector<profiler::NamedTrace> traces;
    for (const DocumentPtr& d : documents) {
        traces.push_back(d->named(d->file.string()));
    }
    return profiler::compare(traces);
}

/// The recipes of the first step, with that step's workload. Empty: no document has one.
std::optional<PlanQuestion> plan_question(const std::vector<DocumentPtr>& documents,
                                          const profiler::Comparison& comparison,
                                          const PlanChoice& choice) {
    // With the memory curve, as the Planner and the frontier ask: then all share the rows.
    PlanQuestion question{.gpu = choice.gpu, .wants_memory_curve = true};
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

std::optional<ViewOrder<CompareRequest>> order_comparison(const WorkspaceState& state) {
    if (state.documents.empty()) return std::nullopt;
    return ViewOrder<CompareRequest>{
        .request = {state.documents, state.queries.plan, state.usual_plan}};
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
std::optional<ViewOrder<PlanQuestion>> order_usual_plan(const WorkspaceState& state) {
    if (!state.usual_question) return std::nullopt;
    return ViewOrder<PlanQuestion>{.request = *state.usual_question};
}

}  // namespace app
