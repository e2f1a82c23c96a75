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

std::vector<StepToPredict> steps_one_switch_away(const Inputs& inputs,
                                                 const profiler::LayerView& view) {
    std::vector<StepToPredict> steps;
    for (const profiler::RecipeSwitchRow& row : view.switches) {
        for (const profiler::SwitchOption& option : row.options) {
            if (document_of_recipe(inputs.documents, inputs.selection, option.recipe)) continue;
            if (auto step = step_with(inputs, option.recipe)) steps.push_back(std::move(*step));
        }
    }
    return steps;
}

/// Whether both were measured on one device, or predicted for one GPU: only then do they compare.
bool ran_alike(const Document& a, const Document& b) {
    const profiler::Trace &one = *a.trace, &other = *b.trace;
    return one.run().source == other.run().source &&
           one.text(one.run().device_name) == other.text(other.run().device_name);
}

}  // namespace

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
    std::vector<std::string> sentences = predictions_.update();
    if (!sentences.empty()) wanted_.clear();
    return sentences;
}

models::Result<std::optional<RecipeTrials::Pair>> RecipeTrials::take_wanted(const Inputs& inputs) {
    if (wanted_.empty()) return std::nullopt;
    const DocumentPtr& now = inputs.selection.a;
    if (DocumentPtr open = document_of_recipe(inputs.documents, inputs.selection, wanted_)) {
        wanted_.clear();
        return Pair{now, open == now ? nullptr : std::move(open)};
    }
    const auto step = step_with(inputs, wanted_);
    if (!step) {
        return models::fail("{} cannot be predicted: the trace A does not say which step it ran.",
                            std::exchange(wanted_, {}));
    }
    const bool a_is_predicted = now->trace->run().source == profiler::Source::kPredicted;
    const auto step_of_a = step_with(inputs, now->recipe);
    const DocumentPtr b = predictions_.find(*step);
    const DocumentPtr a = a_is_predicted || !step_of_a ? now : predictions_.find(*step_of_a);
    if (!b) predictions_.want(*step);
    if (!a) predictions_.want(*step_of_a);
    if (!a || !b) return std::nullopt;
    wanted_.clear();
    return Pair{a, b};
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
