#pragma once

#include "app/workspace/document_loader.h"
#include "app/workspace/panel_events.h"

#include <optional>
#include <vector>

/// The open traces, and which of them are A and B.
namespace app {

struct TracesState {
    bool open = true;
};

struct TracesInput {
    const std::vector<DocumentPtr>* documents = nullptr;
    const std::vector<DocumentLook>* looks = nullptr;  // of each document
    const Selection* selection = nullptr;
    std::optional<DocumentLoader::Progress> loading;
};

PanelEvents draw_traces_panel(const TracesInput& input, TracesState& state);

}  // namespace app
