#include "app/commands/options/workload_options.h"

#include "app/commands/options/help.h"
#include "models/config/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace app {
namespace {

constexpr const char* kModel = "Model";
constexpr const char* kStep = "Training step";
constexpr const char* kRun = "Run";

std::string model_names() {
    std::vector<std::string_view> names;
    for (const auto& model : models::model_presets()) names.push_back(model.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

void add_workload_options(Command& command, WorkloadOptions& options) {
    command.add({"--head",
                 "layers: only the layers, with a loss that is a fixed projection; mlm or squad: "
                 "BERT and RoBERTa; lm: GPT-2",
                 "NAME", kModel},
                &options.head);
    add_model_size_options(command, options);
    command.add({"--recipe", "recipes to run, " + about_recipe_list(), "LIST", kStep},
                &options.recipes);
    command.add({"--batch", "sequences per step, or per micro-batch with --accumulate", "N", kStep},
                &options.batch_size);
    add_accumulation_option(command, options, kStep);
    command.add({"--seq", "tokens per sequence", "N", kStep}, &options.seq_len);
    command.add(
        {"--precision", "one of " + list_precisions() + "; tf32 on CUDA only", "NAME", kStep},
        &options.precision);
    command.add({"--padding", "none, or random lengths with a mask", "NAME", kStep},
                &options.padding);
    command.add({"--seed", "of weights, data and dropout", "N", kStep}, &options.seed);
    command.add({"--warmup", "steps before the recorded ones", "N", kRun}, &options.warmup_steps);
    command.add({"--steps", "steps to record", "N", kRun}, &options.steps);
    command.add({"--memory-limit", "fail as a GPU with this much memory would, such as 16GiB",
                 "SIZE", kRun},
                &options.memory_limit);
}

void add_required_options(Command& command, WorkloadOptions& options, bool is_required) {
    command.add({.names = "--model",
                 .help = "one of " + model_names(),
                 .value_name = "NAME",
                 .group = kModel,
                 .is_required = is_required},
                &options.model);
    command.add({.names = "-o,--output",
                 .help = "a file that ends in .tscope, or a folder with one file per recipe",
                 .value_name = "PATH",
                 .group = kRun,
                 .is_required = is_required},
                &options.output);
    command.add({"--overwrite", "replace traces that are there already", "", kRun},
                &options.overwrites);
}

}  // namespace

void add_model_size_options(Command& command, WorkloadOptions& options) {
    const auto add = [&](const char* name, const char* help, OptionValue value) {
        command.add({name, help, "N", kModel}, value);
    };
    add("--layers", "Transformer layers (default: the model's)", &options.layers);
    add("--hidden", "hidden size (default: the model's)", &options.hidden);
    add("--heads", "attention heads, a divisor of the hidden size (default: the model's)",
        &options.heads);
    add("--intermediate", "width of the MLP (default: the model's, or 4 x hidden with --hidden)",
        &options.intermediate);
    add("--vocab", "size of the vocabulary (default: the model's)", &options.vocab);
    add("--positions", "tokens for which the model has positions (default: the model's)",
        &options.positions);
    command.add({"--dropout",
                 "dropout of hidden states, and of attention unless --attention-dropout is given "
                 "(default: the model's, 0.1)",
                 "P", kModel},
                &options.dropout_p);
    command.add(
        {"--attention-dropout", "dropout of attention (default: the model's, 0.1)", "P", kModel},
        &options.attention_dropout_p);
}

void add_accumulation_option(Command& command, WorkloadOptions& options, const char* group) {
    command.add(
        {"--accumulate", "micro-batches of a step: forward and backward of each, then one update",
         "N", group},
        &options.gradient_accumulation_steps);
}

void add_capture_options(Command& command, WorkloadOptions& options) {
    add_required_options(command, options, /*is_required=*/true);
    add_workload_options(command, options);
    command.add({"--device",
                 "cpu, cuda, auto (cuda where a GPU can be used), or predict:GPU with a GPU of "
                 "temposcope plan",
                 "NAME", kRun},
                &options.device);
    command.add({"--setup", "with predict:GPU: the software environment to assume", "NAME", kRun},
                &options.setup);
}

void add_sweep_options(Command& command, WorkloadOptions& options) {
    add_required_options(command, options, /*is_required=*/false);
    add_workload_options(command, options);
    command.add({"--device",
                 "cpu, cuda, or auto: cuda where a GPU can be used; with --auto or --parallel also "
                 "predict:GPU",
                 "NAME", kRun},
                &options.device);
    command.add({"--setup", "with predict:GPU: the software environment to assume", "NAME", kRun},
                &options.setup);
}

models::Result<void> check_prediction_options(const Command& command,
                                              const WorkloadOptions& options) {
    if (!options.device.starts_with("predict:")) {
        if (!command.is_given("--setup")) return {};
        return models::fail(
            "--setup chooses the software environment of a prediction, and this is a measurement: "
            "leave --setup out, or add --device predict:GPU.");
    }
    for (const char* name : {"--steps", "--warmup"}) {
        if (!command.is_given(name)) continue;
        return models::fail(
            "{} is for measurements: a prediction has one step after a warm-up step. Leave {} out.",
            name, name);
    }
    return {};
}

}  // namespace app
