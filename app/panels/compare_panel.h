#pragma once

#include "app/workspace/document_loader.h"
#include "app/workspace/panel_events.h"
#include "profiler/view/compare_view.h"

#include <filesystem>
#include <optional>
#include <vector>

/// Recipes side by side: memory at the peak, maximum batch, throughput; the table below, and the
/// sentence that a user would quote. Opens first, and greets when nothing is open.
namespace app {

struct CompareState {
    bool open = true;
};

struct CompareInput {
    const profiler::CompareView* view = nullptr;  // null: nothing to show yet
    const Selection* selection = nullptr;
    std::vector<DocumentPtr> documents;  // by column; null where a column is a sweep alone
    std::optional<DocumentLoader::Progress> loading;
    bool documents_open = false;
    const std::vector<std::filesystem::path>* recent_files = nullptr;
};

PanelEvents draw_compare_panel(const CompareInput& input, CompareState& state);

}  // namespace app
