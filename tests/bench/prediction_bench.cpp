// Measures the time of a prediction: the first step of BERT-large in amp-bf16, which includes
// starting the worker on its virtual GPU, and each further one, as plans ask for them; then that of
// whole plans of one recipe, as the Planner asks for them.

#include "app/prediction/predictor.h"
#include "app/prediction/trace_workers.h"

#include <fmt/core.h>

#include <chrono>

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

models::Workload bert_large(const char* recipe) {
    return {.model = *models::find_model("bert-large"),
            .head = models::Head::kMlm,
            .recipe_name = recipe,
            .recipe = *models::parse_recipe(recipe),
            .precision = models::Precision::kAmpBf16};
}

}  // namespace

int main() {
    const auto start = std::chrono::steady_clock::now();
    app::TraceWorkers workers({&app::shared_gpu()}, app::TraceDetail::kForPlan);
    const profiler::StepSource source = workers.source();
    for (const char* recipe : {"original", "original", "tempo", "checkpoint"}) {
        const auto asked = std::chrono::steady_clock::now();
        const auto trace = source({bert_large(recipe)});
        if (!trace) {
            fmt::print(stderr, "{}\n", trace.error().message);
            return 1;
        }
        fmt::print(
            "{:<12} {:5.2f} s   {:6} allocations {:6} ops {:6} tensors   {:5.2f} s since start\n",
            recipe, seconds_since(asked), (*trace)->allocations.size(), (*trace)->ops.size(),
            (*trace)->tensors.size(), seconds_since(start));
    }

    app::Predictor predictor;
    for (const char* recipe : {"original", "tempo", "checkpoint", "flash", "tempo-gelu"}) {
        const auto asked = std::chrono::steady_clock::now();
        const std::size_t traces_before = predictor.traces_asked();
        const auto plan = predictor.plan(
            {.workload = bert_large("original"), .recipes = {recipe}, .gpu = "a100-80gb"});
        if (!plan) {
            fmt::print(stderr, "{}\n", plan.error().message);
            return 1;
        }
        fmt::print("plan of {:<12} {:5.2f} s   {} traces\n", recipe, seconds_since(asked),
                   predictor.traces_asked() - traces_before);
    }
}
