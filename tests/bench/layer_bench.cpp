// Times forward and backward of one encoder layer on the CPU with several recipes in turn, and
// prints each beside the first.
//
//     layer_bench [MODEL [BATCH [SEQ [HIDDEN [ROUNDS [RECIPE...]]]]]]
//
// The recipes take turns, so that a drift of the machine's speed hits all of them alike; a ratio is
// the median over the rounds. Default: bert-base, batch 4, 512 tokens, width 256, 9 rounds, torch's
// own ops (original-stock) against ours one by one (original) and fused. The wider the layer, the
// more of its time is matrix multiplications, which no recipe changes. Flash attention has no
// dropout on the CPU: if a recipe has it, no recipe drops probabilities.

#include "models/training/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double step_ms(models::Training& training) {
    const auto start = std::chrono::steady_clock::now();
    training.step();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    return elapsed.count();
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const auto number = [&](std::size_t i, int64_t otherwise) {
        return arguments.size() > i ? std::atoll(arguments[i].c_str()) : otherwise;
    };
    const auto model = models::find_model(arguments.empty() ? "bert-base" : arguments[0]);
    if (!model) {
        fmt::print(stderr, "layer_bench: {}\n", model.error().message);
        return 1;
    }
    models::Workload workload{
        .model = *model, .batch_size = number(1, 4), .seq_len = number(2, 512)};
    workload.model.num_layers = 1;
    workload.model.hidden_size = number(3, 256);
    workload.model.num_heads = std::max<int64_t>(1, workload.model.hidden_size / 64);
    workload.model.intermediate_size = 4 * workload.model.hidden_size;
    std::vector<std::string> recipes{"original-stock", "original",        "tempo-fused",
                                     "tempo-philox",   "deepspeed-fused", "substation"};
    if (arguments.size() > 5) recipes.assign(arguments.begin() + 5, arguments.end());
    std::vector<models::Workload> workloads;
    bool drops_probabilities = true;
    for (const std::string& recipe : recipes) {
        const auto with = models::with_recipe(workload, recipe + ",optimizer=sgd");
        if (!with) {
            fmt::print(stderr, "layer_bench: {}\n", with.error().message);
            return 1;
        }
        workloads.push_back(*with);
        drops_probabilities &= with->recipe.attention != models::Attention::kFlash;
    }
    std::vector<std::unique_ptr<models::Training>> trainings;
    for (models::Workload& with : workloads) {
        if (!drops_probabilities) with.model.attention_dropout_p = 0;
        trainings.push_back(std::make_unique<models::Training>(with, at::Device(at::kCPU)));
        step_ms(*trainings.back());
    }
    std::vector<std::vector<double>> times(recipes.size()), ratios(recipes.size());
    for (int64_t round = 0; round < number(4, 9); ++round) {
        for (std::size_t i = 0; i < recipes.size(); ++i) {
            times[i].push_back(step_ms(*trainings[i]));
            ratios[i].push_back(times[0].back() / times[i].back());
        }
    }
    for (std::size_t i = 0; i < recipes.size(); ++i) {
        fmt::print("{:<20} {:8.2f} ms   {:.3f} times as fast as {}\n", recipes[i], median(times[i]),
                   median(ratios[i]), recipes[0]);
    }
    return 0;
}
