#pragma once

#include "models/config/result.h"

#include <sys/types.h>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The worker as a process: starting it, its log, its end.
namespace profiler {

/// `TEMPOSCOPE_WORKER` if it is set, else what the installed Python package has chosen, else
/// `temposcope-worker` beside this program. Errors: none is there.
models::Result<std::filesystem::path> find_worker();

/// The minor version of the torch that a worker runs, "2.15": of the file torch_version beside it.
/// Empty where there is none.
std::string torch_of_worker(const std::filesystem::path& worker);

/// A worker that runs `torch`, a minor version: the usual one or the one in the folder torch-2.15
/// of the programs. Empty: the usual one. Errors: there is none for it.
models::Result<std::filesystem::path> find_worker_for(std::string_view torch);

/// The last part of what the worker wrote to standard output and error. Any thread.
class WorkerLog {
public:
    static constexpr std::size_t kMaxBytes = 64 << 10;

    void append(std::string_view text);
    std::string text() const;
    std::string last_line() const;

private:
    mutable std::mutex mutex_;
    std::string text_;
};

class WorkerProcess {
public:
    /// Starts `program` with its end of a socket pair on descriptor 3. The worker gets a process
    /// group of its own, so that Ctrl-C reaches only this program, and the kernel kills it when the
    /// calling thread ends.
    /// `environment` holds "NAME=value" and comes on top of this program's.
    static models::Result<WorkerProcess> start(const std::filesystem::path& program,
                                               const std::vector<std::string>& environment = {});
    WorkerProcess(WorkerProcess&& other) noexcept;
    WorkerProcess& operator=(WorkerProcess&&) = delete;
    ~WorkerProcess();  // kills it if it still runs

    /// Our end of the socket pair; the caller closes it.
    int release_socket() { return std::exchange(socket_, -1); }
    int log_descriptor() const { return log_; }
    const std::filesystem::path& program() const { return program_; }

    /// Moves what the log pipe holds to `log`. False when its writers are gone.
    bool drain_log(WorkerLog& log);
    void close_log();

    void signal(int number);
    /// Waits for the end. False when it still runs after `timeout`.
    bool wait(std::chrono::milliseconds timeout);
    /// One sentence on how it ended. Call it after wait() returned true.
    std::string describe_end(const WorkerLog& log) const;
    /// Whether memory ran out: the kernel killed it, or an allocation that failed ended it.
    bool out_of_memory(const WorkerLog& log) const;

private:
    WorkerProcess() = default;
    bool killed_for_memory() const;
    bool ended_for_lack_of_memory(const WorkerLog& log) const;

    std::filesystem::path program_;
    pid_t pid_ = -1;
    int socket_ = -1;
    int log_ = -1;
    std::optional<int> status_;  // of waitpid, once it ended
    bool killed_by_us_ = false;
    int64_t oom_kills_before_ = 0;  // the kernel's count when it started
};

}  // namespace profiler
