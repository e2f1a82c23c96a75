#pragma once

#include "app/workspace/panel_events.h"

/// Starts a capture in a worker, shows its live memory curve and its log, cancels it. Its traces
/// open by themselves when they are finished.
namespace app {

struct CaptureState {
    bool open = true;
    bool show_log = false;
    CaptureForm form;  // as it stands in the fields
};

PanelEvents draw_capture_panel(const CaptureStatus& status, CaptureState& state);

}  // namespace app
