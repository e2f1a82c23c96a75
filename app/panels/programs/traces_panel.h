#pragma once

#include "app/workspace/documents.h"
#include "app/workspace/trace_events.h"

#include <optional>
#include <vector>

namespace app {

struct OpenTraces {
    const std::vector<DocumentPtr>& documents;
    const std::vector<DocumentLabel>& labels;  // of each document
    DocumentPtr a;
    DocumentPtr b;
    DocumentPtr trial;  // null: none is a trial
    std::optional<Documents::Loading> loading;
};

/// The open traces, and which of them are A and B.
TraceEvents draw_traces_panel(const OpenTraces& traces);

}  // namespace app
