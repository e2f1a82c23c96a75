#include "app/commands/command.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/options/workload_options.h"
#include "app/commands/reports/auto_search_report.h"
#include "app/commands/sweep_ranks.h"
#include "app/commands/worker/auto_search.h"
#include "app/commands/worker/calibrate.h"
#include "app/commands/worker/job_report.h"
#include "models/config/parallel.h"
#include "profiler/trace/write_file.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <utility>

namespace app {

namespace {

models::Result<void> check_calibrate_options(const Command& command) {
    for (const std::string& name : command.given_options()) {
        if (name == "--calibrate" || name == "--device" || name == "--json") continue;
        return models::fail("--calibrate trains nothing: leave {} out.", name);
    }
    return {};
}

Outcome run_sweep(const Command& command, const WorkloadOptions& options, Output& output) {
    if (options.model.empty()) {
        return fail_with(ExitCode::kUsage, "A sweep trains a model: say which with --model.");
    }
    if (options.output.empty()) {
        return fail_with(ExitCode::kUsage, "A sweep writes traces: name a file or folder with -o.");
    }
    if (!options.device.starts_with("predict:")) {  // that is refused later
        const auto ok = check_prediction_options(command, options);
        if (!ok) return wrong_usage(ok.error());
    }
    return run_and_report(options, MeasureKind::kSweep, output);
}

models::Result<void> check_auto_options(const Command& command, const WorkloadOptions& options) {
    for (const char* name : {"--batch", "--overwrite", "--calibrate"}) {
        if (!command.is_given(name)) continue;
        return models::fail("--auto finds the batch itself and writes no traces: leave {} out.",
                            name);
    }
    if (options.model.empty()) {
        return models::fail("A search trains a model: say which with --model.");
    }
    const std::string& file = options.output;
    if (!file.empty() && !file.ends_with(".csv") && !file.ends_with(".json")) {
        return models::fail("With --auto, -o names a file that ends in .csv or .json, not {}.",
                            file);
    }
    return check_prediction_options(command, options);
}

Outcome run_auto(const WorkloadOptions& options, const std::string& list, Output& output) {
    const auto modes = search_modes(list);
    if (!modes) return wrong_usage(modes.error());
    if (const auto ok = check_result_file(options.output); !ok) return failed(ok.error());
    const auto report = search_recipes(options, *modes);
    if (!report) return tl::unexpected(report.error());
    const nlohmann::json document = auto_search_json(*report);
    if (!options.output.empty()) {
        const bool is_csv = options.output.ends_with(".csv");
        const auto written = profiler::write_file(
            options.output, is_csv ? auto_search_csv(*report) : json_text(document));
        if (!written) return failed(written.error());
    }
    output.document(document);
    print_auto_search(output, *report);
    return ExitCode::kOk;
}

}  // namespace

void add_sweep_command(CommandLine& line) {
    Command& command = line.add_command(
        "sweep", "Measure the largest batch that trains, and the throughput at each batch");
    auto options = std::make_shared<WorkloadOptions>();
    add_sweep_options(command, *options);
    auto calibrate = std::make_shared<bool>(false);
    command.add({"--calibrate",
                 "measure the device itself (--device), in about a minute, for better plans"},
                calibrate.get());
    auto modes = std::make_shared<std::string>();
    command.add({"--auto",
                 "search, layer by layer, for the fastest recipe between the two of --recipe "
                 "(original,tempo): fast, smart or predicted, with commas between, or all",
                 "LIST"},
                modes.get());
    auto ranks = std::make_shared<SweepRanksOptions>();
    const auto add_ranks_option = [&](std::string names, std::string help, std::string value_name,
                                      std::string needs, std::string* value) {
        command.add({.names = std::move(names),
                     .help = std::move(help),
                     .value_name = std::move(value_name),
                     .group = "Many GPUs",
                     .needs = std::move(needs)},
                    value);
    };
    add_ranks_option("--parallel",
                     fmt::format("with predict:GPU: batches of a model that is spread over many "
                                 "GPUs by {}, with commas between",
                                 models::kStrategyList),
                     "LIST", "", &ranks->parallel);
    add_ranks_option("--world-size", "how many GPUs: numbers with commas between", "LIST",
                     "--parallel", &ranks->world_sizes);
    add_ranks_option("--chart", "what fits, as SVG, PNG, PDF or HTML", "FILE", "--parallel",
                     &ranks->chart);
    command.footer(
        list_recipes() +
        "\n"
        "A sweep trains batches of 1, 2, 4, ... until one runs out of memory. Then it tries\n"
        "batches between the last two, to find the largest that fits. The trace records the\n"
        "steps of the batch in --batch. With --memory-limit, allocations fail as on a GPU with\n"
        "that much memory. Running out of memory is a result of a sweep, not an error.\n\n"
        "--calibrate trains nothing. It measures how fast the device runs GEMMs, a simple\n"
        "elementwise kernel, softmax, LayerNorm and kernel launches. temposcope plan then uses\n"
        "these rates for this GPU (a processor is --gpu cpu there).\n\n"
        "--auto writes no traces. It runs AutoTempo's two searches over real steps, and the\n"
        "search of temposcope plan --auto, and compares what they choose. -o then names a file\n"
        "that ends in .csv or .json, and --device may be predict:GPU.\n\n"
        "--parallel writes no traces either: it runs each recipe and strategy on virtual GPUs, at\n"
        "batches of 1, 2, 4, ... up to the largest that fits, and shows the memory of the GPU "
        "that\n"
        "needs the most, and the modelled throughput of all.\n\n"
        "Examples:\n"
        "  temposcope sweep --model bert-base --layers 2 --seq 128 --recipe original,tempo \\\n"
        "      --memory-limit 1GiB -o sweep\n"
        "  temposcope compare out/ sweep/\n"
        "  temposcope sweep --auto all --model bert-base --layers 4 --seq 128 \\\n"
        "      --memory-limit 1GiB\n"
        "  temposcope sweep --calibrate --device cuda\n"
        "  temposcope sweep --model gpt2 --head lm --seq 1024 --recipe flash,flash-tempo \\\n"
        "      --precision amp-bf16 --device predict:a100-80gb --parallel ddp,fsdp2 \\\n"
        "      --world-size 8 -o sweep.csv --chart sweep.svg\n");
    command.on_run([options, calibrate, modes, ranks, &command](Output& output) -> Outcome {
        if (command.is_given("--parallel")) {
            const auto ok = check_sweep_ranks_options(command);
            if (!ok) return wrong_usage(ok.error());
            return sweep_ranks(*options, *ranks, output);
        }
        if (!modes->empty()) {
            const auto ok = check_auto_options(command, *options);
            if (!ok) return wrong_usage(ok.error());
            if (!command.is_given("--recipe")) options->recipes = "original,tempo";
            return run_auto(*options, *modes, output);
        }
        if (!*calibrate) return run_sweep(command, *options, output);
        if (auto ok = check_calibrate_options(command); !ok) return wrong_usage(ok.error());
        return run_calibration(options->device, output);
    });
}

}  // namespace app
