#include "app/commands/command.h"
#include "app/commands/help.h"
#include "app/commands/job_report.h"

#include <memory>

namespace app {

void add_sweep_command(CLI::App& program, Chosen& chosen) {
    auto* command = program.add_subcommand(
        "sweep", "Measure the largest batch that trains, and the throughput at each batch");
    auto options = std::make_shared<WorkloadOptions>();
    add_workload_options(*command, *options);
    add_json_option(*command, chosen);
    command->footer(
        list_recipes() +
        "\n"
        "Batches 1, 2, 4, ... are trained until one runs out of memory, then the largest that fits "
        "is\n"
        "searched between the last two. --batch is the one whose step is traced; --memory-limit "
        "stands\n"
        "for the card's memory. Running out of memory is a result here, not an error.\n\n"
        "Examples:\n"
        "  temposcope sweep --model bert-base --layers 2 --seq 128 --recipe original,tempo \\\n"
        "      --memory-limit 1GiB -o sweep\n"
        "  temposcope compare out/ sweep/\n");
    command->callback([options, &chosen] {
        chosen.run = [options](Output& output) {
            return run_jobs(*options, JobKind::kSweep, output);
        };
    });
}

}  // namespace app
