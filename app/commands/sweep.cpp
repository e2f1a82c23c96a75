#include "app/commands/sweep.h"
#include "app/commands/command.h"
#include "app/commands/console/report.h"
#include "app/commands/jobs.h"
#include "app/commands/options/help.h"
#include "app/commands/plan_request.h"
#include "models/config/parallel.h"

#include <memory>

namespace app {
namespace {

/// The same rows as `plan --parallel` has on one card.
Outcome run_parallel_sweep(const SweepOptions& options, Output& output) {
    const StepForm& workload = options.workload;
    if (!workload.predicts()) {
        return wrong_usage(
            {"--parallel runs ranks on simulated GPUs: add --device predict:GPU, such as "
             "predict:a100-80gb."});
    }
    if (auto ok = check_ending(workload.output, "--parallel"); !ok) return wrong_usage(ok.error());
    return run_parallel({.workload = workload,
                         .seq = std::to_string(workload.seq_len),
                         .gpu = workload.device.substr(kPredict.size()),
                         .parallel = options.parallel,
                         .world_sizes = options.world_sizes,
                         .chart = options.chart,
                         .output = workload.output},
                        BatchOrder::kDoubled, output);
}

Mode parallel_sweep_mode(const SweepOptions& options) {
    const auto lacks = sentence("--parallel trains a model on many GPUs: add {}.");
    const auto refuse =
        sentence("With --parallel a sweep runs every batch that fits on a GPU: leave {} out.");
    return {.bit = kMeasureParallel,
            .chosen_by = "--parallel",
            .refuse = refuse,
            .needs = {{"--model", lacks}, {"--world-size", lacks}},
            .run = [&](Output& output) { return run_parallel_sweep(options, output); }};
}

void add_mode_options(Command& command, SweepOptions& options) {
    command.add({"--calibrate",
                 "measure the device itself (--device), in about a minute, for better plans"},
                &options.calibrates, kCalibrate);
    command.add({"--auto",
                 "search, layer by layer, for the fastest recipe between the two of --recipe "
                 "(original,tempo): fast, smart or predicted, with commas between, or all",
                 "LIST"},
                &options.searches, kMeasureAuto | kPredictAuto);
    const auto add_parallel = [&](std::string names, std::string help, std::string value_name,
                                  std::string needs, std::string* value) {
        command.add({.names = std::move(names),
                     .help = std::move(help),
                     .value_name = std::move(value_name),
                     .group = "Many GPUs",
                     .needs = std::move(needs)},
                    value, kMeasureParallel);
    };
    add_parallel("--parallel",
                 fmt::format("with predict:GPU: batches of a model that is spread over many "
                             "GPUs by {}, with commas between",
                             models::kStrategyList),
                 "LIST", "", &options.parallel);
    add_parallel("--world-size", "how many GPUs: numbers with commas between", "LIST", "--parallel",
                 &options.world_sizes);
    add_parallel("--chart", "what fits, as SVG, PNG, PDF or HTML", "FILE", "--parallel",
                 &options.chart);
}

}  // namespace

void add_sweep_command(CommandLine& line) {
    Command& command = line.add_command(
        "sweep", "Find the largest batch of a built-in model, and its throughput at each batch");
    auto options = std::make_shared<SweepOptions>();
    add_training_options(command, options->workload, /*is_capture=*/false);
    add_mode_options(command, *options);
    command.footer(
        list_recipes() +
        "\n"
        "A sweep trains batches of 1, 2, 4, ... until one runs out of memory. Then it tries\n"
        "batches between the last two, to find the largest that fits. The trace records the\n"
        "steps of the batch in --batch. With --memory-limit, allocations fail as on a GPU with\n"
        "that much memory. Running out of memory is a result of a sweep, not an error.\n\n"
        "--calibrate trains nothing. It measures how fast the device runs GEMMs, a simple\n"
        "elementwise kernel, softmax, LayerNorm and kernel launches. temposcope plan then uses\n"
        "these rates for this GPU (--gpu cpu for the CPU).\n\n"
        "--auto writes no traces. It runs AutoTempo's two searches over real steps, and the\n"
        "search of temposcope plan --auto, and compares what they choose. -o then names a file\n"
        "that ends in .csv or .json, and --device may be predict:GPU.\n\n"
        "--parallel writes no traces either: it runs each recipe and strategy on simulated GPUs,\n"
        "at batches of 1, 2, 4, ... up to the largest that fits. It shows the memory of the GPU\n"
        "that needs the most, and the modelled throughput of all.\n\n"
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
    const auto run = [options](Output& output) {
        return run_jobs(options->workload, MeasureKind::kSweep, output);
    };
    // A sweep refuses to predict whatever else was given.
    const auto bit = [options] { return options->workload.predicts() ? kAllModes : kMeasure; };
    command.on_run(
        {parallel_sweep_mode(*options),
         auto_sweep_mode(*options, command),
         calibration_mode(*options),
         {.bit_by_value = bit,
          .refuse = refuse_in_measurement,
          .needs = {{"--model", sentence("A sweep trains a model: say which with --model.")},
                    {"--output",
                     sentence("A sweep writes traces: name a file or folder with -o.")}},
          .run = run}});
}

}  // namespace app
