#include "app/commands/command.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/report.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/values.h"
#include "app/commands/record_ranks.h"
#include "app/commands/reports/batch_report.h"
#include "app/commands/reports/reports.h"
#include "app/programs/program_run.h"
#include "app/user/settings.h"
#include "models/config/parallel.h"
#include "models/config/recipe.h"
#include "models/config/routing.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/trace/file/write_file.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace app {
namespace {

namespace fs = std::filesystem;
using models::Result;

enum RunMode : Modes { kRunRecord = 1, kRunMax = 2 };

struct RunOptions {
    ProgramRun run;
    std::string gpus;
    std::string placeholder;          // "BATCH", or with its braces: the batch size in the words
    std::vector<std::string> values;  // "SEQ=128", "512", "{WIDTH}=64": all combinations are tried
    std::string output;
    std::string ranks;
    std::string link;
    std::string layers;
    bool overwrites = false;
    bool asks_for_stacks = false;  // which is what happens without it
    bool without_stacks = false;
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

/// Errors: the file is there already.
Result<void> check_new_file(const std::string& file, bool overwrites) {
    std::error_code error;
    if (!fs::exists(file, error) || overwrites) return {};
    return models::fail("{} exists already: give another name, or --overwrite.", file);
}

Result<void> check_trace_file(const std::string& file, bool overwrites) {
    if (auto ok = check_new_file(file, overwrites); !ok) return ok;
    if (fs::path(file).extension() == ".tscope") return {};
    return models::fail("-o {}: give a name that ends in .tscope.", file);
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

/// Of "--values zeros SEQ=128" the words in front that are no lists. Errors: without --max there is
/// another word.
Result<void> set_values(const RunOptions& options, ProgramRun& run) {
    for (const std::string& word : options.values) {
        const bool is_list = word.find('=') != word.npos;
        if (is_list && !options.placeholder.empty()) break;
        if (word != "zeros" && word != "computed") {
            return models::fail(
                "--values {}: say zeros or computed, or with --max NAME=VALUE,VALUE.", word);
        }
        run.reads_zeros = word == "zeros";
    }
    return {};
}

/// Errors: what cannot be run or recorded.
Result<ProgramRun> make_run(const RunOptions& options) {
    ProgramRun run = options.run;
    if (run.words.empty() || run.words.front().empty()) {
        return models::fail(
            "No program to run: give it after --, as in temposcope run -- python train.py.");
    }
    if (options.without_stacks && (options.asks_for_stacks || run.with_cpp_stacks)) {
        return models::fail(
            "--no-stacks leaves out what --stacks and --cpp-stacks ask for: "
            "give one of them.");
    }
    run.with_stacks = !options.without_stacks;
    if (auto ok = set_values(options, run); !ok) return tl::unexpected(ok.error());
    if (const auto routing = models::parse_routing(run.routing); !routing) {
        return models::fail("--routing: {}", routing.error().message);
    }
    if (run.steps < 1) return models::fail("--steps is {}: record at least 1 step.", run.steps);
    if (run.skip < 0) return models::fail("--skip is {}: give 0 or more.", run.skip);
    if (!run.recipe.empty()) {
        const auto recipe = models::parse_program_recipe(run.recipe);
        if (!recipe) return models::fail("--apply: {}", recipe.error().message);
    }
    if (run.world_size == 0 && !options.ranks.empty()) {
        return models::fail(
            "--ranks chooses ranks of a simulated run: give its --world-size, too.");
    }
    if (run.world_size != 0 && (run.world_size < 2 || run.world_size > models::kMostRanks)) {
        return models::fail("--world-size is {}: give 2 to {}.", run.world_size,
                            models::kMostRanks);
    }
    auto ranks = parse_ranks(options.ranks, run.world_size);
    if (!ranks) return tl::unexpected(ranks.error());
    run.ranks = std::move(*ranks);
    if (options.layers.empty()) return run;
    auto layers = split_list("--layers", options.layers);
    if (!layers) return tl::unexpected(layers.error());
    run.layers = std::move(*layers);
    return run;
}

/// The GPUs of --gpu, at most `most`.
Result<std::vector<std::string>> gpus_of(const std::string& list, std::size_t most) {
    if (list.empty()) return std::vector<std::string>();
    auto gpus = split_list("--gpu", list);
    if (gpus && gpus->size() > most) {
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

/// null where there is none.
nlohmann::json text_json(const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

/// Of what was written by a run, or by a rank.
nlohmann::json files_json(const auto& result) {
    const std::string state = result.is_complete ? "complete" : "incomplete";
    const int64_t peak_bytes = result.later_peak.bytes;
    return {{"file", text_json(result.file)},
            {"state", text_json(result.file.empty() ? "" : state)},
            {"failure_file", text_json(result.failure_file)},
            {"later_peak_bytes", peak_bytes > 0 ? nlohmann::json(peak_bytes) : nlohmann::json()}};
}

/// `verdict`: on memory that ran out; empty: it did not.
nlohmann::json document_of(const ProgramResult& result, const std::string& verdict) {
    nlohmann::json document = files_json(result);
    document.update({{"steps", result.recorded_steps},
                     {"exit_code", result.exit_code},
                     {"applied", result.applied},
                     {"sentence", result.sentence},
                     {"verdict", text_json(verdict)}});
    return document;
}

nlohmann::json document_of_ranks(const ProgramResult& result) {
    nlohmann::json rows = nlohmann::json::array();
    for (const RankResult& rank : result.ranks) {
        rows.push_back(files_json(rank));
        rows.back().update(
            {{"rank", rank.rank}, {"steps", rank.recorded_steps}, {"sentence", rank.sentence}});
    }
    return {
        {"rows", std::move(rows)}, {"exit_code", result.exit_code}, {"sentence", result.sentence}};
}

Outcome record(const RunOptions& options, Output& output) {
    auto made = make_run(options);
    if (!made) return wrong_usage(made.error());
    const auto gpus = gpus_of(options.gpus, 1);
    if (!gpus) return wrong_usage(gpus.error());
    ProgramRun& run = *made;
    run.output_is_ours = output.json();
    run.tries_imbalance = run.stops;  // else the program's own figures would hold that step
    RecordRequest request{.output = options.output,
                          .overwrites = options.overwrites,
                          .gpu = gpus->empty() ? "" : gpus->front(),
                          .link = options.link};
    const bool has_ranks = run.world_size > 0 || names_folder(request.output);
    if (request.output.empty()) {
        request.output = name_of_program(run.words) + (has_ranks ? ".ranks" : ".tscope");
    }
    if (has_ranks) {
        request.next = "info " + shell_word(request.output);
        const auto result = record_ranks(run, request);
        if (!result) return tl::unexpected(result.error());
        output.document(document_of_ranks(*result));
        return static_cast<ExitCode>(result->exit_code);
    }
    const fs::path beside = profiler::oom_trace_of(request.output);
    for (const std::string& file : {request.output, beside.string()}) {
        const auto ok = check_trace_file(file, request.overwrites);
        if (!ok) return wrong_usage(ok.error());
    }
    const auto folder = profiler::MadeFolder::make(profiler::folder_of(request.output));
    if (!folder) return failed(folder.error());
    if (const auto ok = profiler::check_can_write(request.output); !ok) return failed(ok.error());
    run.file = fs::absolute(request.output).string();
    auto recorded = run_on(request.gpu, run);
    if (!recorded) return failed(recorded.error());
    auto& [result, target] = *recorded;
    if (result.file == run.file) {
        complete_trace(target, run.file, result.later_peak, result.sentence);
    }
    for (const std::string& sentence : result.applied_sentences) print_error(sentence);
    print_error(result.sentence);
    if (result.later_peak.bytes > 0) print_error(result.later_peak.sentence);
    const ValueReads reads = target ? value_reads_of(result.file) : ValueReads();
    for (const std::string& sentence : reads.sentences) print_error(sentence);
    const bool is_beside = !result.failure_file.empty() && result.failure_file != result.file;
    std::error_code error;
    if (result.file == run.file && !is_beside) fs::remove(beside, error);  // of the run before
    const std::string verdict = verdict_on(result.failure_file);
    if (!verdict.empty()) {
        print_verdict(verdict, is_beside ? beside : fs::path(request.output));
    } else if (!result.file.empty()) {
        const bool is_whole = result.file == run.file;  // else the .partial of a killed program
        // Of an error before the first step's end memory explains nothing.
        const bool explains = !is_whole || result.recorded_steps > 0 || result.exit_code == 0;
        const char* const next = explains ? "explain " : "info ";
        print_error(next_line(next + shell_word(is_whole ? request.output : result.file)));
    }
    nlohmann::json document = document_of(result, verdict);
    document["value_reads"] = value_reads_json(reads.lines);
    output.document(document);
    return static_cast<ExitCode>(result.exit_code);
}

// ---- the largest batch --------------------------------------------------------------------------

/// "BATCH", also of "{BATCH}".
std::string name_of_placeholder(std::string_view text) {
    const bool has_braces = text.size() > 2 && text.starts_with('{') && text.ends_with('}');
    return std::string(has_braces ? text.substr(1, text.size() - 2) : text);
}

/// All combinations of GPUs and values. "512" after "SEQ=128" is another value of SEQ.
Result<std::vector<ProgramCase>> cases_of(const ProgramRun& run,
                                          const std::vector<std::string>& gpus,
                                          const std::vector<std::string>& words,
                                          const std::string& placeholder) {
    std::vector<std::pair<std::string, std::vector<std::string>>> lists;
    for (const std::string& word : words) {
        const std::size_t equals = word.find('=');
        if (equals == word.npos && lists.empty()) continue;  // set_values takes it
        const std::string name =
            name_of_placeholder(word.substr(0, equals == word.npos ? 0 : equals));
        if (equals != word.npos) lists.push_back({name, {}});
        if (lists.empty() || lists.back().first.empty()) {
            return models::fail("--values {}: write NAME=VALUE,VALUE.", word);
        }
        if (name == placeholder) {
            return models::fail(
                "--values {}: {{{}}} is the batch size that --max looks for; give other "
                "placeholders their values.",
                word, name);
        }
        append_once(lists.back().second, word.substr(equals == word.npos ? 0 : equals + 1));
    }
    std::vector<ProgramCase> cases;
    for (const std::string& gpu : gpus) cases.push_back({.gpu = gpu, .values = {}, .run = run});
    for (const auto& [name, values] : lists) {
        std::vector<ProgramCase> longer;
        for (const ProgramCase& one : cases) {
            for (const std::string& value : values) {
                longer.push_back(one);
                longer.back().values.emplace_back(name, value);
                if (fill_in(longer.back().run.words, name, value)) continue;
                return models::fail(
                    "--values {}=...: no argument of the program holds {{{}}}; write it where the "
                    "value goes.",
                    name, name);
            }
        }
        cases = std::move(longer);
    }
    return cases;
}

/// The largest batch of a program on each of the GPUs with each of the values, as a table.
Outcome find_max(const RunOptions& options, Output& output) {
    auto run = make_run(options);
    if (!run) return wrong_usage(run.error());
    run->with_stacks = false;
    const auto gpus = gpus_of(options.gpus, SIZE_MAX);
    if (!gpus) return wrong_usage(gpus.error());
    if (!options.output.empty()) {
        auto ok = check_new_file(options.output, options.overwrites);
        if (ok) ok = check_ending(options.output, "--max");
        if (!ok) return wrong_usage(ok.error());
    }
    const std::string placeholder = name_of_placeholder(options.placeholder);
    const auto cases = cases_of(*run, *gpus, options.values, placeholder);
    if (!cases) return wrong_usage(cases.error());
    std::vector<std::string> words = cases->front().run.words;
    if (!fill_in(words, placeholder, "1")) {
        return wrong_usage({fmt::format(
            "--max {}: no argument of the program holds {{{}}}; write it where the batch size "
            "goes, as in --batch {{{}}}.",
            placeholder, placeholder, placeholder)});
    }
    if (const auto ok = check_result_file(options.output); !ok) return tl::unexpected(ok.error());
    Progress progress;
    const auto after_batch = [&](const ProgramCase& of, const BatchRun& one) {
        progress.update(-1, about_try(of, one));
    };
    const auto rows = find_largest_batches(placeholder, *cases, after_batch);
    if (!rows) return failed(rows.error());
    for (const LargestBatch& row : *rows) {
        if (!row.error.empty()) return failed({row.error});
    }
    return emit(output, program_report(*rows), options.output);
}

/// Where the program runs, and with what in it.
void add_program_options(Command& command, RunOptions& options) {
    command.add({"--gpu", "run on this simulated GPU, such as h100-sxm; no GPU is needed", "ID"},
                &options.gpus);
    command.add(
        {"--apply",
         "put this technique into the program's models: a preset or switches, such as tempo",
         "RECIPE"},
        &options.run.recipe);
    command.add({.names = "--layers",
                 .help = "with --apply checkpoint: module classes to checkpoint, such as Block",
                 .value_name = "LIST",
                 .needs = "--apply"},
                &options.layers);
}

/// What is recorded, and into which file.
void add_recording_options(Command& command, RunOptions& options) {
    command.add({"--steps", "how many steps to record", "N"}, &options.run.steps, kRunRecord);
    command.add({"--skip", "how many steps come before them; the first one is recorded, too", "N"},
                &options.run.skip, kRunRecord);
    command.add(
        {"--stacks", "record the lines of Python that led to each allocation, as without it"},
        &options.asks_for_stacks, kRunRecord);
    command.add({"--no-stacks", "do not record these lines, which take a few percent of a step"},
                &options.without_stacks, kRunRecord);
    command.add({"--cpp-stacks", "record the C++ functions below these lines, too"},
                &options.run.with_cpp_stacks, kRunRecord);
    command.add({"--stop", "end the program after the recorded steps"}, &options.run.stops,
                kRunRecord);
    command.add(
        {"-o,--output",
         "trace to write (without it NAME.tscope of the program's NAME.py), or a folder for "
         "a trace of each rank",
         "FILE.tscope"},
        &options.output);
}

/// How many ranks there are, and which of them run.
void add_rank_options(Command& command, RunOptions& options) {
    command.add({.names = "--world-size",
                 .help = "run as if there were so many ranks, each with such a GPU",
                 .value_name = "N",
                 .needs = "--gpu"},
                &options.run.world_size);
    command.add({.names = "--ranks",
                 .help = "with --world-size: which of them run; representative (without it), all, "
                         "or a list",
                 .value_name = "RANKS"},
                &options.ranks);
    command.add({.names = "--link",
                 .help = "bandwidth between the GPUs of a node per second, such as 44GB",
                 .value_name = "SIZE",
                 .needs = "--world-size"},
                &options.link, kRunRecord);
}

/// The largest batch, and what a simulated GPU tells the program.
void add_search_options(Command& command, RunOptions& options) {
    command.add({"--overwrite", "replace a trace that is there already"}, &options.overwrites);
    command.add({.names = "--max",
                 .help = "find the largest batch: {NAME} in the arguments is the batch size",
                 .value_name = "NAME",
                 .needs = "--gpu"},
                &options.placeholder, kRunMax);
    command.add({.names = "--values",
                 .help = "what the program reads from a simulated GPU: computed (without it, where "
                         "that can be) or zeros; with --max: other placeholders and the values to "
                         "try, as SEQ=128,512",
                 .value_name = "VALUES",
                 .needs = "--gpu"},
                &options.values);
    command.add({.names = "--routing",
                 .help = "how many tokens each expert gets on a simulated GPU: balanced (without "
                         "it), worst:1.5, zipf:1.2, seed:7 or zeros",
                 .value_name = "ROUTING",
                 .needs = "--gpu"},
                &options.run.routing);
}

}  // namespace

void add_run_command(CommandLine& line) {
    Command& command = line.add_command(
        "run", "Run your PyTorch program, and record the memory of its training steps");
    auto options = std::make_shared<RunOptions>();
    add_program_options(command, *options);
    add_recording_options(command, *options);
    add_rank_options(command, *options);
    add_search_options(command, *options);
    command.add_program(&options->run.words);
    command.footer(
        "Write your usual command after --. Its output and its exit code do not change. The last\n"
        "lines on standard error say where the trace is, and which command shows it.\n\n"
        "Examples:\n"
        "  temposcope run -- python train.py --epochs 1\n"
        "  temposcope run --gpu a100-40gb -- python train.py\n"
        "  temposcope run --apply checkpoint -o less.tscope -- python train.py --epochs 1\n"
        "  temposcope run --gpu h100-sxm --stop -o h100.tscope -- python -m trainer\n"
        "  temposcope run --gpu h100-sxm --world-size 64 -- torchrun train.py\n"
        "  temposcope run --gpu a100-40gb,h100-sxm --max BATCH --values SEQ=128,512 -- \\\n"
        "      python train.py --batch {BATCH} --seq {SEQ}\n");
    const auto refuse =
        sentence("{} says how a trace is recorded, and --max writes none: leave one out.");
    const auto run = [options](Output& output) { return record(*options, output); };
    const auto max = [options](Output& output) { return find_max(*options, output); };
    command.on_run({{.bit = kRunMax, .chosen_by = "--max", .refuse = refuse, .run = max},
                    {.bit = kRunRecord, .run = run}});
}

}  // namespace app
