#include "app/workspace/look_ahead.h"

#include "profiler/analysis/step/describe_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace app {
namespace {

using Inputs = LookAhead::Inputs;
using profiler::StepToTrace;

/// The step of A with another recipe, on the GPU of the prediction.
std::optional<StepToTrace> step_with(const Inputs& inputs, const std::string& recipe) {
    const DocumentPtr& a = inputs.selection.a;
    if (!a || !a->step) return std::nullopt;
    auto other = models::with_recipe(*a->step, recipe);
    if (!other) return std::nullopt;
    return StepToTrace{std::move(*other), inputs.gpu};
}

/// A name that no file has, to tell documents apart: two predictions of one recipe may differ in
/// all else of the step.
std::filesystem::path name_of(const StepToTrace& step, const profiler::Trace& trace) {
    return fmt::format("predicted on {}: {} ({})", step.gpu, step.workload.recipe_name,
                       profiler::describe_workload(trace));
}

bool contains(const std::vector<StepToTrace>& steps, const StepToTrace& step) {
    return std::find(steps.begin(), steps.end(), step) != steps.end();
}

bool is_predicted(const Document& document) {
    return document.trace->run().source == profiler::Source::kPredicted;
}

/// Beside a prediction A is predicted too. Empty: A is, or does not say which step it ran.
std::optional<StepToTrace> step_of_a(const Inputs& inputs) {
    const DocumentPtr& a = inputs.selection.a;
    if (!a || is_predicted(*a)) return std::nullopt;
    return step_with(inputs, a->recipe);
}

std::vector<StepToTrace> steps_one_switch_away(const Inputs& inputs,
                                               const profiler::LayerView& view) {
    std::vector<StepToTrace> steps;
    if (auto step = step_of_a(inputs)) steps.push_back(std::move(*step));
    for (const profiler::RecipeSwitchRow& row : view.switches) {
        for (const profiler::SwitchOption& option : row.options) {
            if (document_of_recipe(inputs.documents, inputs.selection, option.recipe)) continue;
            if (auto step = step_with(inputs, option.recipe)) steps.push_back(std::move(*step));
        }
    }
    return steps;
}

}  // namespace

bool ran_alike(const Document& a, const Document& b) {
    const profiler::Trace &one = *a.trace, &other = *b.trace;
    return one.run().source == other.run().source &&
           one.text(one.run().device_name) == other.text(other.run().device_name);
}

DocumentPtr document_of_recipe(const std::vector<DocumentPtr>& documents,
                               const Selection& selection, const std::string& recipe) {
    if (!selection.a || !selection.a->step) return nullptr;
    const auto shows_it = [&](const DocumentPtr& document) {
        return document->has_step && document->canonical_recipe == recipe &&
               models::comparable(*selection.a->step, *document->step) &&
               ran_alike(*selection.a, *document);
    };
    if (shows_it(selection.a)) return selection.a;  // of several equal ones
    const auto found = std::find_if(documents.begin(), documents.end(), shows_it);
    return found != documents.end() ? *found : nullptr;
}

DocumentPtr LookAhead::find(const StepToTrace& step) const {
    const auto known = documents_.find(step);
    return known && *known ? **known : nullptr;
}

/// Returns false if it is wanted already.
bool LookAhead::want_step(const StepToTrace& step) {
    if (contains(wanted_steps_, step)) return false;
    wanted_steps_.push_back(step);
    documents_.erase(step);  // try again
    if (!contains(running_, step)) start(step);
    return true;
}

void LookAhead::start(const StepToTrace& step) {
    running_.push_back(step);
    queue_.start("Predicting the step", [&predictor = predictor_, step](const auto&) {
        auto trace = predictor.predict(step);
        if (!trace) {
            return models::Result<Predicted>(Predicted{step, tl::unexpected(trace.error())});
        }
        auto name = name_of(step, *trace);
        DocumentPtr document = make_document(
            std::move(name), std::make_shared<const profiler::Trace>(std::move(*trace)));
        return models::Result<Predicted>(Predicted{step, std::move(document)});
    });
}

