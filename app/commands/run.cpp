#include "app/commands/command.h"
#include "app/commands/console/terminal.h"
#include "app/commands/options/list_option.h"
#include "app/commands/record_ranks.h"
#include "app/commands/run_max.h"
#include "app/commands/worker/program_run.h"
#include "app/user/settings.h"
#include "models/config/parallel.h"
#include "models/config/recipe.h"
#include "profiler/planner/data/planner_data.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <filesystem>
#include <memory>
#include <system_error>

namespace app {
namespace {

namespace fs = std::filesystem;
using models::Result;

struct RunOptions {
    ProgramRun run;
    std::string gpus;
    std::string placeholder;
    std::vector<std::string> values;
    std::string output;
    std::string ranks;
    std::string link;
    std::string layers;
    bool overwrites = false;
};

/// "train" of `python train.py`, "trainer" of `python -m company.trainer`.
std::string name_of_program(const std::vector<std::string>& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "-m" && i + 1 < words.size()) {
            return words[i + 1].substr(words[i + 1].rfind('.') + 1);
        }
        if (words[i].ends_with(".py")) return fs::path(words[i]).stem().string();
    }
    return fs::path(words.front()).stem().string();
}

Result<void> check_file(const std::string& file, std::string_view endings, bool overwrites) {
    std::error_code error;
    if (fs::exists(file, error) && !overwrites) {
        return models::fail("{} exists already: give another name, or --overwrite.", file);
    }
    const fs::path folder = fs::absolute(file, error).parent_path();
    if (!fs::is_directory(folder, error)) {
        return models::fail("{} is no folder: make it first, or give another file.",
                            folder.string());
    }
    const std::string ending = fs::path(file).extension().string();
    if (!ending.empty() && endings.find(ending + " ") != std::string_view::npos) return {};
    std::string choices(endings.substr(0, endings.size() - 1));
    if (const auto space = choices.find(' '); space != std::string::npos) {
        choices.replace(space, 1, " or ");
    }
    return models::fail("-o {}: give a name that ends in {}.", file, choices);
}

/// Empty: representative ranks.
Result<std::vector<int64_t>> parse_ranks(const std::string& text, int64_t world_size) {
    std::vector<int64_t> ranks;
    if (text.empty() || text == "representative") return ranks;
    if (text == "all") {
        for (int64_t rank = 0; rank < world_size; ++rank) ranks.push_back(rank);
        return ranks;
    }
    const auto items = split_list("--ranks", text);
    if (!items) return tl::unexpected(items.error());
    for (const std::string& item : *items) {
        int64_t rank = -1;
        const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), rank);
        if (error != std::errc() || end != item.data() + item.size() || rank < 0 ||
            rank >= world_size) {
            return models::fail(
                "--ranks {} is no rank of {}: give representative, all, or numbers below {}.", item,
                world_size, world_size);
        }
        ranks.push_back(rank);
    }
    return ranks;
}

Result<void> check_world(RunOptions& options) {
    ProgramRun& run = options.run;
    if (run.world_size == 0) {
        if (options.ranks.empty()) return {};
        return models::fail("--ranks chooses ranks of a virtual run: give its --world-size, too.");
    }
    if (run.world_size < 2 || run.world_size > models::kMostRanks) {
        return models::fail("--world-size is {}: give 2 to {}.", run.world_size,
                            models::kMostRanks);
    }
    auto ranks = parse_ranks(options.ranks, run.world_size);
    if (!ranks) return tl::unexpected(ranks.error());
    run.ranks = std::move(*ranks);
    return {};
}

Result<void> check_program(const RunOptions& options) {
    const ProgramRun& run = options.run;
    if (run.words.empty()) {
        return models::fail(
            "No program to run: give it after --, as in temposcope run -- python train.py.");
    }
    if (run.steps < 1) return models::fail("--steps is {}: record at least 1 step.", run.steps);
    if (run.skip < 0) return models::fail("--skip is {}: give 0 or more.", run.skip);
    if (run.recipe.empty()) return {};
    if (const auto recipe = models::parse_recipe(run.recipe); !recipe) {
        return models::fail("--apply: {}", recipe.error().message);
    }
    return {};
}

