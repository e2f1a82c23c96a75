#include "app/commands/command.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/jobs.h"
#include "app/commands/options/help.h"
#include "app/commands/options/workload_options.h"
#include "app/commands/record_ranks.h"
#include "app/commands/reports/reports.h"
#include "profiler/trace/file/temporary_paths.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace app {
namespace {

namespace fs = std::filesystem;

struct CaptureOptions {
    StepForm workload;
    std::string parallel;
    int64_t world_size = 0;
    std::string link;
};

/// The one recipe that runs on many ranks, checked as a capture on one GPU is.
tl::expected<JobList, Failure> job_of_ranks(const StepForm& options) {
    auto list = make_jobs(options);
    if (!list) return wrong_usage(list.error());
    if (list->gpu.empty()) {
        return wrong_usage(
            {"--parallel runs ranks on simulated GPUs: add --device predict:GPU, such as "
             "predict:a100-80gb."});
    }
    if (list->is_all || list->jobs.size() > 1) {
        return wrong_usage({"--parallel writes the ranks of one recipe: name one with --recipe."});
    }
    if (!names_folder(options.output)) {
        return wrong_usage(
            {fmt::format("--parallel writes a trace of each rank: give -o a folder in place of {}.",
                         options.output)});
    }
    if (auto ok = check_predicted(*list, options.setup); !ok) return tl::unexpected(ok.error());
    return std::move(*list);
}

/// What the program said, where it failed for a reason of its own.
void print_log(const fs::path& log) {
    std::ifstream lines(log);
    for (std::string line; std::getline(lines, line);) print_error(line);
}

Outcome capture_ranks(const CaptureOptions& options, Output& output) {
    const auto parallel = models::parse_parallel(options.parallel);
    if (!parallel) return wrong_usage(parallel.error());
    const auto list = job_of_ranks(options.workload);
    if (!list) return tl::unexpected(list.error());
    auto run = built_in_program(list->jobs.front().workload, *parallel, options.world_size);
    if (!run) return wrong_usage(run.error());
    const profiler::TemporaryFolder temporary;
    if (!temporary.exists()) return failed({profiler::kNoTemporaryFolder});
    run->log = (temporary / "log").string();
    const std::string& folder = options.workload.output;
    const auto result = record_ranks(*run, {.output = folder,
                                            .overwrites = options.workload.overwrites,
                                            .gpu = list->gpu,
                                            .link = options.link});
    if (!result) return tl::unexpected(result.error());
    const bool ran_out = result->exception == "OutOfMemoryError";
    const bool has_all_steps = result->recorded_steps >= run->steps;
    if (!ran_out && !has_all_steps && result->exit_code != 0) {
        print_log(run->log);
        return ExitCode::kFailed;
    }
    const auto traces = open_traces({folder});
    if (!traces) return ran_out ? Outcome(ExitCode::kOutOfMemory) : failed(traces.error());
    const auto ranks = profiler::summarize_ranks(*traces);
    if (!ranks) return failed(ranks.error());
    const auto print = [&](Output& text) {
        print_ranks(text, *ranks);
        const std::string next = fmt::format("info {} --peak", shell_word(traces->front().file));
        text.line(text.styled(next_line(next), Style::kDim));
    };
    auto shown = emit(output, {.json = [&] { return ranks_json(*ranks); }, .text = print});
    return ran_out ? ExitCode::kOutOfMemory : shown;
}

}  // namespace

void add_capture_command(CommandLine& line) {
    Command& command =
        line.add_command("capture", "Train a built-in model for a few steps and record it");
    auto options = std::make_shared<CaptureOptions>();
    add_training_options(command, options->workload, /*is_capture=*/true);
    command.add({"--parallel",
                 fmt::format("with predict:GPU: spread the step over many GPUs by {}",
                             models::kStrategyList),
                 "NAME", "Many GPUs"},
                &options->parallel);
    command.add({.names = "--world-size",
                 .help = "how many GPUs; representative ranks run",
                 .value_name = "N",
                 .group = "Many GPUs",
                 .needs = "--parallel"},
                &options->world_size);
    command.add({.names = "--link",
                 .help = "bandwidth between the GPUs of a node per second, such as 44GB",
                 .value_name = "SIZE",
                 .group = "Many GPUs",
                 .needs = "--parallel"},
                &options->link);
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
        "one.tscope\n"
        "  temposcope capture --model gpt2-xl --head lm --seq 1024 --recipe flash \\\n"
        "      --precision amp-bf16 --device predict:a100-80gb --parallel fsdp2 --world-size 8 -o "
        "ranks\n");
    const auto refuse_of_ranks = [&command](const std::string& option) {
        const bool is_of_prediction = (command.modes_of(option) & kPredictStep) != 0;
        return is_of_prediction
                   ? fmt::format("--parallel runs the setup of the simulated GPU: leave {} out.",
                                 option)
                   : refuse_in_prediction(option);
    };
    const auto refuse = [options](const std::string& option) {
        return options->workload.predicts() ? refuse_in_prediction(option)
                                            : refuse_in_measurement(option);
    };
    command.on_run(
        {{.bit = kCaptureRanks,
          .chosen_by = "--parallel",
          .refuse = refuse_of_ranks,
          .run = [options](Output& output) { return capture_ranks(*options, output); }},
         {.bit_by_value =
              [options] { return options->workload.predicts() ? kPredictStep : kMeasure; },
          .refuse = refuse,
          .run =
              [options](Output& output) {
                  return run_jobs(options->workload, MeasureKind::kCapture, output);
              }}});
}

}  // namespace app
