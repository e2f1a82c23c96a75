#include "app/commands/worker/program_result.h"

#include "profiler/trace/text.h"
#include "profiler/trace/trace_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <span>
#include <string_view>
#include <system_error>

namespace app {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNoRank = -1;

/// What the processes of a run told.
struct RunStatus {
    /// The last entry of each recorded process, by its rank, and "exit_code" where a launcher knows
    /// it. A run into one file has one entry, under kNoRank. In a run of ranks, kNoRank holds the
    /// entry of a process that imported torch, if any.
    std::map<int64_t, nlohmann::json> last;
    std::vector<int64_t> failed;  // ranks, in the order of their ends
};

RunStatus read_status(const fs::path& file) {
    RunStatus status;
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
        auto entry = nlohmann::json::parse(line, nullptr, false);
        if (!entry.is_object()) continue;
        const int64_t rank = entry.value("rank", kNoRank);
        nlohmann::json& of_rank = status.last[rank];
        const bool has_failed = entry.contains("exit_code") || entry.contains("exception");
        const std::string state = entry.value("state", "");
        if (!has_failed && (state == "started" || state == "complete")) {
            std::erase(status.failed, rank);  // its launcher started it again
        }
        const bool is_new = std::ranges::find(status.failed, rank) == status.failed.end();
        if (has_failed && rank != kNoRank && is_new) status.failed.push_back(rank);
        const bool says_less = of_rank.is_object() && state == "torch";
        if (!of_rank.is_object() || entry.contains("exit_code")) {
            of_rank.update(entry);
        } else if (!says_less) {
            of_rank = std::move(entry);
        }
    }
    return status;
}

