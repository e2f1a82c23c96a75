#pragma once

#include <string>
#include <vector>

/// What the workers of captures and predictions wrote to standard output and error.
namespace app {

struct WorkerLogs {
    std::string capture;
    std::string predictions;
    bool is_capturing = false;
};

struct LogState {
    /// One kind of workers: what they wrote, and what of it the user has cleared.
    struct Source {
        std::string text;
        std::string cleared;
        std::vector<std::string> lines;
    };
    Source capture;
    Source predictions;
    bool follows = true;  // the list stays at its end
};

void draw_log_panel(WorkerLogs logs, LogState& state);

}  // namespace app
