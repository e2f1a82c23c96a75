#include "app/workspace/open_comparison.h"

#include "app/workspace/planner_form.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace app {
namespace {

models::Result<profiler::Comparison> compare_documents(const std::vector<DocumentPtr>& documents) {
    std::vector<profiler::NamedTrace> traces;
    for (const DocumentPtr& d : documents) traces.push_back(d->named(d->file.string()));
    return profiler::compare(traces);
}

/// The recipes of the first step, with that step's workload. Empty: no document has one.
std::optional<StepPlanRequest> open_request(const std::vector<DocumentPtr>& documents,
                                            const profiler::Comparison& comparison,
                                            const std::string& gpu) {
    StepPlanRequest request{.gpu = gpu};
    const auto has_file = [&](const DocumentPtr& document) {
        const auto& files = comparison.columns.front().files;
        return std::find(files.begin(), files.end(), document->file.string()) != files.end();
    };
    const auto first = std::find_if(documents.begin(), documents.end(), has_file);
    if (first == documents.end()) return std::nullopt;
    if (!(*first)->step) return std::nullopt;
    request.workload = *(*first)->step;
    for (const profiler::ComparisonColumn& column : comparison.columns) {
        if (column.baseline != 0) continue;
        const std::string& recipe = column.recipe_of_trace;
        auto& recipes = request.recipes;
        if (std::find(recipes.begin(), recipes.end(), recipe) == recipes.end()) {
            recipes.push_back(recipe);
        }
    }
    return request;
}

/// What a user compares first, by the presets' names.
constexpr std::array kUsualRecipes{"original", "tempo", "checkpoint", "best"};

/// The batch of the captured steps; of sweeps alone, the batch of their traced step.
int64_t batch_of(const profiler::Comparison& comparison) {
    const auto captured =
        std::find_if(comparison.columns.begin(), comparison.columns.end(),
                     [](const auto& column) { return column.peak_allocated_bytes > 0; });
    return captured == comparison.columns.end() ? comparison.columns.front().batch_size
                                                : captured->batch_size;
}

/// The usual recipes that no open file has; nullopt: there is no step to plan, or Compare is full.
std::optional<StepPlanRequest> usual_request(const std::vector<DocumentPtr>& documents,
                                             const profiler::Comparison& comparison,
                                             const std::string& gpu) {
    const auto& columns = comparison.columns;
    const bool is_one_step = std::all_of(columns.begin(), columns.end(),
                                         [](const auto& column) { return column.baseline == 0; });
    const auto open = open_request(documents, comparison, gpu);
    if (!is_one_step || !open) return std::nullopt;
    PlannerForm form{.workload = open->workload, .optimizer = open->workload.recipe.optimizer};
    form.recipes.assign(kUsualRecipes.begin(), kUsualRecipes.end());
    StepPlanRequest request = planner_request(form, gpu);
    request.batch_size = batch_of(comparison);
    if (auto original = models::with_recipe(request.workload, "original")) {
        request.workload = std::move(*original);  // so that the request does not depend on A
    }
    const auto is_open = [&](const std::string& recipe) {
        return std::find(open->recipes.begin(), open->recipes.end(), recipe) != open->recipes.end();
    };
    std::erase_if(request.recipes, is_open);
    const size_t room =
        profiler::kMostComparedColumns - std::min(profiler::kMostComparedColumns, columns.size());
    if (request.recipes.size() > room) request.recipes.resize(room);
    for (const profiler::ComparisonColumn& column : columns) {
        if (column.peak_allocated_bytes == 0) request.recipes.push_back(column.recipe_of_trace);
    }
    if (request.recipes.empty()) return std::nullopt;
    return request;
}

/// Whether a plan of usual recipes is of this step and GPU. Some of its recipes may be open by now.
bool answers(const UsualPlan& usual, std::optional<StepPlanRequest> request) {
    if (!request) return false;
    request->recipes = usual.request.recipes;
    return *request == usual.request;
}

/// `open` is what was planned of the open recipes.
models::Result<CompareResult> show_comparison(const CompareRequest& request,
                                              profiler::Comparison comparison,
                                              profiler::Plan open) {
    CompareResult result{.usual = usual_request(request.documents, comparison, request.gpu)};
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
    const auto open = open_request(request.documents, *comparison, request.gpu);
    auto result = show_comparison(request, std::move(*comparison),
                                  open ? predictor.known_plan(*open) : profiler::Plan());
    if (open) result->view.no_plan_text = "Planning ...";
    return result;
}

models::Result<CompareResult> build_planned_comparison(Predictor& predictor,
                                                       const CompareRequest& request,
                                                       const Predictor::Report& report) {
    auto comparison = compare_documents(request.documents);
    if (!comparison) return tl::unexpected(comparison.error());
    const auto open = open_request(request.documents, *comparison, request.gpu);
    if (!open) return show_comparison(request, std::move(*comparison), {});
    auto plan = predictor.plan(*open, report);
    auto result = show_comparison(request, std::move(*comparison),
                                  plan ? std::move(*plan) : profiler::Plan());
    if (!plan) result->view.no_plan_text = plan.error().message;
    return result;
}

UsualPlan build_usual_plan(Predictor& predictor, const StepPlanRequest& request,
                           const Predictor::Report& report) {
    auto plan = predictor.plan(request, report);
    return {request, plan ? std::move(*plan) : profiler::Plan()};
}

}  // namespace app