std::string plural(int64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// The program was killed, or ended without Python's own end: only what was committed is there. A
/// file from before `start` is of another run.
void describe_partial(const ProgramRun& run, fs::file_time_type start, ProgramResult& result) {
    const fs::path partial = run.file + ".partial";
    std::error_code error;
    const auto written = fs::last_write_time(partial, error);
    if (error || written < start) return;
    if (!profiler::holds_committed_rows(partial)) {
        profiler::remove_partial(partial);
        return;
    }
    result.file = partial.string();
    result.sentence = fmt::format(
        "The program was ended in the middle of its recording: the steps before are in {}.",
        result.file);
}

std::string with_code(int exit_code) {
    return exit_code == 0 ? "" : fmt::format(" with exit code {}", exit_code);
}

std::string about_no_step(const ProgramRun& run, const nlohmann::json& status, int exit_code) {
    if (!status.is_object()) {
        return fmt::format(
            "Nothing was recorded: the program ended{}, and the recorder saw no Python process "
            "import torch (python -I, -E and -S keep the recorder out).",
            with_code(exit_code));
    }
    const std::string state = status.value("state", "");
    if (state == "failed") {
        const std::string sentence = status.value("sentence", "");
        return sentence.ends_with('.') ? sentence : sentence + ".";
    }
    if (state == "ended") {
        const std::string exception = status.value("exception", "");
        const std::string with = exception.empty() ? "" : " with " + exception;
        if (run.skip == 0 || status.value("seen_steps", int64_t{0}) == 0) {
            return fmt::format("Nothing was recorded: the program ended{} before its first step.",
                               with);
        }
        return fmt::format(
            "Nothing was recorded: the program ended{} after {}, and {} left out at the start; "
            "record from the start with --skip 0.",
            with, plural(status.value("seen_steps", int64_t{0}), "step"),
            run.skip == 1 ? "1 is" : fmt::format("{} are", run.skip));
    }
    constexpr int kKilled = 128;
    if (exit_code > kKilled) {
        return fmt::format(
            "Nothing was recorded: the program was ended{} before its recording began.",
            with_code(exit_code));
    }
    return fmt::format(
        "Nothing was recorded: the program ended{} before a model ran a training step. A program "
        "without an optimizer of torch marks its steps with temposcope.step().",
        with_code(exit_code));
}

/// What the recipe did, where the program came so far that it says so.
void describe_applied(const ProgramRun& run, const nlohmann::json& status, ProgramResult& result) {
    if (run.recipe.empty() || !status.is_object() || !status.contains("applied")) return;
    result.applied = status["applied"];
    for (const nlohmann::json& model : result.applied) {
        result.applied_sentences.push_back(model.value("sentence", ""));
    }
    if (!result.applied_sentences.empty()) return;
    result.applied_sentences.push_back(fmt::format(
        "{} was put into no model, because none ran in training mode with gradients.", run.recipe));
}

ProgramResult describe_end(const ProgramRun& run, const nlohmann::json& status,
                           const ProgramEnd& end) {
    ProgramResult result{.exit_code = end.exit_code, .resident_bytes = end.resident_bytes};
    const std::string state = status.is_object() ? status.value("state", "") : "";
    if (status.is_object()) result.exception = status.value("exception", "");
    describe_applied(run, status, result);
    if (state == "complete" || state == "incomplete") {
        result.recorded_steps = status.value("steps", int64_t{0});
        result.is_complete = state == "complete";
        result.file = run.file;
        const std::string& with = result.exception;
        result.sentence =
            result.is_complete
                ? fmt::format("Recorded {} in {}.", plural(result.recorded_steps, "step"), run.file)
                : fmt::format(
                      "Recorded {} of {} steps in {}, which says that it is incomplete: the "
                      "program ended{}.",
                      result.recorded_steps, run.steps, run.file,
                      with.empty() ? "" : " with " + with);
        return result;
    }
    describe_partial(run, end.start, result);
    if (result.sentence.empty()) result.sentence = about_no_step(run, status, end.exit_code);
    return result;
}

/// "Recorded 2 ranks in FOLDER, of 64; 1 of them is incomplete."
std::string about_ranks(const ProgramRun& run, const std::vector<RankResult>& ranks) {
    const auto with_file =
        std::ranges::count_if(ranks, [](const RankResult& rank) { return !rank.file.empty(); });
    if (with_file == 0) return "Nothing was recorded.";
    const auto complete = std::ranges::count_if(ranks, &RankResult::is_complete);
    std::string text = fmt::format("Recorded {} in {}", plural(with_file, "rank"), run.folder);
    if (run.world_size > 0) text += fmt::format(", of {}", run.world_size);
    const auto incomplete = with_file - complete;
    if (incomplete > 0) {
        text +=
            fmt::format("; {} of them {} incomplete", incomplete, incomplete == 1 ? "is" : "are");
    }
    return text + ".";
}

/// " with ValueError: it has no data", or ": " and a sentence of our own.
std::string reason_of_failure(const nlohmann::json& end) {
    constexpr std::string_view kOurs = "temposcope: ";
    const std::string exception = end.value("exception", "");
    const std::string message = end.value("message", "");
    if (exception.empty()) return with_code(end.value("exit_code", 1));
    if (message.starts_with(kOurs)) return ": " + message.substr(kOurs.size());
    return fmt::format(" with {}{}{}", exception, message.empty() ? "" : ": ", message);
}

/// Whether the rank never told how it ended. A process that is killed cannot.
bool is_silent(const nlohmann::json& last) {
    const std::string state = last.value("state", "");
    return (state == "torch" || state == "started") && !last.contains("exit_code");
}

std::vector<int64_t> silent_ranks(const RunStatus& status) {
    std::vector<int64_t> silent;
    for (const auto& [rank, last] : status.last) {
        if (rank != kNoRank && is_silent(last)) silent.push_back(rank);
    }
    return silent;
}

/// "Rank 3", "Ranks 0, 1".
std::string names_of(std::span<const int64_t> ranks) {
    return fmt::format("{} {}", ranks.size() == 1 ? "Rank" : "Ranks", fmt::join(ranks, ", "));
}

/// " Rank 3 failed first with exit code 137. Ranks 0, 1 failed after it."; empty: none failed.
std::string about_failures(const RunStatus& status, const ProgramEnd& end) {
    if (status.failed.empty() || end.exit_code == 0 || end.was_asked_to_end) return {};
    const int64_t first = status.failed.front();
    const auto others = std::span(status.failed).subspan(1);
    std::string text = fmt::format(" Rank {} failed{}{}", first, others.empty() ? "" : " first",
                                   reason_of_failure(status.last.at(first)));
    if (std::string_view(".!?").find(text.back()) == std::string_view::npos) text += '.';
    if (!others.empty()) text += fmt::format(" {} failed after it.", names_of(others));
    if (const auto silent = silent_ranks(status); !silent.empty()) {
        text += fmt::format(" {} ended without a word, maybe before it.", names_of(silent));
    }
    return text;
}

/// OutOfMemoryError if any failed rank had it, else the exception of the rank that failed first.
std::string exception_of_ranks(const RunStatus& status) {
    const auto exception_of = [&](int64_t rank) {
        return status.last.at(rank).value("exception", "");
    };
    constexpr std::string_view kOutOfMemory = "OutOfMemoryError";
    const bool ran_out =
        std::ranges::find(status.failed, kOutOfMemory, exception_of) != status.failed.end();
    if (ran_out) return std::string(kOutOfMemory);
    return status.failed.empty() ? "" : exception_of(status.failed.front());
}

/// Why no rank of a run took a step.
std::string about_no_rank(const ProgramRun& run, const RunStatus& status, const ProgramEnd& end) {
    const auto found = status.last.find(kNoRank);
    const nlohmann::json entry = found != status.last.end() ? found->second : nullptr;
    const std::string state = entry.is_object() ? entry.value("state", "") : "";
    if (run.world_size > 0 && state == "launched") {
        return "Nothing was recorded: the launcher started the ranks, and none of them imported "
               "torch.";
    }
    if (run.world_size > 0 && state == "torch") {
        return fmt::format(
            "Nothing was recorded: the program ended{}, and no launcher of torch started ranks. "
            "With --world-size put torchrun in front of the program.",
            with_code(end.exit_code));
    }
    return about_no_step(run, entry, end.exit_code);
}

/// Each rank as if it had run alone into its file, and one sentence on all.
ProgramResult describe_ranks(const ProgramRun& run, const RunStatus& status,
                             const ProgramEnd& end) {
    ProgramResult result{.exit_code = end.exit_code, .resident_bytes = end.resident_bytes};
    for (const auto& [rank, last] : status.last) {
        if (rank == kNoRank) continue;
        ProgramEnd own_end = end;
        // The launcher's exit code says nothing about this rank.
        own_end.exit_code = last.value("exit_code", 0);
        ProgramRun alone = run;
        alone.file = (fs::path(run.folder) / fmt::format("rank-{:04}.tscope", rank)).string();
        ProgramResult of_rank = describe_end(alone, last, own_end);
        if (end.exit_code != 0 && of_rank.file.empty() && is_silent(last)) {
            of_rank.sentence =
                "Nothing was recorded: it was killed, or ended, before a step was recorded.";
        }
        result.ranks.push_back({.rank = rank,
                                .recorded_steps = of_rank.recorded_steps,
                                .is_complete = of_rank.is_complete,
                                .file = of_rank.file,
                                .sentence = of_rank.sentence});
        const bool is_first = result.ranks.size() == 1;
        result.recorded_steps = is_first ? of_rank.recorded_steps
                                         : std::min(result.recorded_steps, of_rank.recorded_steps);
    }
    result.exception = exception_of_ranks(status);
    result.sentence = result.ranks.empty()
                          ? about_no_rank(run, status, end)
                          : about_ranks(run, result.ranks) + about_failures(status, end);
    return result;
}

}  // namespace

ProgramResult describe_program(const ProgramRun& run, const fs::path& status,
                               const ProgramEnd& end) {
    RunStatus told = read_status(status);
    ProgramResult result = run.folder.empty() ? describe_end(run, told.last[kNoRank], end)
                                              : describe_ranks(run, told, end);
    result.was_asked_to_end = end.was_asked_to_end;
    return result;
}

}  // namespace app
