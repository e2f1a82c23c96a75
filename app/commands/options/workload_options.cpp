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

constexpr Modes kTraces = kMeasure | kPredictStep | kCaptureRanks;  // that write traces
constexpr Modes kRuns = kTraces | kMeasureAuto | kPredictAuto;
constexpr Modes kSteps = kRuns | kMeasureParallel;  // all that train
constexpr Modes kMeasures = kMeasure | kMeasureAuto;
constexpr Modes kPredicts = kPredictStep | kPredictAuto;

void add_step_options(Command& command, StepForm& options) {
    command.add({"--head",
                 "layers: Transformer layers only, no embeddings or LM head; mlm or squad: "
                 "BERT and RoBERTa; lm: GPT-2",
                 "NAME", kModel},
                &options.head, kSteps);
    add_model_size_options(command, options, kSteps, kSteps);
    command.add({"--recipe", "recipes to run, " + about_recipe_list(), "LIST", kStep},
                &options.recipes, kSteps);
    command.add({"--batch", "sequences per step, or per micro-batch with --accumulate", "N", kStep},
                &options.batch_size, kTraces);
    add_accumulation_option(command, options, kStep, kSteps);
    command.add({"--seq", "tokens per sequence", "N", kStep}, &options.seq_len, kSteps);
    command.add(
        {"--precision", "one of " + list_precisions() + "; tf32 on CUDA only", "NAME", kStep},
        &options.precision, kSteps);
    command.add({"--padding", "none, or random lengths with a mask", "NAME", kStep},
                &options.padding, kSteps);
    command.add({"--seed", "of weights, data and dropout", "N", kStep}, &options.seed, kRuns);
    command.add({"--warmup", "steps before the recorded ones", "N", kRun}, &options.warmup_steps,
                kMeasures);
    command.add({"--steps", "steps to record", "N", kRun}, &options.steps, kMeasures);
    command.add({"--memory-limit", "fail as a GPU with this much memory would, such as 16GiB",
                 "SIZE", kRun},
                &options.memory_limit, kRuns);
}

}  // namespace

void add_model_size_options(Command& command, StepForm& options, Modes layer_modes,
                            Modes model_modes) {
    const auto add = [&](const char* name, const char* help, OptionValue value, Modes modes) {
        command.add({name, help, "N", kModel}, value, modes);
    };
    add("--layers", "Transformer layers (default: the model's)", &options.layers, model_modes);
    add("--hidden", "hidden size (default: the model's)", &options.hidden, layer_modes);
    add("--heads", "attention heads, a divisor of the hidden size (default: the model's)",
        &options.heads, layer_modes);
    add("--intermediate", "width of the MLP (default: the model's, or 4 x hidden with --hidden)",
        &options.intermediate, layer_modes);
    add("--vocab", "size of the vocabulary (default: the model's)", &options.vocab, model_modes);
    add("--positions", "tokens for which the model has positions (default: the model's)",
        &options.positions, model_modes);
    command.add({"--dropout",
                 "dropout of hidden states, and of attention unless --attention-dropout is given "
                 "(default: the model's, 0.1)",
                 "P", kModel},
                &options.dropout_p, layer_modes);
    command.add(
        {"--attention-dropout", "dropout of attention (default: the model's, 0.1)", "P", kModel},
        &options.attention_dropout_p, layer_modes);
}

void add_accumulation_option(Command& command, StepForm& options, const char* group, Modes modes) {
    command.add(
        {"--accumulate", "micro-batches of a step: forward and backward of each, then one update",
         "N", group},
        &options.gradient_accumulation_steps, modes);
}

void add_training_options(Command& command, StepForm& options, bool is_capture) {
    command.add(
        {.names = "--model",
         .help = "one of " + model_names() + ", or the config.json of a BERT, RoBERTa or GPT-2",
         .value_name = "NAME",
         .group = kModel,
         .is_required = is_capture},
        &options.model, kSteps);
    command.add({.names = "-o,--output",
                 .help = "a file that ends in .tscope, or a folder with one file per recipe",
                 .value_name = "PATH",
                 .group = kRun,
                 .is_required = is_capture},
                &options.output, kSteps);
    command.add({"--overwrite", "replace traces that are there already", "", kRun},
                &options.overwrites, kTraces);
    add_step_options(command, options);
    command.add({"--device",
                 is_capture ? "cpu, cuda, auto (cuda where a GPU can be used), or predict:GPU with "
                              "a GPU of temposcope plan"
                            : "cpu, cuda, or auto: cuda where a GPU can be used; with --auto or "
                              "--parallel also predict:GPU",
                 "NAME", kRun},
                &options.device);
    command.add({"--setup", "with predict:GPU: the software environment to assume", "NAME", kRun},
                &options.setup, kPredicts);
}

std::string refuse_in_measurement(const std::string& option) {
    return fmt::format(
        "{0} chooses the software environment of a prediction, and this is a measurement: leave "
        "{0} out, or add --device predict:GPU.",
        option);
}

std::string refuse_in_prediction(const std::string& option) {
    return fmt::format(
        "{0} is for measurements: a prediction has one step after a warm-up step. Leave {0} out.",
        option);
}

}  // namespace app