std::vector<std::string> LookAhead::update() {
    std::vector<std::string> sentences;
    for (models::Result<Predicted>& result : queue_.take()) {
        note_news();
        if (!result) {  // the job threw
            sentences.push_back(result.error().message);
            running_.clear();
            wanted_steps_.clear();
            continue;
        }
        std::erase(running_, result->step);
        const bool was_wanted = std::erase(wanted_steps_, result->step) > 0;
        if (was_wanted && !result->document) sentences.push_back(result->document.error().message);
        documents_.add(std::move(result->step), std::move(result->document));
    }
    if (!sentences.empty()) wanted_.clear();
    plans_.take();
    if (!plans_.busy()) being_planned_.clear();
    return sentences;
}

std::optional<Pair> LookAhead::find_pair(const Inputs& inputs, const std::string& recipe) const {
    const DocumentPtr& now = inputs.selection.a;
    if (DocumentPtr open = document_of_recipe(inputs.documents, inputs.selection, recipe)) {
        const DocumentPtr prediction = open == inputs.prediction ? open : nullptr;
        return Pair{now, open == now ? nullptr : std::move(open), prediction};
    }
    const auto step = step_with(inputs, recipe);
    if (!step) return std::nullopt;
    const auto own = step_of_a(inputs);
    const DocumentPtr a = own ? find(*own) : now;
    const DocumentPtr b = find(*step);
    return a && b ? std::optional(Pair{a, b, b}) : std::nullopt;
}

models::Result<std::optional<Pair>> LookAhead::take_wanted(const Inputs& inputs) {
    if (wanted_.empty()) return std::nullopt;
    if (auto pair = find_pair(inputs, wanted_)) {
        wanted_.clear();
        return pair;
    }
    const auto step = step_with(inputs, wanted_);
    if (!step) {
        return models::fail("{} cannot be predicted: the trace A does not say which step it ran.",
                            std::exchange(wanted_, {}));
    }
    if (!find(*step) && want_step(*step)) plan(inputs);
    if (const auto own = step_of_a(inputs); own && !find(*own)) want_step(*own);
    return std::nullopt;
}

/// Has the wanted recipe planned as Compare will ask for it.
void LookAhead::plan(const Inputs& inputs) {
    StepPlanRequest request{
        .workload = *inputs.selection.a->step, .recipes = {wanted_}, .gpu = inputs.planned_gpu};
    being_planned_ = wanted_;
    plans_.start("Planning the recipe", [&predictor = predictor_, request](const auto& report) {
        constexpr unsigned kOfTheTrace = 1;  // a core predicts what is shown first
        return models::Result<bool>(predictor.plan(request, report, kOfTheTrace).has_value());
    });
}

std::optional<std::vector<Pair>> LookAhead::take_known_ahead(const Inputs& inputs,
                                                             const profiler::LayerView& view) {
    if (!std::exchange(has_news_, false)) return std::nullopt;
    std::vector<Pair> pairs;
    for (const profiler::RecipeSwitchRow& row : view.switches) {
        for (const profiler::SwitchOption& option : row.options) {
            if (auto pair = find_pair(inputs, option.recipe)) pairs.push_back(std::move(*pair));
        }
    }
    return pairs;
}

void LookAhead::predict_ahead(const Inputs& inputs, const profiler::LayerView* view) {
    if (!ahead_) {
        ahead_ = view ? steps_one_switch_away(inputs, *view) : std::vector<StepToTrace>();
        std::reverse(ahead_->begin(), ahead_->end());  // taken from the end
    }
    while (!ahead_->empty() && is_idle()) {
        if (!documents_.find(ahead_->back())) start(ahead_->back());  // not even refused
        ahead_->pop_back();
    }
}

}  // namespace app
