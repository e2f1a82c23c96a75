#include "app/commands/command.h"
#include "app/commands/options/help.h"
#include "app/commands/options/workload_options.h"
#include "app/commands/worker/job_report.h"

#include <memory>

namespace app {

void add_capture_command(CommandLine& line) {
    Command& command = line.add_command("capture", "Train a few steps and record every allocation");
    auto options = std::make_shared<WorkloadOptions>();
    add_capture_options(command, *options);
    command.footer(
        list_recipes() +
        "\n"
        "Each recipe trains in a process of its own and writes one trace. A capture that is "
        "killed\n"
        "leaves NAME.tscope.partial, which every command opens.\n\n"
        "Examples:\n"
        "  temposcope capture --model bert-large --layers 3 --recipe original,tempo -o out\n"
        "  temposcope capture --model gpt2 --head lm --batch 2 --seq 256 --precision bf16 -o "
        "gpt2.tscope\n"
        "  temposcope capture --model bert-base --recipe gelu=in_place,masks=bit --steps 1 -o "
        "one.tscope\n");
    command.on_run([&command, options](Output& output) -> Outcome {
        if (const auto ok = check_prediction_options(command, *options); !ok) {
            return wrong_usage(ok.error());
        }
        return run_and_report(*options, MeasureKind::kCapture, output);
    });
}

}  // namespace app
