#pragma once

#include "app/workspace/document.h"

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace app {

/// Opens files one after the other on a thread of its own and wakes the window when there is news.
class DocumentLoader {
public:
    struct Progress {
        std::filesystem::path file;  // the one being read
        double share = 0;            // of it, in [0, 1]
        size_t waiting = 0;          // files after it
    };

    void load(std::filesystem::path file);
    void cancel();  // the one being read and those that wait

    /// Finished since the last call, in the order of loading; errors are complete sentences.
    std::vector<models::Result<DocumentPtr>> take();
    std::optional<Progress> progress() const;

private:
    void run(std::stop_token stop);
    bool report(double share);  // false: stop reading

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<std::filesystem::path> waiting_;
    std::vector<models::Result<DocumentPtr>> finished_;
    std::optional<Progress> current_;
    bool cancelled_ = false;
    std::jthread thread_;  // last: it stops before the rest goes
};

}  // namespace app
