#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace app {

struct WelcomeEvents {
    bool open_files = false;
    bool open_examples = false;
    bool capture = false;
    std::optional<std::filesystem::path> recent;
};

/// The page shown before a trace is open: what to do next, and the recent files.
WelcomeEvents draw_welcome(const std::vector<std::filesystem::path>& recent_files);

}  // namespace app
