#pragma once

#include "app/panels/panel_context.h"

#include <string>
#include <vector>

/// What the workers of captures and predictions wrote to standard output and error.
namespace app {

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

PanelEvents draw_log_panel(const PanelContext& context, LogState& state);

}  // namespace app
