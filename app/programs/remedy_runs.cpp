#include "app/programs/remedy_runs.h"

#include "app/user/settings.h"
#include "models/config/recipe.h"
#include "profiler/analysis/step/expert_routing.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/trace/at_once.h"
#include "profiler/trace/file/temporary_paths.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace app {
namespace {

namespace fs = std::filesystem;
using models::fail;
using models::Result;
using namespace profiler;

constexpr std::string_view kPath = "PATH=";            // of the environment
constexpr std::string_view kOfRun = "TEMPOSCOPE_RUN";  // app/python/temposcope/_launch.py

/// Stands in a recorded command for what may be a secret.
constexpr std::string_view kLeftOut = "…";

std::vector<std::string> words_of(const Trace& trace) {
    const auto json = nlohmann::json::parse(trace.text(trace.run().command), nullptr, false);
    std::vector<std::string> words;
    if (!json.is_array()) return words;
    for (const nlohmann::json& word : json) {
        if (!word.is_string()) return {};
        words.push_back(word.get<std::string>());
    }
    return words;
}

std::vector<std::string> variables_of(const Trace& trace) {
    const auto json = nlohmann::json::parse(trace.text(trace.run().environment), nullptr, false);
    std::vector<std::string> variables;
    if (!json.is_object()) return variables;
    for (const auto& [name, value] : json.items()) {
        // A virtual GPU has its own number, whichever the recorded one had.
        const bool is_own = name == "CUDA_VISIBLE_DEVICES" || name == kOfRun;
        if (!value.is_string() || is_own) continue;
        variables.push_back(name + "=" + value.get<std::string>());
    }
    return variables;
}

/// What `temposcope run` was told besides. An empty object: the trace is of no such run.
nlohmann::json options_of(const Trace& trace) {
    const auto variables =
        nlohmann::json::parse(trace.text(trace.run().environment), nullptr, false);
    const bool has_text =
        variables.is_object() && variables.contains(kOfRun) && variables[kOfRun].is_string();
    auto told =
        nlohmann::json::parse(has_text ? variables[kOfRun].get<std::string>() : "", nullptr, false);
    return told.is_object() ? told : nlohmann::json::object();
}

void restore_options(const Trace& trace, ProgramRun& run) {
    const auto told = options_of(trace);
    if (told.empty()) return;
    try {
        run.skip = std::max<int64_t>(told.at("skip").get<int64_t>(), 0);
        run.steps = std::max<int64_t>(told.at("steps").get<int64_t>(), 1);
        run.layers = told.at("layers").get<std::vector<std::string>>();
        run.reads_zeros = told.at("values") == "zeros";
        run.routing = told.at("routing").get<std::string>();
        if (told.at("apply").is_string()) run.recipe = told["apply"].get<std::string>();
    } catch (const nlohmann::json::exception&) {
        run.skip = ProgramRun().skip;  // the file was edited
        run.steps = ProgramRun().steps;
    }
}

/// posix_spawnp searches this shell's PATH, which may have another python3: finds the program in
/// the recorded one.
void find_in_recorded_path(ProgramRun& run) {
    const auto path = std::ranges::find_if(
        run.variables, [&](const std::string& one) { return one.starts_with(kPath); });
    std::string& program = run.words.front();
    if (path == run.variables.end() || program.find('/') != std::string::npos) return;
    std::istringstream folders(path->substr(kPath.size()));
    for (std::string folder; std::getline(folders, folder, ':');) {
        const fs::path file = fs::path(run.working_folder) / folder / program;
        std::error_code error;
        if (!fs::is_regular_file(file, error) || access(file.c_str(), X_OK) != 0) continue;
        program = file.string();
        return;
    }
}

Result<std::string> gpu_of(const Trace& trace, const ExplainTarget& target) {
    if (!target.gpu.empty()) return target.gpu;
    const auto data = load_planner_data(settings_folder());
    if (!data) return tl::unexpected(data.error());
    std::string name(trace.text(trace.run().device_name));
    const auto told = options_of(trace);  // a snapshot names no GPU
    if (told.contains("gpu") && told["gpu"].is_string()) name = told["gpu"];
    const Id<Device> device = profiled_device(trace);
    const int64_t bytes =
        device.valid() ? trace.devices.get<&Device::total_bytes>(device) : int64_t{-1};
    const Gpu* const gpu = find_gpu_by_name(data->gpus, name, bytes);
    if (gpu == nullptr) {
        return fail("No GPU of the catalogue is a {}: name one with --to-fit gpu=ID.", name);
    }
    return gpu->id;
}

/// The words of the file that Python runs: "train.py" of `python -u train.py`.
std::string* script_in(ProgramRun& run) {
    const auto script = std::ranges::find_if(
        run.words, [](const std::string& word) { return word.ends_with(".py"); });
    return script == run.words.end() ? nullptr : &*script;
}

std::string indentation_of(const std::string& line) {
    return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

/// Writes each line of `text` with an indentation.
void write_indented(std::ofstream& file, const std::string& indentation, std::string_view text) {
    for (const std::string_view line : split_lines(text)) file << indentation << line << '\n';
}

/// Copies a file with the text of each change after its line, with that line's indentation.
Result<void> copy_with(const fs::path& from, const fs::path& to,
                       const std::vector<RemedyChange>& changes) {
    std::ifstream file(from);
    if (!file.is_open()) return fail("{} cannot be read.", from.string());
    std::ofstream copy(to);
    int64_t number = 0;
    for (std::string line; std::getline(file, line);) {
        copy << line << '\n';
        ++number;
        for (const RemedyChange& change : changes) {
            if (change.line == number) write_indented(copy, indentation_of(line), change.text);
        }
    }
    copy.close();
    const int64_t last = std::ranges::max(changes, {}, &RemedyChange::line).line;
    if (number >= last && copy.good()) return {};
    return fail("{} has changed since it was recorded: it has no line {}.", from.string(), last);
}

/// Whether a trace names this file: by its whole path, or by the end of it. A file that is not on
/// this machine is known by its name alone.
bool names_file(const fs::path& named, const fs::path& file) {
    std::error_code error;
    if (named.is_absolute() && fs::exists(named, error)) return fs::equivalent(named, file, error);
    if (named.is_absolute()) return named.filename() == file.filename();
    const std::string whole = fs::absolute(file, error).lexically_normal().generic_string();
    return whole.ends_with("/" + named.lexically_normal().generic_string());
}

/// Puts a changed copy of the program's file in its place. Modules beside it are still found.
Result<void> edit(ProgramRun& run, const std::vector<RemedyChange>& changes,
                  const fs::path& folder) {
    std::string* const script = script_in(run);
    const fs::path file = script == nullptr ? fs::path() : fs::path(run.working_folder) / *script;
    for (const RemedyChange& change : changes) {
        if (script == nullptr || !names_file(change.file, file)) {
            return fail("only the program's own file is changed for a run: change {} by hand.",
                        change.file);
        }
    }
    const fs::path copy = folder / file.filename();
    if (auto ok = copy_with(file, copy, changes); !ok) return ok;
    *script = copy.string();
    const char* const path = "PYTHONPATH=";
    std::string own = file.parent_path().string();
    std::erase_if(run.variables, [&](const std::string& variable) {
        if (!variable.starts_with(path)) return false;
        own += ":" + variable.substr(std::string_view(path).size());
        return true;
    });
    run.variables.push_back(path + own);
    return {};
}

/// A program that ran with a recipe keeps it.
Result<void> add_recipe(const std::string& added, std::string& recipe) {
    if (recipe.empty()) {
        recipe = added;
        return {};
    }
    auto joined = models::join_program_recipes(recipe, added);
    if (!joined)
        return fail("the program was recorded with {}: {}", recipe, joined.error().message);
    recipe = std::move(*joined);
    return {};
}

/// Changes the run as the remedy says. Errors: a run cannot show it.
Result<void> apply(const Remedy& remedy, Rerun& rerun, const fs::path& folder) {
    std::vector<RemedyChange> edits;  // all go into one copy of the file
    for (const RemedyChange& change : remedy.changes()) {
        switch (change.kind) {
            case RemedyChange::Kind::kSetting:
                rerun.run.variables.push_back(change.text);  // the last one of a name counts
                break;
            case RemedyChange::Kind::kApply:
                if (auto ok = add_recipe(change.name, rerun.run.recipe); !ok) return ok;
                break;
            case RemedyChange::Kind::kCard:
                rerun.gpu = change.name;
                break;
            case RemedyChange::Kind::kEdit:
                edits.push_back(change);
                break;
            case RemedyChange::Kind::kBatch:
            case RemedyChange::Kind::kSeveral:
                return fail("it is a change that only you can make.");
        }
    }
    return edits.empty() ? Result<void>() : edit(rerun.run, edits, folder);
}

/// ", where 2.93 GiB were asked for and 1.72 GiB were free"; empty: not known.
std::string request_that_failed(const BatchRun& run) {
    if (run.requested_bytes < 0 || run.free_bytes < 0) return {};
    return fmt::format(", where {} were asked for and {} were free",
                       format_bytes(run.requested_bytes), format_bytes(run.free_bytes));
}

/// The program breaks with the remedy.
void note_break(Remedy& remedy, const models::Error& error) {
    remedy.problem = error.message;
    remedy.estimated.fits = remedy.estimated.is_sure = false;
}

void note_outcome(Remedy& remedy, const BatchRun& run) {
    if (!run.nothing_replaced.empty()) {
        remedy.problem = run.nothing_replaced;
        remedy.estimated.is_sure = false;
    } else if (!run.fits) {  // what it would need, the run does not say
        remedy.verified = StepOutcome();
        remedy.sentence =
            fmt::format("It is not enough: memory runs out again{}.", request_that_failed(run));
    } else {
        remedy.verified = {.peak_allocated_bytes = run.peak_allocated_bytes,
                           .peak_reserved_bytes = run.peak_reserved_bytes,
                           .step_time_ns = run.step_time_ns,
                           .fits = true};
    }
}

/// Puts the remedy into the run, with files in `folder`. False: it cannot be, and has a `problem`.
bool can_apply(Remedy& remedy, Rerun& rerun, const TemporaryFolder& folder) {
    const auto applied = folder.exists() ? apply(remedy, rerun, folder / "")
                                         : Result<void>(fail(kNoTemporaryFolder));
    if (!applied) remedy.problem = applied.error().message;
    return applied.has_value();
}

void verify(Remedy& remedy, Rerun rerun) {
    const TemporaryFolder folder;
    if (!can_apply(remedy, rerun, folder)) return;
    const auto tried = try_program(std::move(rerun.run), rerun.gpu);
    if (!tried) return note_break(remedy, tried.error());
    note_outcome(remedy, *tried);
}

}  // namespace

std::optional<Trace> record_remedy(Remedy& remedy, Rerun rerun) {
    const TemporaryFolder folder;
    if (!can_apply(remedy, rerun, folder)) return std::nullopt;
    auto tried = record_try(std::move(rerun.run), rerun.gpu);
    if (!tried) {
        note_break(remedy, tried.error());
        return std::nullopt;
    }
    note_outcome(remedy, tried->outcome);
    if (!remedy.problem.empty()) return std::nullopt;
    return std::move(tried->trace);
}

Result<ProgramRun> recorded_run(const Trace& trace, const std::vector<std::string>& words) {
    ProgramRun run;
    run.words = words.empty() ? words_of(trace) : words;
    if (run.words.empty()) return fail("The trace does not say how its program was started.");
    const auto is_left_out = [](const std::string& word) {
        return word.find(kLeftOut) != std::string::npos;
    };
    if (std::ranges::any_of(run.words, is_left_out)) {
        return fail("The trace leaves out an argument of its command that may be a secret.");
    }
    run.variables = variables_of(trace);
    if (words.empty()) {
        run.working_folder = trace.text(trace.run().folder);
        find_in_recorded_path(run);
    } else {  // they name a program of this shell's PATH
        std::erase_if(run.variables, [](const std::string& one) { return one.starts_with(kPath); });
    }
    std::error_code error;
    if (!run.working_folder.empty() && !fs::is_directory(run.working_folder, error)) {
        return fail("The program was started in {}, which is gone.", run.working_folder);
    }
    run.recipe = trace.text(trace.run().recipe);  // which a snapshot does not tell
    restore_options(trace, run);
    if (const auto experts = profiler::expert_routing_of(trace)) run.routing = experts->routing;
    return run;
}

Result<Rerun> rerun_of(const Trace& trace, const std::vector<std::string>& words,
                       const ExplainTarget& target) {
    auto run = recorded_run(trace, words);
    if (!run) {
        return fail(
            "{} Give the command after --, as in temposcope explain FILE --verify 3 -- python "
            "train.py.",
            run.error().message);
    }
    auto gpu = gpu_of(trace, target);
    if (!gpu) return tl::unexpected(gpu.error());
    return Rerun{.run = std::move(*run), .gpu = std::move(*gpu)};
}

void find_whole_step(Explanation& explanation, const Rerun& rerun, const ExplainRequest& request) {
    const auto whole = record_without_limit(rerun.run, rerun.gpu);
    const auto added = whole ? add_whole_step(StepIndex(*whole), request, explanation)
                             : Result<void>(tl::unexpected(whole.error()));
    if (added && explanation.unknown_rest.empty()) return;
    const std::string why = added ? "it takes no whole step." : added.error().message;
    explanation.notes.push_back(
        fmt::format("A run with enough memory does not tell the rest of the step: {}", why));
}

void verify_remedies(Explanation& explanation, const Rerun& rerun, std::size_t count,
                     const std::function<void(const RemedyTry&)>& tried) {
    std::vector<Remedy*> chosen;
    for (Remedy& remedy : explanation.remedies) {
        if (chosen.size() < count && remedy.can_be_run()) chosen.push_back(&remedy);
    }
    std::mutex mutex;
    for_each_on_all_cores(chosen.size(), [&](std::size_t i) {
        if (were_asked_to_end()) return;
        {
            const std::lock_guard lock(mutex);
            tried({.remedy = *chosen[i], .number = i + 1, .count = chosen.size()});
        }
        verify(*chosen[i], rerun);
    });
    order_remedies(explanation);
}

}  // namespace app
