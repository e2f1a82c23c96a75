#include "app/commands/options/workload_options.h"

#include "app/commands/options/number_option.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

namespace app {
namespace {

std::string model_names() {
    std::vector<std::string_view> names;
    for (const auto& model : models::model_presets()) names.push_back(model.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

void add_model_options(CLI::App& command, WorkloadOptions& options) {
    command.add_option("--model", options.model, "one of " + model_names())
        ->type_name("NAME")
        ->required()
        ->group("Model");
    command
        .add_option("--head", options.head,
                    "layers: only the stack, loss of a fixed projection; mlm or squad: BERT and "
                    "RoBERTa; lm: "
                    "GPT-2")
        ->type_name("NAME")
        ->group("Model")
        ->capture_default_str();
    add_model_size_options(command, options);
}

void add_step_options(CLI::App& command, WorkloadOptions& options) {
    const std::string step = "Training step";
    command
        .add_option("--recipe", options.recipes,
                    "recipes to run one after the other, with commas between; see below")
        ->type_name("LIST")
        ->group(step)
        ->capture_default_str();
    command.add_option("--batch", options.batch_size, "sequences a step")
        ->type_name("N")
        ->transform(whole_number())
        ->group(step)
        ->capture_default_str();
    command.add_option("--seq", options.seq_len, "tokens a sequence")
        ->type_name("N")
        ->transform(whole_number())
        ->group(step)
        ->capture_default_str();
    command
        .add_option("--precision", options.precision,
                    "fp32, fp16, bf16, amp-fp16, amp-bf16, pure-fp16 or pure-bf16")
        ->type_name("NAME")
        ->group(step)
        ->capture_default_str();
    command.add_option("--padding", options.padding, "none, or random lengths with a mask")
        ->type_name("NAME")
        ->group(step)
        ->capture_default_str();
    command.add_option("--seed", options.seed, "of weights, data and dropout")
        ->type_name("N")
        ->transform(whole_number())
        ->group(step)
        ->capture_default_str();
}

void add_run_options(CLI::App& command, WorkloadOptions& options) {
    const std::string run = "Run";
    command
        .add_option("--device", options.device, "cpu, cuda, or auto: cuda where a GPU can be used")
        ->type_name("NAME")
        ->group(run)
        ->capture_default_str();
    command.add_option("--warmup", options.warmup_steps, "steps before the recorded ones")
        ->type_name("N")
        ->transform(whole_number())
        ->group(run)
        ->capture_default_str();
    command.add_option("--steps", options.steps, "steps to record")
        ->type_name("N")
        ->transform(whole_number())
        ->group(run)
        ->capture_default_str();
    command
        .add_option("--memory-limit", options.memory_limit,
                    "fail as a GPU of this size would, such as 16GiB")
        ->type_name("SIZE")
        ->check(not_empty())
        ->group(run);
    command
        .add_option("-o,--output", options.output,
                    "a file that ends in .tscope, or a folder with one file a recipe")
        ->type_name("PATH")
        ->required()
        ->group(run);
}

}  // namespace

void add_model_size_options(CLI::App& command, WorkloadOptions& options) {
    const std::string model = "Model";
    command.add_option("--layers", options.layers, "Transformer layers (the model's own)")
        ->type_name("N")
        ->transform(whole_number())
        ->group(model);
    command.add_option("--hidden", options.hidden, "hidden size (the model's own)")
        ->type_name("N")
        ->transform(whole_number())
        ->group(model);
    command
        .add_option("--heads", options.heads,
                    "attention heads (the model's own; they must divide the hidden size)")
        ->type_name("N")
        ->transform(whole_number())
        ->group(model);
    command
        .add_option("--intermediate", options.intermediate,
                    "width of the MLP (the model's own; 4 x hidden with --hidden)")
        ->type_name("N")
        ->transform(whole_number())
        ->group(model);
    command.add_option("--vocab", options.vocab, "vocabulary (the model's own)")
        ->type_name("N")
        ->transform(whole_number())
        ->group(model);
    command
        .add_option(
            "--dropout", options.dropout_p,
            "of hidden states, and of attention unless --attention-dropout is given (the model's "
            "own, 0.1)")
        ->type_name("P")
        ->check(decimal_number())
        ->group(model);
    command
        .add_option("--attention-dropout", options.attention_dropout_p,
                    "of attention (the model's own, 0.1)")
        ->type_name("P")
        ->check(decimal_number())
        ->group(model);
}

void add_prediction_options(CLI::App& command, WorkloadOptions& options) {
    command.get_option("--device")
        ->description(
            "cpu, cuda, auto (cuda where a GPU can be used), or predict:GPU: what a GPU "
            "of temposcope plan "
            "would do");
    command.add_option("--setup", options.setup, "with predict:GPU: the software that is assumed")
        ->type_name("NAME")
        ->group("Run")
        ->capture_default_str();
}

models::Result<void> check_prediction_options(const CLI::App& command,
                                              const WorkloadOptions& options) {
    const auto is_given = [&](const char* name) { return command.get_option(name)->count() > 0; };
    if (!options.device.starts_with("predict:")) {
        if (!is_given("--setup")) return {};
        return models::fail(
            "--setup is what a prediction assumes: a measurement has the software that is here, so "
            "leave it out or add --device predict:GPU.");
    }
    for (const char* name : {"--steps", "--warmup"}) {
        if (!is_given(name)) continue;
        return models::fail(
            "{} is for measurements: a prediction is of one step after a warm-up, and the next "
            "ones equal it.",
            name);
    }
    return {};
}

void add_workload_options(CLI::App& command, WorkloadOptions& options) {
    add_model_options(command, options);
    add_step_options(command, options);
    add_run_options(command, options);
}

}  // namespace app
