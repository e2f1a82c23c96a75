#include "app/workspace/predictions.h"

#include "profiler/analysis/run_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace app {
namespace {

/// A predicted step of a large model takes some megabytes.
constexpr std::size_t kMostKnown = 48;

/// A name that no file has, to tell documents apart: two predictions of one recipe may differ in
/// all else of the step.
std::filesystem::path name_of(const StepToPredict& step, const profiler::Trace& trace) {
    return fmt::format("predicted on {}: {} ({})", step.gpu, step.workload.recipe_name,
                       profiler::describe_workload(trace));
}

bool contains(const std::vector<StepToPredict>& steps, const StepToPredict& step) {
    return std::find(steps.begin(), steps.end(), step) != steps.end();
}

}  // namespace

DocumentPtr Predictions::find(const StepToPredict& step) const {
    const auto found = std::find_if(known_.begin(), known_.end(),
                                    [&](const Predicted& one) { return one.step == step; });
    return found != known_.end() && found->document ? *found->document : nullptr;
}

bool Predictions::want(const StepToPredict& step) {
    if (contains(wanted_, step)) return false;
    wanted_.push_back(step);
    std::erase_if(known_, [&](const Predicted& one) { return one.step == step; });  // try again
    if (!contains(running_, step)) start(step);
    return true;
}

void Predictions::want_ahead(const StepToPredict& step) {
    const bool tried = std::any_of(known_.begin(), known_.end(),
                                   [&](const Predicted& one) { return one.step == step; });
    if (!tried) start(step);
}

void Predictions::start(const StepToPredict& step) {
    running_.push_back(step);
    queue_.start("Predicting the step", [&predictor = predictor_, step](const auto&) {
        auto trace = predictor.predict(step.workload, step.gpu, PlanQuestion().setup);
        if (!trace) {
            return models::Result<Predicted>(Predicted{step, tl::unexpected(trace.error())});
        }
        auto name = name_of(step, *trace);
        DocumentPtr document = make_document(
            std::move(name), std::make_shared<const profiler::Trace>(std::move(*trace)));
        return models::Result<Predicted>(Predicted{step, std::move(document)});
    });
}

std::vector<std::string> Predictions::update() {
    std::vector<std::string> sentences;
    for (models::Result<Predicted>& result : queue_.take()) {
        ++num_answers_;
        if (!result) {  // the job threw
            sentences.push_back(result.error().message);
            running_.clear();
            wanted_.clear();
            continue;
        }
        std::erase(running_, result->step);
        const bool was_wanted = std::erase(wanted_, result->step) > 0;
        if (was_wanted && !result->document) {
            sentences.push_back(result->document.error().message);
        }
        known_.push_front(std::move(*result));
        if (known_.size() > kMostKnown) known_.pop_back();
    }
    return sentences;
}

}  // namespace app
