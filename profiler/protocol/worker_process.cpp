#include "profiler/protocol/worker_process.h"

#include "profiler/protocol/messages.h"
#include "profiler/protocol/process_environment.h"
#include "profiler/trace/file/readable_file.h"
#include "profiler/trace/text.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>

namespace profiler {
namespace fs = std::filesystem;
using models::fail;
using models::Result;

namespace {

constexpr int kLoaderFailed = 127;  // a library of the program could not be loaded

/// How many processes the kernel's out-of-memory killer ended since the machine started.
int64_t count_oom_kills() {
    std::ifstream counters("/proc/vmstat");
    std::string name;
    int64_t value = 0;
    while (counters >> name >> value) {
        if (name == "oom_kill") return value;
    }
    return 0;
}

struct Descriptors {
    int socket = -1;       // the worker's end
    int log = -1;          // write end
    int exec_failed = -1;  // write end; closed by a successful exec
};

/// Sends the error to the parent and ends this child.
[[noreturn]] void report_and_end(int exec_failed, int error_number) {
    [[maybe_unused]] const ssize_t written = write(exec_failed, &error_number, sizeof error_number);
    _exit(kLoaderFailed);
}

/// Between fork and exec: async-signal-safe calls only, since other threads held locks.
[[noreturn]] void become_worker(const char* program, char* const* environment,
                                const Descriptors& fds, pid_t parent) {
    // Copies with numbers above 9: the descriptors up to 3 are about to be replaced.
    const int socket = fcntl(fds.socket, F_DUPFD_CLOEXEC, 10);
    const int log = fcntl(fds.log, F_DUPFD_CLOEXEC, 10);
    const int failed = fcntl(fds.exec_failed, F_DUPFD_CLOEXEC, 10);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    // Where descriptors are few, the reason is that or EINVAL, which says nothing.
    if (socket < 0 || log < 0 || failed < 0) report_and_end(fds.exec_failed, EMFILE);
    if (null < 0) report_and_end(fds.exec_failed, errno);
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    dup2(socket, kWorkerDescriptor);
#ifdef SYS_close_range
    syscall(SYS_close_range, kWorkerDescriptor + 1, ~0u, 4u);  // 4: CLOSE_RANGE_CLOEXEC
#endif
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::array<char*, 2> arguments{const_cast<char*>(program), nullptr};
    if (getppid() == parent) execve(program, arguments.data(), environment);
    report_and_end(failed, errno);
}

tl::unexpected<models::Error> cannot_start(const fs::path& program, int error_number,
                                           std::string_view remedy) {
    const bool is_limit = error_number == EMFILE;
    return fail("Cannot start {}: {}; {}.", program.string(), reason_of(error_number),
                is_limit ? "raise the limit (ulimit -n)" : remedy);
}

/// What the command of the installed Python package sets for this program; null: nothing.
const char* chosen_by_package(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

/// The command of the installed Python package names the torch of its environment, which need not
/// lie beside the package.
std::vector<std::string> with_torch(std::vector<std::string> environment) {
    const char* const torch = chosen_by_package("TEMPOSCOPE_TORCH_FOLDER");
    if (torch == nullptr) return environment;
    const std::string folders = fmt::format("{0}/lib:{0}/../nvidia/cu13/lib", torch);
    const auto found = std::ranges::find_if(
        environment, [](const auto& variable) { return variable.starts_with("LD_LIBRARY_PATH="); });
    if (found == environment.end()) {
        environment.push_back("LD_LIBRARY_PATH=" + before_own("LD_LIBRARY_PATH", folders));
    } else {
        *found += ":" + folders;
    }
    return environment;
}

}  // namespace

Result<fs::path> find_worker() {
    std::error_code error;
    if (const char* path = std::getenv("TEMPOSCOPE_WORKER"); path != nullptr && *path != '\0') {
        if (access(path, X_OK) == 0 && !fs::is_directory(path, error)) return fs::path(path);
        return fail(
            "TEMPOSCOPE_WORKER names {}, which is not a program; correct or unset the variable.",
            path);
    }
    // The command of the installed Python package has looked for one that fits its torch.
    if (const char* reason = chosen_by_package("TEMPOSCOPE_NO_WORKER")) return fail("{}.", reason);
    if (const char* path = chosen_by_package("TEMPOSCOPE_OWN_WORKER")) return fs::path(path);
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    const fs::path path = folder / "temposcope-worker";
    if (access(path.c_str(), X_OK) == 0) return path;
    if (errno == EACCES) {
        return fail("{} may not be run by this user; change its permissions.", path.string());
    }
    return fail("{} is missing: build it, or set TEMPOSCOPE_WORKER to where it is.", path.string());
}

std::string torch_of_worker(const fs::path& worker) {
    std::ifstream file(worker.parent_path() / "torch_version");
    std::string version;
    file >> version;
    return version;
}

Result<fs::path> find_worker_for(std::string_view torch) {
    auto usual = find_worker();
    const std::string usual_torch = usual ? torch_of_worker(*usual) : std::string();
    if (torch.empty() || torch == usual_torch) return usual;
    if (chosen_by_package("TEMPOSCOPE_OWN_WORKER") != nullptr) {
        return fail("This environment has torch {}, and torch {} is asked for: install that one.",
                    usual_torch, torch);
    }
    std::error_code error;
    const fs::path programs = fs::read_symlink("/proc/self/exe", error).parent_path();
    const fs::path other = programs / fmt::format("torch-{}", torch) / "temposcope-worker";
    if (access(other.c_str(), X_OK) == 0) return other;
    return fail("No worker runs torch {}: build for it, as docs/install.md says.", torch);
}

void WorkerLog::append(std::string_view text) {
    const std::lock_guard lock(mutex_);
    text_ += text;
    if (text_.size() > kMaxBytes) {
        const std::size_t line_end = text_.find('\n', text_.size() - kMaxBytes);
        text_.erase(0, line_end == std::string::npos ? text_.size() - kMaxBytes : line_end + 1);
    }
}

std::string WorkerLog::text() const {
    const std::lock_guard lock(mutex_);
    return text_;
}

std::string WorkerLog::last_line() const {
    std::string log = text();
    while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.pop_back();
    const std::size_t start = log.rfind('\n');
    return start == std::string::npos ? log : log.substr(start + 1);
}

Result<WorkerProcess> WorkerProcess::start(const fs::path& program,
                                           const std::vector<std::string>& environment) {
    const std::vector<std::string> added = with_torch(environment);
    const std::vector<char*> variables = with_own_environment(added);
    std::array<int, 2> sockets{-1, -1}, log{-1, -1}, exec_failed{-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0 ||
        pipe2(log.data(), O_CLOEXEC) != 0 || pipe2(exec_failed.data(), O_CLOEXEC) != 0) {
        const int error_number = errno;
        for (const auto& pair : {sockets, log, exec_failed}) {
            for (const int descriptor : pair) {
                if (descriptor >= 0) close(descriptor);
            }
        }
        return cannot_start(program, error_number, "close other programs and try again");
    }
    WorkerProcess process;
    process.program_ = program;
    process.oom_kills_before_ = count_oom_kills();
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        become_worker(program.c_str(), variables.data(), {sockets[1], log[1], exec_failed[1]},
                      parent);
    }
    const int fork_error = errno;
    close(sockets[1]);
    close(log[1]);
    close(exec_failed[1]);
    process.pid_ = pid;
    process.socket_ = sockets[0];
    process.log_ = log[0];
    int error_number = 0;
    const bool failed =
        pid > 0 && read(exec_failed[0], &error_number, sizeof error_number) == sizeof error_number;
    close(exec_failed[0]);
    if (pid < 0 || failed) {
        return cannot_start(program, pid < 0 ? fork_error : error_number,
                            "build it again, or set TEMPOSCOPE_WORKER to where it is");
    }
    fcntl(process.log_, F_SETFL, O_NONBLOCK);
    return process;
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : program_(std::move(other.program_)),
      pid_(std::exchange(other.pid_, -1)),
      socket_(std::exchange(other.socket_, -1)),
      log_(std::exchange(other.log_, -1)),
      status_(other.status_),
      killed_by_us_(other.killed_by_us_),
      oom_kills_before_(other.oom_kills_before_) {}

WorkerProcess::~WorkerProcess() {
    if (socket_ >= 0) close(socket_);
    close_log();
    if (pid_ > 0 && !status_) {
        signal(SIGKILL);
        wait(std::chrono::seconds(5));
    }
}

bool WorkerProcess::drain_log(WorkerLog& log) {
    std::array<char, 4096> bytes;
    for (;;) {
        const ssize_t count = read(log_, bytes.data(), bytes.size());
        if (count > 0) {
            log.append({bytes.data(), static_cast<std::size_t>(count)});
        } else if (count == 0) {
            return false;
        } else if (errno != EINTR) {
            return errno == EAGAIN;
        }
    }
}

void WorkerProcess::close_log() {
    if (log_ >= 0) close(log_);
    log_ = -1;
}

void WorkerProcess::signal(int number) {
    if (pid_ <= 0 || status_) return;
    killed_by_us_ = true;
    kill(pid_, number);
}

bool WorkerProcess::wait(std::chrono::milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (pid_ > 0 && !status_) {
        int status = 0;
        const pid_t ended = waitpid(pid_, &status, WNOHANG);
        if (ended == pid_) status_ = status;
        if (ended < 0 && errno != EINTR) status_ = 0;
        if (!status_) {
            if (std::chrono::steady_clock::now() >= deadline) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
    return true;
}

bool WorkerProcess::out_of_memory(const WorkerLog& log) const {
    return killed_for_memory() || ended_for_lack_of_memory(log);
}

bool WorkerProcess::killed_for_memory() const {
    return status_ && WIFSIGNALED(*status_) && WTERMSIG(*status_) == SIGKILL && !killed_by_us_ &&
           count_oom_kills() > oom_kills_before_;
}

/// The C++ library names an exception that nobody caught in its last line: memory that was refused,
/// or a thread that got no stack. Below 450 MB of address space (ulimit -v) the worker's libraries
/// cannot even be mapped, which the dynamic loader says.
bool WorkerProcess::ended_for_lack_of_memory(const WorkerLog& log) const {
    constexpr std::array<std::string_view, 4> kSigns{
        "std::bad_alloc", "Resource temporarily unavailable", "Cannot allocate memory",
        "failed to map segment from shared object"};
    if (!status_ || (WIFEXITED(*status_) && WEXITSTATUS(*status_) == 0)) return false;
    const std::string line = log.last_line();
    return std::ranges::any_of(
        kSigns, [&](std::string_view sign) { return line.find(sign) != std::string::npos; });
}

std::string WorkerProcess::describe_end(const WorkerLog& log) const {
    const std::string line = log.last_line();
    const std::string said = line.empty() ? "" : fmt::format(" Its last line was: {}", line);
    if (ended_for_lack_of_memory(log)) return std::string(kWorkerOutOfMemory);
    if (killed_for_memory()) {
        return fmt::format(
            "The machine ran out of memory and its kernel killed the worker; take a "
            "smaller batch, or set a memory limit below the free memory.");
    }
    if (status_ && WIFSIGNALED(*status_)) {
        const int number = WTERMSIG(*status_);
        return fmt::format("The worker was killed by signal {} ({}).{}", number, strsignal(number),
                           said);
    }
    const int status = status_ ? WEXITSTATUS(*status_) : -1;
    if (status == kLoaderFailed) {
        if (const auto folder = closed_folder(TEMPOSCOPE_TORCH_LIBRARY)) {
            return fmt::format(
                "The worker's libtorch, {}, lies in {}, which this user may not enter: build with "
                "a "
                "private folder that all may read (TEMPOSCOPE_DEPS), or let its owner open that "
                "folder.",
                TEMPOSCOPE_TORCH_LIBRARY, folder->string());
        }
    }
    return fmt::format(
        "The worker {} ended with status {} before it answered; run temposcope "
        "doctor.{}",
        program_.string(), status, said);
}

}  // namespace profiler
