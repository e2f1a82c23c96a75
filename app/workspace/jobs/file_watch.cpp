#include "app/workspace/jobs/file_watch.h"

#include "app/workspace/jobs/wake.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace app {

namespace fs = std::filesystem;

std::optional<FileStamp> stamp_of(const fs::path& file) {
    std::error_code error;
    FileStamp stamp{fs::last_write_time(file, error), 0};
    if (error) return std::nullopt;
    stamp.size_bytes = fs::file_size(file, error);
    if (error) return std::nullopt;
    return stamp;
}

void FileWatch::watch(const fs::path& file, const FileStamp& known) {
    forget(file);
    const std::scoped_lock lock(mutex_);
    files_.push_back({file, known, std::nullopt});
    if (!thread_.joinable()) {
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    changed_.notify_one();
}

void FileWatch::forget(const fs::path& file) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(files_, [&](const Watched& watched) { return watched.file == file; });
}

std::vector<fs::path> FileWatch::take_changed() {
    const std::scoped_lock lock(mutex_);
    std::vector<fs::path> changed;
    for (Watched& watched : files_) {
        if (std::exchange(watched.has_changed, false)) changed.push_back(watched.file);
    }
    return changed;
}

void FileWatch::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        {
            std::unique_lock lock(mutex_);
            if (!changed_.wait(lock, stop, [this] { return !files_.empty(); })) return;
            // Nobody notifies with this condition true: it sleeps for the period, or until a stop.
            changed_.wait_for(lock, stop, period_, [] { return false; });
        }
        if (!stop.stop_requested() && look()) wake_window();
    }
}

bool FileWatch::look() {
    std::vector<fs::path> files;
    {
        const std::scoped_lock lock(mutex_);
        for (const Watched& watched : files_) files.push_back(watched.file);
    }
    bool any = false;
    for (const fs::path& file : files) {
        const auto now = stamp_of(file);  // without the lock: a network folder may take long
        const std::scoped_lock lock(mutex_);
        const auto found = std::find_if(files_.begin(), files_.end(),
                                        [&](const Watched& w) { return w.file == file; });
        if (found == files_.end()) continue;
        const bool is_new = now && *now != found->known;
        if (is_new && found->seen == now) {
            found->known = *now;
            found->has_changed = any = true;
        }
        found->seen = is_new ? now : std::nullopt;
    }
    return any;
}

}  // namespace app
