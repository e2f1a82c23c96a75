// Measures the time of a prediction: the first MetaTrace of BERT-large, which includes starting the
// worker, and each further one.
//
// The goal for the first prediction, with the simulator's run (allocator_bench), is under 1.5 s.

#include "profiler/protocol/meta_trace_client.h"

#include <fmt/core.h>

#include <chrono>

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main() {
    const auto start = std::chrono::steady_clock::now();
    auto worker = profiler::WorkerClient::start();
    if (!worker) {
        fmt::print(stderr, "{}\n", worker.error().message);
        return 1;
    }
    for (const char* recipe : {"original", "original", "tempo", "checkpoint"}) {
        const auto asked = std::chrono::steady_clock::now();
        const auto trace = profiler::request_meta_trace(*worker,
                                                        {.model = *models::find_model("bert-large"),
                                                         .head = models::Head::kMlm,
                                                         .recipe_name = recipe,
                                                         .recipe = *models::parse_recipe(recipe)},
                                                        {.major = 8, .minor = 0});
        if (!trace) {
            fmt::print(stderr, "{}\n", trace.error().message);
            return 1;
        }
        fmt::print(
            "{:<12} {:5.2f} s   {:6} allocations {:6} ops {:6} tensors   {:5.2f} s since start\n",
            recipe, seconds_since(asked), trace->allocations.size(), trace->ops.size(),
            trace->tensors.size(), seconds_since(start));
    }
}
