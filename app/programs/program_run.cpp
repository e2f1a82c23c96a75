#include "app/programs/program_run.h"

#include "profiler/analysis/step/peak.h"
#include "profiler/protocol/process_environment.h"
#include "profiler/trace/file/temporary_paths.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/text.h"
#include "profiler/trace/trace_notes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <span>
#include <string_view>
#include <system_error>

namespace app {
namespace {

namespace fs = std::filesystem;
using models::fail;
using models::Result;
using namespace profiler;

/// How a program ended, for its launcher.
struct ProgramEnd {
    std::filesystem::file_time_type start;  // of the program
    int exit_code = 1;                      // as a shell would give it
    int64_t resident_bytes = 0;             // the most memory that one of its processes held
    bool was_asked_to_end = false;          // by a signal, such as Ctrl-C
    bool has_timed_out = false;
};

// ---- what became of it -----------------------------------------------------------------------

constexpr int64_t kNoRank = -1;
constexpr std::string_view kOutOfMemory = "OutOfMemoryError";

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
    if (!holds_committed_rows(partial)) {
        remove_partial(partial);
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
        "--apply {} changed nothing: no model ran in training mode with gradients.", run.recipe));
}

/// What app/python/temposcope/_later_steps.py found.
LaterPeak later_peak_of(const nlohmann::json& status) {
    LaterPeak peak{.bytes = status.value("peak_bytes", int64_t{0}), .sentence = {}};
    if (peak.bytes <= 0) return {};
    const int64_t skip = status.value("peak_skip", int64_t{-1});
    const bool is_at_end = status.value("peak_is_at_end", false);
    peak.sentence = fmt::format(
        "After the recorded steps the peak rises to {}{}", format_bytes(peak.bytes),
        skip < 0
            ? "."
            : fmt::format("{}: --skip {} --steps 1 records it.",
                          is_at_end ? " after the last step" : fmt::format(" in step {}", skip + 1),
                          skip));
    return peak;
}

/// What happened after the last recorded step; empty: nothing of interest.
std::string about_later(const nlohmann::json& status, const std::string& exception) {
    const std::string end = exception.empty() ? "" : "the program ended with " + exception;
    if (status.contains("oom_file")) {
        const int64_t skip = status.value("oom_skip", int64_t{0});
        const std::string where = skip > 0 ? fmt::format(" in step {}", skip + 1) : "";
        std::string text = fmt::format(" After them memory ran out{}{}{}.", where,
                                       end.empty() ? "" : ", and ", end);
        if (skip > 0) text += fmt::format(" --skip {} --steps 1 records that step.", skip);
        return text;
    }
    if (end.empty()) return {};
    return fmt::format(" After them {}. Record up to there with more --steps.", end);
}

/// "Recorded 2 of 3 steps in train.tscope (marked incomplete): the program ended."
std::string about_incomplete(const ProgramRun& run, const nlohmann::json& status,
                             const ProgramResult& result) {
    const bool has_first_alone =
        run.skip > 0 && result.recorded_steps == 0 && status.value("seen_steps", int64_t{0}) > 0;
    return fmt::format(
        "Recorded {}{} of {} steps{} in {} (marked incomplete): the program ended{}.",
        has_first_alone ? "the first step and " : "", result.recorded_steps, run.steps,
        has_first_alone ? " after it" : "", run.file,
        result.exception.empty() ? "" : " with " + result.exception);
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
        const std::string oom_file = status.value("oom_file", "");
        const bool has_failures = status.value("failures", int64_t{0}) > 0;
        result.failure_file = !oom_file.empty() ? oom_file : has_failures ? run.file : "";
        const bool ran_out = !oom_file.empty() || result.exception == kOutOfMemory;
        if (!ran_out) result.later_peak = later_peak_of(status);
        result.sentence =
            result.is_complete
                ? fmt::format("Recorded {} in {}.{}", plural(result.recorded_steps, "step"),
                              run.file, about_later(status, result.exception))
                : about_incomplete(run, status, result);
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

/// What may help when a rank fails because another one sent it nothing; empty: that cannot be.
std::string about_messages(const ProgramRun& run, const ProgramResult& result) {
    const bool is_alone = run.card && run.world_size == 0;
    const bool has_failed = !result.exception.empty() && result.exception != kOutOfMemory;
    if (!is_alone || !has_failed) return {};
    return " What a rank receives from another process is not computed; with --world-size one "
           "process runs the ranks, and they send each other what the program sends.";
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
                "Nothing was recorded: it was killed, or ended, before a step; see its output.";
        }
        result.ranks.push_back({.rank = rank,
                                .recorded_steps = of_rank.recorded_steps,
                                .is_complete = of_rank.is_complete,
                                .file = of_rank.file,
                                .failure_file = of_rank.failure_file,
                                .sentence = of_rank.sentence,
                                .later_peak = of_rank.later_peak});
        const bool is_first = result.ranks.size() == 1;
        result.recorded_steps = is_first ? of_rank.recorded_steps
                                         : std::min(result.recorded_steps, of_rank.recorded_steps);
    }
    result.exception = exception_of_ranks(status);
    result.sentence = result.ranks.empty()
                          ? about_no_rank(run, status, end)
                          : about_ranks(run, result.ranks) + about_failures(status, end) +
                                about_messages(run, result);
    return result;
}

