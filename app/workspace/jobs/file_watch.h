#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

/// Notices that files were replaced or rewritten on disk.
namespace app {

/// What tells two versions of a file apart without reading it.
struct FileStamp {
    std::filesystem::file_time_type time;
    std::uintmax_t size_bytes = 0;

    friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
/// Empty: there is no such file.
std::optional<FileStamp> stamp_of(const std::filesystem::path& file);

/// Looks at the files from time to time on a thread of its own, which sleeps in between and wakes
/// the window only if a file has changed. It polls, because inotify does not see what another
/// machine writes to a shared folder.
class FileWatch {
public:
    explicit FileWatch(std::chrono::milliseconds period = std::chrono::seconds(1))
        : period_(period) {}

    /// Reports versions of the file that differ from `known`, the version in use.
    void watch(const std::filesystem::path& file, const FileStamp& known);
    void forget(const std::filesystem::path& file);

    /// The files that changed since the last call. A change is reported once the file was stable
    /// for one period, so that nobody reads a half-written file. Every change is reported.
    std::vector<std::filesystem::path> take_changed();

private:
    struct Watched {
        std::filesystem::path file;
        FileStamp known;                // of the version that was read or reported
        std::optional<FileStamp> seen;  // a newer version, until it has been the same for a period
        bool has_changed = false;       // not yet taken
    };

    void run(const std::stop_token& stop);
    /// Looks at all files. True if one has changed.
    bool look();

    const std::chrono::milliseconds period_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::vector<Watched> files_;
    std::jthread thread_;  // declared last: it stops before the other members are destroyed
};

}  // namespace app
