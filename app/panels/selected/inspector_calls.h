#pragma once

#include "app/workspace/workspace.h"
#include "profiler/view/selected/inspector_view.h"

namespace app {

/// All calls like the selected one: how their times are spread, in A and in B, and buttons that go
/// from one to the next or mark them in the Kernels panel.
void draw_call_group(const Selection& selection, const profiler::CallGroup& group,
                     PanelEvents& events);

}  // namespace app