/// What became of the recording, from the files that are there and from what the processes told:
/// `status` holds a JSON object a line.
ProgramResult describe_program(const ProgramRun& run, const fs::path& status,
                               const ProgramEnd& end) {
    RunStatus told = read_status(status);
    ProgramResult result = run.folder.empty() ? describe_end(run, told.last[kNoRank], end)
                                              : describe_ranks(run, told, end);
    result.was_asked_to_end = end.was_asked_to_end;
    result.has_timed_out = end.has_timed_out;
    return result;
}

// ---- how it is told what to record -----------------------------------------------------------

/// Ranks know by it which others are of the same run.
std::string make_run_id() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
}

Result<std::vector<std::string>> variables_of(const ProgramRun& run, const fs::path& status) {
    const auto package = find_python_package();
    if (!package) return tl::unexpected(package.error());
    auto variables = run.card ? virtual_gpu_environment(virtual_gpu_folder(), {*run.card})
                              : Result<std::vector<std::string>>(std::vector<std::string>());
    if (!variables) return variables;
    std::error_code error;
    const nlohmann::json options{
        {"file", run.file},
        {"folder", run.folder.empty() ? nlohmann::json() : nlohmann::json(run.folder)},
        {"world_size", run.world_size == 0 ? nlohmann::json() : nlohmann::json(run.world_size)},
        {"ranks", run.ranks.empty() ? nlohmann::json("representative") : nlohmann::json(run.ranks)},
        {"status", status.string()},
        {"run_id", make_run_id()},
        {"steps", run.steps},
        {"skip", run.skip},
        {"stop", run.stops},
        {"stacks", run.with_cpp_stacks ? "all"
                   : run.with_stacks   ? "python"
                                       : ""},
        {"gpu", run.card ? nlohmann::json(run.card->name) : nlohmann::json()},
        {"apply", run.recipe.empty() ? nlohmann::json() : nlohmann::json(run.recipe)},
        {"layers", run.layers},
        {"values", run.reads_zeros ? "zeros" : "computed"},
        {"routing", run.routing},
        {"tries_imbalance", run.tries_imbalance},
        {"command", run.words},
        {"working_folder",
         run.working_folder.empty() ? fs::current_path(error).string() : run.working_folder}};
    variables->push_back("PYTHONPATH=" + before_own("PYTHONPATH", (*package / "start").string()));
    variables->push_back("TEMPOSCOPE_RUN=" + options.dump());
    variables->insert(variables->end(), run.variables.begin(), run.variables.end());
    return variables;
}

// ---- the process -----------------------------------------------------------------------------

/// The programs that run now; 0: a free place. A signal handler reads it, and can take no lock.
std::array<std::atomic<pid_t>, 64> running_programs{};

/// The last signal that came while programs ran; 0: none.
std::atomic<int> last_signal = 0;

void note(int number) { last_signal = number; }

void pass_on(int number) {
    note(number);
    for (const std::atomic<pid_t>& pid : running_programs) {
        if (pid > 0) kill(pid, number);
    }
}

bool asks_to_end(int number) {
    return number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP;
}

