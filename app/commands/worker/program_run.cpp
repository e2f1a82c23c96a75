#include "app/commands/worker/program_run.h"

#include "app/commands/worker/program_result.h"
#include "profiler/protocol/process_environment.h"
#include "profiler/protocol/virtual_gpu_process.h"
#include "profiler/trace/temporary_paths.h"
#include "profiler/trace/text.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <system_error>

namespace app {
namespace {

namespace fs = std::filesystem;
using models::fail;
using models::Result;

/// Ranks know by it which others are of the same run.
std::string make_run_id() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
}

Result<std::vector<std::string>> variables_of(const ProgramRun& run, const fs::path& status) {
    const auto package = find_python_package();
    if (!package) return tl::unexpected(package.error());
    auto variables =
        run.card ? profiler::virtual_gpu_environment(profiler::virtual_gpu_folder(), {*run.card})
                 : Result<std::vector<std::string>>(std::vector<std::string>());
    if (!variables) return variables;
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
        {"layers", run.layers}};
    variables->push_back("PYTHONPATH=" +
                         profiler::before_own("PYTHONPATH", (*package / "start").string()));
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
    } else if (run.output_is_ours) {
        posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    }
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, words.front(), &files, &attributes, words.data(),
                                   profiler::with_own_environment(variables).data());
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) {
        const bool is_refused = error == EACCES || error == ENOEXEC;
        return fail("Cannot start {}: {}; {}.", run.words.front(), profiler::reason_of(error),
                    error == ENOENT ? "check its name, or give its path"
                    : is_refused    ? "check that it is a program that you may run"
                                    : "close other programs and try again");
    }
    return pid;
}

/// File systems know the time less exactly than the clock.
constexpr auto kClockStep = std::chrono::milliseconds(20);

ProgramEnd wait_for(pid_t pid) {
    const ListedProgram listed(pid);
    int status = 0;
    rusage usage{};
    while (wait4(pid, &status, 0, &usage) < 0) {
        if (errno != EINTR) return {};
    }
    constexpr int kKilledBySignal = 128;
    constexpr int64_t kKibibyte = 1024;
    return {
        .exit_code = WIFSIGNALED(status) ? kKilledBySignal + WTERMSIG(status) : WEXITSTATUS(status),
        .resident_bytes = usage.ru_maxrss * kKibibyte};
}

}  // namespace

Result<fs::path> find_python_package() {
    std::error_code error;
    const fs::path bin = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const fs::path& package : {bin.parent_path(), bin / "python" / "temposcope"}) {
        if (fs::exists(package / "start" / "sitecustomize.py", error)) return package;
    }
    return fail("The recorder for Python is missing in {}: run scripts/build again.",
                (bin / "python").string());
}

Result<ProgramResult> run_program(const ProgramRun& run) {
    const profiler::TemporaryFolder folder;
    if (!folder.exists()) return fail(profiler::kNoTemporaryFolder);
    const fs::path status = folder / "status";
    const auto variables = variables_of(run, status);
    if (!variables) return tl::unexpected(variables.error());
    const SignalsAreTheirs signals;
    const auto start = fs::file_time_type::clock::now() - kClockStep;
    const auto pid = spawn(run, *variables, signals.handled());
    if (!pid) return tl::unexpected(pid.error());
    ProgramEnd end = wait_for(*pid);
    end.start = start;
    end.was_asked_to_end = asks_to_end(last_signal);
    return describe_program(run, status, end);
}

}  // namespace app
