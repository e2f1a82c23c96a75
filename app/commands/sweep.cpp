#include "app/commands/command.h"
#include "app/commands/options/help.h"
#include "app/commands/options/workload_options.h"
#include "app/commands/worker/calibrate.h"
#include "app/commands/worker/job_report.h"

#include <memory>
#include <string>

namespace app {

namespace {

models::Result<void> check_calibrate_options(const Command& command) {
    for (const std::string& name : command.given_options()) {
        if (name == "--calibrate" || name == "--device" || name == "--json") continue;
        return models::fail("--calibrate trains nothing: leave {} out.", name);
    }
    return {};
}

Outcome run_sweep(const WorkloadOptions& options, Output& output) {
    if (options.model.empty()) {
        return fail_with(ExitCode::kUsage, "A sweep trains a model: say which with --model.");
    }
    if (options.output.empty()) {
        return fail_with(ExitCode::kUsage, "A sweep writes traces: name a file or folder with -o.");
    }
    return run_and_report(options, MeasureKind::kSweep, output);
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
        "Examples:\n"
        "  temposcope sweep --model bert-base --layers 2 --seq 128 --recipe original,tempo \\\n"
        "      --memory-limit 1GiB -o sweep\n"
        "  temposcope compare out/ sweep/\n"
        "  temposcope sweep --calibrate --device cuda\n");
    command.on_run([options, calibrate, &command](Output& output) -> Outcome {
        if (!*calibrate) return run_sweep(*options, output);
        if (auto ok = check_calibrate_options(command); !ok) return wrong_usage(ok.error());
        return run_calibration(options->device, output);
    });
}

}  // namespace app