/// While programs run, signals are their own. The terminal sends Ctrl-C to them as well; what is
/// sent to this process alone is passed on. What was ignored before, by nohup or for a job in the
/// background, stays ignored here and there.
class SignalsAreTheirs {
public:
    SignalsAreTheirs() {
        const std::lock_guard lock(mutex);
        if (num_users++ > 0) return;
        last_signal = 0;
        sigemptyset(&handled_signals);
        for (const int number : {SIGINT, SIGQUIT}) set(number, &note);
        for (const int number : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) set(number, &pass_on);
    }
    ~SignalsAreTheirs() {
        const std::lock_guard lock(mutex);
        if (--num_users > 0) return;
        for (const auto& [number, old] : before) sigaction(number, &old, nullptr);
        before.clear();
    }
    SignalsAreTheirs(const SignalsAreTheirs&) = delete;
    SignalsAreTheirs& operator=(const SignalsAreTheirs&) = delete;

    /// The signals that are handled here: the program gets them with their usual effect.
    static sigset_t handled() {
        const std::lock_guard lock(mutex);
        return handled_signals;
    }

private:
    static void set(int number, void (*handler)(int)) {
        struct sigaction old {};
        sigaction(number, nullptr, &old);
        if (old.sa_handler == SIG_IGN) return;
        struct sigaction action {};
        action.sa_handler = handler;
        action.sa_flags = SA_RESTART;
        sigaction(number, &action, nullptr);
        before.emplace_back(number, old);
        sigaddset(&handled_signals, number);
    }

    inline static std::mutex mutex;
    inline static int num_users = 0;
    inline static sigset_t handled_signals{};
    inline static std::vector<std::pair<int, struct sigaction>> before;
};

/// Signals reach the program as long as this lives.
class ListedProgram {
public:
    explicit ListedProgram(pid_t pid) {
        for (std::atomic<pid_t>& place : running_programs) {
            pid_t free = 0;
            if (!place.compare_exchange_strong(free, pid)) continue;
            place_ = &place;
            break;
        }
        // One that came after the start of the program and before now.
        if (const int number = last_signal; number == SIGTERM || number == SIGHUP) {
            kill(pid, number);
        }
    }
    ~ListedProgram() {
        if (place_ != nullptr) *place_ = 0;
    }
    ListedProgram(const ListedProgram&) = delete;
    ListedProgram& operator=(const ListedProgram&) = delete;

private:
    std::atomic<pid_t>* place_ = nullptr;  // null: more programs run than there are places
};

/// The program takes the signals of `defaults` as it would without us.
Result<pid_t> spawn(const ProgramRun& run, const std::vector<std::string>& variables,
                    sigset_t defaults) {
    std::vector<char*> words;
    for (const std::string& word : run.words) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    for (const int number : {SIGPIPE, SIGXFSZ}) sigaddset(&defaults, number);  // main ignores them
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    if (!run.log.empty()) {
        posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, run.log.c_str(),
                                         O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
        // Nobody sees such a run, and several may run at once: none takes what is typed.
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    } else if (run.output_is_ours) {
        posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    }
    if (!run.working_folder.empty()) {
        posix_spawn_file_actions_addchdir_np(&files, run.working_folder.c_str());
    }
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, words.front(), &files, &attributes, words.data(),
                                   with_own_environment(variables).data());
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) {
        const bool is_refused = error == EACCES || error == ENOEXEC;
        return fail("Cannot start {}: {}; {}.", run.words.front(), reason_of(error),
                    error == ENOENT ? "check its name, or give its path"
                    : is_refused    ? "check that it is a program that you may run"
                                    : "close other programs and try again");
    }
    return pid;
}

/// File systems know the time less exactly than the clock.
constexpr auto kClockStep = std::chrono::milliseconds(20);

/// Waits until the program has ended, its time is over, or it shall stop. False: one of the latter.
bool ends_in_time(pollfd& ended, const ProgramRun& run) {
    constexpr std::chrono::milliseconds kSlice{100};
    const auto start = std::chrono::steady_clock::now();
    while (poll(&ended, 1, static_cast<int>(kSlice.count())) == 0) {
        const bool is_late =
            run.timeout.count() > 0 && std::chrono::steady_clock::now() - start > run.timeout;
        if (is_late || run.stop.stop_requested()) return false;
    }
    return true;
}

