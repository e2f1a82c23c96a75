#include "app/workspace/recipe_trials.h"

#include <algorithm>
#include <utility>

namespace app {
namespace {

using Inputs = RecipeTrials::Inputs;

/// The step of A with another recipe, on the GPU of the trial.
std::optional<StepToPredict> step_with(const Inputs& inputs, const std::string& recipe) {
    const DocumentPtr& a = inputs.selection.a;
    if (!a || !a->step) return std::nullopt;
    auto other = models::with_recipe(*a->step, recipe);
    if (!other) return std::nullopt;
    return StepToPredict{std::move(*other), inputs.gpu};
}

bool is_predicted(const Document& document) {
    return document.trace->run().source == profiler::Source::kPredicted;
}

/// Beside a prediction A is predicted too. Empty: A is, or does not say which step it ran.
std::optional<StepToPredict> step_of_a(const Inputs& inputs) {
    const DocumentPtr& a = inputs.selection.a;
    if (!a || is_predicted(*a)) return std::nullopt;
    return step_with(inputs, a->recipe);
}

std::vector<StepToPredict> steps_one_switch_away(const Inputs& inputs,
                                                 const profiler::LayerView& view) {
    std::vector<StepToPredict> steps;
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

std::vector<std::string> RecipeTrials::update() {
    const size_t answers_before = predictions_.num_answers();
    std::vector<std::string> sentences = predictions_.update();
    if (predictions_.num_answers() != answers_before) note_news();
    if (!sentences.empty()) wanted_.clear();
    plans_.take();
    if (!plans_.busy()) being_planned_.clear();
    return sentences;
}

std::optional<Pair> RecipeTrials::find_pair(const Inputs& inputs, const std::string& recipe) const {
    const DocumentPtr& now = inputs.selection.a;
    if (DocumentPtr open = document_of_recipe(inputs.documents, inputs.selection, recipe)) {
        const DocumentPtr trial = open == inputs.trial ? open : nullptr;
        return Pair{now, open == now ? nullptr : std::move(open), trial};
    }
    const auto step = step_with(inputs, recipe);
    if (!step) return std::nullopt;
    const auto own = step_of_a(inputs);
    const DocumentPtr a = own ? predictions_.find(*own) : now;
    const DocumentPtr b = predictions_.find(*step);
    return a && b ? std::optional(Pair{a, b, b}) : std::nullopt;
}

models::Result<std::optional<Pair>> RecipeTrials::take_wanted(const Inputs& inputs) {
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
    if (!predictions_.find(*step) && predictions_.want(*step)) plan(inputs);
    if (const auto own = step_of_a(inputs); own && !predictions_.find(*own)) {
        predictions_.want(*own);
    }
    return std::nullopt;
}

/// Has the wanted recipe planned as Compare will ask for it.
void RecipeTrials::plan(const Inputs& inputs) {
    PlanQuestion question{.workload = *inputs.selection.a->step,
                          .recipes = {wanted_},
                          .gpus = {inputs.planned_gpu},
                          .wants_memory_curve = true};
    being_planned_ = wanted_;
    plans_.start("Planning the recipe", [&predictor = predictor_, question](const auto& report) {
        constexpr unsigned kOfTheTrace = 1;  // a core predicts what is shown first
        return models::Result<bool>(predictor.plan(question, report, kOfTheTrace).has_value());
    });
}

std::optional<std::vector<Pair>> RecipeTrials::take_known_ahead(const Inputs& inputs,
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

void RecipeTrials::predict_ahead(const Inputs& inputs, const profiler::LayerView* view) {
    if (!ahead_) {
        ahead_ = view ? steps_one_switch_away(inputs, *view) : std::vector<StepToPredict>();
        std::reverse(ahead_->begin(), ahead_->end());  // taken from the end
    }
    while (!ahead_->empty() && predictions_.is_idle()) {
        predictions_.want_ahead(ahead_->back());
        ahead_->pop_back();
    }
}

}  // namespace app