Result<std::vector<std::string>> gpus_of(const RunOptions& options) {
    if (options.gpus.empty()) return std::vector<std::string>();
    auto gpus = split_list("--gpu", options.gpus);
    if (gpus && gpus->size() > 1 && options.placeholder.empty()) {
        return models::fail("--gpu names {} GPUs: a program runs on one, without --max.",
                            gpus->size());
    }
    const auto data = profiler::load_planner_data(settings_folder());
    if (!data) return tl::unexpected(data.error());
    for (std::size_t i = 0; gpus && i < gpus->size(); ++i) {
        const auto known = profiler::find_gpu(data->gpus, (*gpus)[i]);
        if (!known) return tl::unexpected(known.error());
    }
    return gpus;
}

nlohmann::json document_of(const ProgramResult& result) {
    const bool has_file = !result.file.empty();
    return {{"file", has_file ? nlohmann::json(result.file) : nlohmann::json()},
            {"state", !has_file            ? nlohmann::json()
                      : result.is_complete ? nlohmann::json("complete")
                                           : nlohmann::json("incomplete")},
            {"steps", result.recorded_steps},
            {"exit_code", result.exit_code},
            {"applied", result.applied},
            {"sentence", result.sentence}};
}

nlohmann::json document_of_ranks(const ProgramResult& result) {
    nlohmann::json rows = nlohmann::json::array();
    for (const RankResult& rank : result.ranks) {
        rows.push_back({{"rank", rank.rank},
                        {"file", rank.file.empty() ? nlohmann::json() : nlohmann::json(rank.file)},
                        {"state", rank.file.empty()  ? nlohmann::json()
                                  : rank.is_complete ? nlohmann::json("complete")
                                                     : nlohmann::json("incomplete")},
                        {"steps", rank.recorded_steps},
                        {"sentence", rank.sentence}});
    }
    return {
        {"rows", std::move(rows)}, {"exit_code", result.exit_code}, {"sentence", result.sentence}};
}

Outcome record(RunOptions& options, const std::string& gpu, Output& output) {
    ProgramRun& run = options.run;
    run.output_is_ours = output.json();
    if (run.world_size > 0 || names_folder(options.output)) {
        if (options.output.empty()) options.output = name_of_program(run.words) + ".ranks";
        const auto result =
            record_ranks(run, {options.output, options.overwrites}, {gpu, options.link});
        if (!result) return tl::unexpected(result.error());
        if (output.json()) output.document(document_of_ranks(*result));
        return static_cast<ExitCode>(result->exit_code);
    }
    if (options.output.empty()) options.output = name_of_program(run.words) + ".tscope";
    if (const auto ok = check_file(options.output, ".tscope ", options.overwrites); !ok) {
        return wrong_usage(ok.error());
    }
    run.file = fs::absolute(options.output).string();
    auto recorded = run_on(gpu, run);
    if (!recorded) return failed(recorded.error());
    auto& [result, target] = *recorded;
    if (target && result.file == run.file) add_times(*target, run.file, result.sentence);
    for (const std::string& sentence : result.applied_sentences) print_error(sentence);
    print_error(result.sentence);
    if (output.json()) output.document(document_of(result));
    return static_cast<ExitCode>(result.exit_code);
}

Outcome run_command(RunOptions& options, Output& output) {
    if (const auto ok = check_program(options); !ok) return wrong_usage(ok.error());
    if (const auto ok = check_world(options); !ok) return wrong_usage(ok.error());
    if (!options.layers.empty()) {
        auto layers = split_list("--layers", options.layers);
        if (!layers) return wrong_usage(layers.error());
        options.run.layers = std::move(*layers);
    }
    const auto gpus = gpus_of(options);
    if (!gpus) return wrong_usage(gpus.error());
    if (options.placeholder.empty()) {
        return record(options, gpus->empty() ? "" : gpus->front(), output);
    }
    if (!options.output.empty()) {
        const auto ok = check_file(options.output, ".csv .json ", options.overwrites);
        if (!ok) return wrong_usage(ok.error());
    }
    return run_max({.run = options.run,
                    .gpus = *gpus,
                    .placeholder = options.placeholder,
                    .values = options.values,
                    .output = options.output},
                   output);
}

}  // namespace

