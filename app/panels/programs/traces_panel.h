#pragma once

#include "app/workspace/document.h"
#include "app/workspace/panel_events.h"
#include "app/workspace/selection.h"

#include <optional>
#include <vector>

namespace app {

struct OpenTraces {
    const std::vector<DocumentPtr>& documents;
    const std::vector<DocumentLabel>& labels;  // of each document
    DocumentPtr a;
    DocumentPtr b;
    DocumentPtr prediction;  // that the next one replaces; null: none
    std::optional<Documents::Loading> loading;
};

/// The panel Traces: the open traces, and which of them are A and B.
TraceEvents draw_traces_panel(const OpenTraces& traces);

/// The panel Diagnostics: what the captures of A and B could not see or had to assume, and what to
/// do about it.
void draw_diagnostics_panel(const Selection& selection);

}  // namespace app
