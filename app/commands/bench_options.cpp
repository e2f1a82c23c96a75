#include "app/commands/bench_request.h"
#include "app/commands/options/help.h"
#include "app/commands/options/list_option.h"
#include "app/commands/reports/chart_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace app {

namespace {

/// `bench charts` predicts what was published: options apply to measured devices only.
models::Result<void> check_charts_of_predictions(const Command& command,
                                                 const BenchOptions& options) {
    const auto devices = split_list("--device", options.device);
    const bool measures = !devices || std::any_of(devices->begin(), devices->end(), [](auto& one) {
        return !one.starts_with("predict:");
    });
    if (options.what != "charts" || measures) return {};
    for (const char* option :
         {"--model", "--seq", "--batch", "--hidden", "--heads", "--intermediate", "--dropout",
          "--attention-dropout", "--precision", "--seconds"}) {
        if (!command.is_given(option)) continue;
        return models::fail(
            "'bench charts' predicts what was published: leave {} out, or name a device of this "
            "machine.",
            option);
    }
    return {};
}

}  // namespace

models::Result<void> check_bench_options(const Command& command, const BenchOptions& options) {
    struct Use {
        std::string_view option;
        std::vector<std::string_view> of;  // values of WHAT
    };
    static const std::vector<std::string_view> kLayers{"layer", "model", "charts"};
    static const std::array kUses{Use{"--size", {"matmul", "vector"}},
                                  Use{"--model", kLayers},
                                  Use{"--recipe", {"layer", "model"}},
                                  Use{"--seq", kLayers},
                                  Use{"--batch", kLayers},
                                  Use{"--layers", {"model"}},
                                  Use{"--hidden", kLayers},
                                  Use{"--heads", kLayers},
                                  Use{"--intermediate", kLayers},
                                  Use{"--vocab", {"model"}},
                                  Use{"--positions", {"model"}},
                                  Use{"--dropout", kLayers},
                                  Use{"--attention-dropout", kLayers},
                                  Use{"--head", {"model"}},
                                  Use{"--padding", {"model"}},
                                  Use{"--accumulate", {"model"}},
                                  Use{"--steps", {"model"}},
                                  Use{"--seconds", {"matmul", "vector", "layer", "charts"}}};
    for (const auto& [option, of] : kUses) {
        const bool has_effect = std::find(of.begin(), of.end(), options.what) != of.end();
        if (has_effect || !command.is_given(std::string(option))) continue;
        return models::fail("{} has no effect on 'bench {}', only on {}: leave it out.", option,
                            options.what, fmt::join(of, ", "));
    }
    if (command.is_given("--format") && options.charts.empty()) {
        return models::fail("{}", kFormatWithoutCharts);
    }
    return check_charts_of_predictions(command, options);
}

void add_bench_options(Command& command, BenchOptions& options) {
    command.add({.names = "WHAT",
                 .help = "matmul, vector, layer, model, or charts: layers and models beside what "
                         "was published",
                 .is_required = true,
                 .choices = {"matmul", "vector", "layer", "model", "charts"}},
                &options.what);
    command.add({"--device",
                 "devices with commas between: cpu, cuda or auto (measured), predict:GPU (with a "
                 "GPU of temposcope plan)",
                 "LIST"},
                &options.device);
    command.add({"--setup", "the software environment of predictions", "NAME"}, &options.setup);
    command.add({"--size", "of matrices (n x n) and vectors (elements)", "LIST"}, &options.sizes);
    command.add({"--model", "models, with commas between", "LIST"}, &options.models);
    command.add({"--head", "of whole models: mlm, squad, lm or layers", "NAME"},
                &options.workload.head);
    command.add({"--recipe", "recipes, " + about_recipe_list(), "LIST"}, &options.recipes);
    command.add({"--precision", list_precisions() + ", with commas between", "LIST"},
                &options.precisions);
    command.add({"--seq", "tokens per sequence", "LIST"}, &options.lengths);
    command.add({"--batch", "sequences per step, or per micro-batch", "LIST"}, &options.batches);
    command.add({"--accumulate", "micro-batches of a step", "LIST"}, &options.micro_batches);
    command.add({"--padding", "none, or random lengths with a mask", "NAME"},
                &options.workload.padding);
    add_model_size_options(command, options.workload);
    command.add({"--seconds", "how long each figure is measured (default: 3)", "S"},
                &options.seconds);
    command.add({"--steps", "of a model, after a warm-up step", "N"}, &options.steps);
    command.add({"--charts", "write bar charts into this folder", "DIR"}, &options.charts);
    command.add({.names = "--format",
                 .help = "of the charts: svg, png, pdf, html",
                 .value_name = "LIST",
                 .choices = {"svg", "png", "pdf", "html"}},
                &options.formats);
    command.add({"-o,--output", "a file that ends in .csv or .json", "FILE"}, &options.output);
}

}  // namespace app
