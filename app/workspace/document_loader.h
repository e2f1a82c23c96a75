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

/// Opens files one after another on its own thread, and wakes the window when one is done.
class DocumentLoader {
public:
    struct Progress {
        std::filesystem::path file;  // the file being read
        double share = 0;            // of the file that is read, in [0, 1]
        size_t waiting = 0;          // files after it
    };

    void load(std::filesystem::path file);
    void cancel();  // stops the file being read and drops those that wait

    /// Documents finished since the last call, in the order of loading. Errors are whole sentences.
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
    std::jthread thread_;  // last, so that it stops before the other members are destroyed
};

}  // namespace app
