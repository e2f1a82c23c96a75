#pragma once

#include <filesystem>
#include <optional>

/// What must not outlive this process: unfinished files and folders for temporary files.
namespace profiler {

/// While it lives, a signal that ends the process removes the path too: a file, or a folder that is
/// empty then. The object itself removes nothing.
class RemovedOnSignal {
public:
    /// More than a few dozen paths at a time, and very long ones, are not removed.
    explicit RemovedOnSignal(const std::filesystem::path& path);
    RemovedOnSignal(RemovedOnSignal&& other) noexcept;
    RemovedOnSignal& operator=(RemovedOnSignal&&) = delete;
    ~RemovedOnSignal();

private:
    int slot_ = -1;  // -1: none
};

/// From now on SIGINT, SIGTERM and SIGHUP remove these paths before they end the process. A signal
/// that is ignored stays ignored.
void remove_paths_on_signals();

/// Removes them now. May be called from a signal handler.
void remove_temporary_paths();
/// The handler of these signals: removes the paths, then lets the signal have its usual effect.
void remove_paths_and_end(int signal);

/// A folder that only this user can read. The destructor removes it with all in it.
class TemporaryFolder {
public:
    /// Below $TMPDIR, or /tmp.
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    bool exists() const { return error_ == 0; }
    /// 0, or the errno that says why the folder was not made.
    int error() const { return error_; }
    std::filesystem::path operator/(const char* name) const { return path_ / name; }

private:
    std::filesystem::path path_;
    std::optional<RemovedOnSignal> removed_on_signal_;
    int error_ = 0;
};

inline constexpr const char* kNoTemporaryFolder =
    "No folder for temporary files can be made: free some space, or name another place in TMPDIR.";

}  // namespace profiler
