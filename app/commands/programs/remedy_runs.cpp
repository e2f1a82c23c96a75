#include "app/commands/programs/remedy_runs.h"

#include "app/commands/programs/batch_search.h"
#include "app/user/settings.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/trace/file/temporary_paths.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace app {
namespace {

namespace fs = std::filesystem;
using models::fail;
using models::Result;
using namespace profiler;

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
        if (!value.is_string() || name == "CUDA_VISIBLE_DEVICES") continue;
        variables.push_back(name + "=" + value.get<std::string>());
    }
    return variables;
}

Result<std::string> gpu_of(const Trace& trace, const ExplainTarget& target) {
    if (!target.gpu.empty()) return target.gpu;
    const auto data = load_planner_data(settings_folder());
    if (!data) return tl::unexpected(data.error());
    const std::string_view name = trace.text(trace.run().device_name);
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

/// Copies a file with `text` after one of its lines, with that line's indentation.
Result<void> copy_with(const fs::path& from, const fs::path& to, const RemedyChange& change) {
    std::ifstream file(from);
    std::ofstream copy(to);
    int64_t number = 0;
    for (std::string line; std::getline(file, line);) {
        copy << line << '\n';
        if (++number != change.line) continue;
        const std::string indentation = indentation_of(line);
        for (std::size_t begin = 0; begin < change.text.size();) {
            const std::size_t end = std::min(change.text.find('\n', begin), change.text.size());
            copy << indentation << std::string_view(change.text).substr(begin, end - begin) << '\n';
            begin = end + 1;
        }
    }
    copy.close();
    if (number >= change.line && copy.good()) return {};
    return fail("{} has changed since it was recorded: it has no line {}.", from.string(),
                change.line);
}

/// Puts a changed copy of the program's file in its place. Modules beside it are still found.
Result<void> edit(ProgramRun& run, const RemedyChange& change, const fs::path& folder) {
    std::string* const script = script_in(run);
    const fs::path file = script == nullptr ? fs::path() : fs::path(run.working_folder) / *script;
    if (script == nullptr || file.filename() != fs::path(change.file).filename()) {
        return fail("only the program's own file is changed for a run: change {} by hand.",
                    change.file);
    }
    const fs::path copy = folder / file.filename();
    if (auto ok = copy_with(file, copy, change); !ok) return ok;
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

/// Changes the run as the remedy says. Errors: a run cannot show it.
Result<void> apply(const Remedy& remedy, Rerun& rerun, const fs::path& folder) {
    const RemedyChange& change = remedy.change;
    switch (change.kind) {
        case RemedyChange::Kind::kSetting:
            rerun.run.variables.push_back(change.text);  // the last one of a name counts
            return {};
        case RemedyChange::Kind::kApply:
            rerun.run.recipe = change.name;
            return {};
        case RemedyChange::Kind::kCard:
            rerun.gpu = change.name;
            return {};
        case RemedyChange::Kind::kEdit:
            if (change.line > 0) return edit(rerun.run, change, folder);
            return fail("it is a change that only you can place.");
        case RemedyChange::Kind::kBatch:
            return fail("the batch size stands in the program: change it there.");
    }
    return {};
}

/// Whether a run can show what the remedy does.
bool can_run(const Remedy& remedy) {
    const RemedyChange& change = remedy.change;
    return change.kind != RemedyChange::Kind::kBatch &&
           (change.kind != RemedyChange::Kind::kEdit || change.line > 0);
}

void verify(Remedy& remedy, Rerun rerun) {
    const TemporaryFolder folder;
    Result<BatchRun> tried = fail(kNoTemporaryFolder);
    if (folder.exists()) {
        const auto applied = apply(remedy, rerun, folder / "");
        tried = applied ? try_program(std::move(rerun.run), rerun.gpu)
                        : tl::unexpected(applied.error());
    }
    if (!tried) {
        remedy.problem = tried.error().message;
        return;
    }
    remedy.verified = StepOutcome{.peak_allocated_bytes = tried->peak_allocated_bytes,
                                  .peak_reserved_bytes = tried->peak_reserved_bytes,
                                  .step_time_ns = tried->step_time_ns,
                                  .fits = tried->fits};
}

}  // namespace

Result<Rerun> rerun_of(const Trace& trace, const std::vector<std::string>& words,
                       const ExplainTarget& target) {
    Rerun rerun;
    rerun.run.words = words.empty() ? words_of(trace) : words;
    if (rerun.run.words.empty()) {
        return fail(
            "The trace does not say how its program was started: give its command after --, as in "
            "temposcope explain FILE --verify 3 -- python train.py.");
    }
    const auto is_left_out = [](const std::string& word) {
        return word.find(kLeftOut) != std::string::npos;
    };
    if (std::ranges::any_of(rerun.run.words, is_left_out)) {
        return fail(
            "The trace leaves out an argument that may be a secret: give the whole command after "
            "--.");
    }
    rerun.run.variables = variables_of(trace);
    if (words.empty()) rerun.run.working_folder = trace.text(trace.run().folder);
    std::error_code error;
    if (!rerun.run.working_folder.empty() && !fs::is_directory(rerun.run.working_folder, error)) {
        return fail("The program was started in {}, which is gone: give its command after --.",
                    rerun.run.working_folder);
    }
    auto gpu = gpu_of(trace, target);
    if (!gpu) return tl::unexpected(gpu.error());
    rerun.gpu = std::move(*gpu);
    rerun.run.recipe = trace.text(trace.run().recipe);
    return rerun;
}

void verify_remedies(Explanation& explanation, const Rerun& rerun, std::size_t count,
                     const std::function<void(const Remedy&)>& tried) {
    std::vector<Remedy*> chosen;
    for (Remedy& remedy : explanation.remedies) {
        if (chosen.size() < count && can_run(remedy)) chosen.push_back(&remedy);
    }
    std::mutex mutex;
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < chosen.size(); i = next++) {
            {
                const std::lock_guard lock(mutex);
                tried(*chosen[i]);
            }
            verify(*chosen[i], rerun);
        }
    };
    std::vector<std::future<void>> others;
    const std::size_t num_threads = std::max(1U, std::thread::hardware_concurrency());
    for (std::size_t i = 1; i < std::min(num_threads, chosen.size()); ++i) {
        others.push_back(std::async(std::launch::async, work));
    }
    work();
    for (std::future<void>& other : others) other.get();
    order_remedies(explanation);
}

}  // namespace app