void add_run_command(CommandLine& line) {
    Command& command =
        line.add_command("run", "Run a PyTorch program of your own and record its steps");
    auto options = std::make_shared<RunOptions>();
    command.add({"--gpu", "run on this virtual GPU, such as h100-sxm; no GPU is needed", "ID"},
                &options->gpus);
    command.add({"--apply",
                 "put this recipe into the program's models: a preset or switches, such as tempo",
                 "RECIPE"},
                &options->run.recipe);
    command.add({.names = "--layers",
                 .help = "with --apply: classes of your own that are layers for checkpoints",
                 .value_name = "LIST",
                 .needs = "--apply"},
                &options->layers);
    command.add({"--steps", "how many steps to record", "N"}, &options->run.steps);
    command.add({"--skip", "how many steps come first, unrecorded", "N"}, &options->run.skip);
    command.add({"--stacks", "record the lines of Python that led to each allocation, too"},
                &options->run.with_stacks);
    command.add({"--cpp-stacks", "the same, and the C++ functions below them"},
                &options->run.with_cpp_stacks);
    command.add({"--stop", "end the program after the recorded steps"}, &options->run.stops);
    command.add(
        {"-o,--output",
         "trace to write (without it NAME.tscope of the program's NAME.py), or a folder for "
         "a trace of each rank",
         "FILE.tscope"},
        &options->output);
    command.add({.names = "--world-size",
                 .help = "run as if there were so many ranks, each with such a GPU",
                 .value_name = "N",
                 .needs = "--gpu"},
                &options->run.world_size);
    command.add({.names = "--ranks",
                 .help = "with --world-size: which of them run; representative (without it), all, "
                         "or a list",
                 .value_name = "RANKS"},
                &options->ranks);
    command.add({.names = "--link",
                 .help = "bandwidth between the GPUs of a node per second, such as 44GB",
                 .value_name = "SIZE",
                 .needs = "--world-size"},
                &options->link);
    command.add({"--overwrite", "replace a trace that is there already"}, &options->overwrites);
    command.add({.names = "--max",
                 .help = "find the largest batch: {NAME} in the arguments is the batch size",
                 .value_name = "NAME",
                 .needs = "--gpu"},
                &options->placeholder);
    command.add({.names = "--values",
                 .help = "with --max: other placeholders and the values to try, as SEQ=128,512",
                 .value_name = "NAME=LIST",
                 .needs = "--max"},
                &options->values);
    command.add_program(&options->run.words);
    command.footer(
        "What stands after -- is the program and its arguments, unchanged. Its output and its "
        "exit\n"
        "code stay its own; what became of the recording stands at the end of standard error.\n\n"
        "Examples:\n"
        "  temposcope run -- python train.py --epochs 1\n"
        "  temposcope run --apply tempo -o tempo.tscope -- python train.py --epochs 1\n"
        "  temposcope run --gpu h100-sxm --stop -o h100.tscope -- python -m trainer\n"
        "  temposcope run --gpu h100-sxm --world-size 64 -- torchrun train.py\n"
        "  temposcope run --gpu a100-40gb,h100-sxm --max BATCH --values SEQ=128,512 -- \\\n"
        "      python train.py --batch {BATCH} --seq {SEQ}\n");
    command.on_run([options, &command](Output& output) -> Outcome {
        for (const char* name :
             {"--steps", "--skip", "--stop", "--stacks", "--cpp-stacks", "--link"}) {
            if (!command.is_given("--max") || !command.is_given(name)) continue;
            return wrong_usage({fmt::format(
                "{} says how a trace is recorded, and --max writes none: leave one out.", name)});
        }
        return run_command(*options, output);
    });
}

}  // namespace app