/// Ends a program that takes longer or shall stop: first it is asked to end, so that its recording
/// is closed. Returns whether it took longer.
bool end_after(pid_t pid, const ProgramRun& run) {
    if (run.timeout.count() == 0 && !run.stop.stop_possible()) return false;
    constexpr int kGraceMs = 5000;
    pollfd ended{.fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), .events = POLLIN};
    if (ended.fd < 0) return false;
    const bool takes_longer = !ends_in_time(ended, run);
    if (takes_longer) {
        kill(pid, SIGTERM);
        if (poll(&ended, 1, kGraceMs) == 0) kill(pid, SIGKILL);
    }
    close(ended.fd);
    return takes_longer && !run.stop.stop_requested();
}

ProgramEnd wait_for(pid_t pid, const ProgramRun& run) {
    const ListedProgram listed(pid);
    const bool has_timed_out = end_after(pid, run);
    int status = 0;
    rusage usage{};
    while (wait4(pid, &status, 0, &usage) < 0) {
        if (errno != EINTR) return {};
    }
    constexpr int kKilledBySignal = 128;
    constexpr int64_t kKibibyte = 1024;
    return {
        .exit_code = WIFSIGNALED(status) ? kKilledBySignal + WTERMSIG(status) : WEXITSTATUS(status),
        .resident_bytes = usage.ru_maxrss * kKibibyte,
        .has_timed_out = has_timed_out};
}

}  // namespace

Result<void> note_later_peak(LaterPeak& peak, const std::string& file) {
    auto trace = read_trace(file);
    if (!trace) return tl::unexpected(trace.error());
    if (find_peak(*trace).allocated_bytes >= peak.bytes) {  // the program has counted anew
        peak = {};
        return {};
    }
    set_diagnostic(*trace, {.code = kLaterPeak,
                            .severity = Severity::kWarning,
                            .count = peak.bytes,
                            .explanation = peak.sentence});
    return write_trace(*trace, file);
}

Result<fs::path> find_python_package() {
    std::error_code error;
    const fs::path bin = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const fs::path& package : {bin.parent_path(), bin / "python" / "temposcope"}) {
        if (fs::exists(package / "start" / "sitecustomize.py", error)) return package;
    }
    return fail("The recorder for Python is missing in {}: run scripts/build again.",
                (bin / "python").string());
}

std::string python_interpreter() {
    const char* const python = std::getenv("TEMPOSCOPE_PYTHON");
    return python == nullptr ? "python3" : python;
}

Result<ProgramResult> run_program(const ProgramRun& run) {
    const TemporaryFolder folder;
    if (!folder.exists()) return fail(kNoTemporaryFolder);
    const fs::path status = folder / "status";
    const auto variables = variables_of(run, status);
    if (!variables) return tl::unexpected(variables.error());
    const SignalsAreTheirs signals;
    const auto start = fs::file_time_type::clock::now() - kClockStep;
    const auto pid = spawn(run, *variables, signals.handled());
    if (!pid) return tl::unexpected(pid.error());
    ProgramEnd end = wait_for(*pid, run);
    end.start = start;
    end.was_asked_to_end = asks_to_end(last_signal) || run.stop.stop_requested();
    return describe_program(run, status, end);
}

bool were_asked_to_end() { return asks_to_end(last_signal); }

Result<ProgramRun> built_in_program(const models::Workload& workload,
                                    const models::Parallel& parallel, int64_t world_size) {
    const auto ok = models::validate(workload, parallel, world_size);
    if (!ok) return tl::unexpected(ok.error());
    const auto package = find_python_package();
    if (!package) return tl::unexpected(package.error());
    ProgramRun run{
        .words = {python_interpreter()},
        // Python would find modules in the current folder first: a user's random.py.
        .variables = {"PYTHONSAFEPATH=1"},
        .steps = 3,  // the second one finds the optimizer's state, the third DDP's buckets
        .skip = 0,
        .stops = true};
    if (world_size > 1) {
        run.words.insert(run.words.end(), {"-m", "torch.distributed.run"});
        run.world_size = world_size;
    }
    const std::string program = (*package / "programs" / "train_built_in.py").string();
    run.words.insert(run.words.end(), {program, models::to_json(workload).dump(), "--parallel",
                                       models::to_text(parallel)});
    return run;
}

}  // namespace app
