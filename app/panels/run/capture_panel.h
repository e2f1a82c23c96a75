#pragma once

#include "app/panels/parts/panel_context.h"

#include <optional>
#include <string>

/// Starts a capture in a worker, shows its live memory curve and its log, and cancels it. The
/// finished traces open by themselves.
namespace app {

struct CaptureState {
    bool show_log = false;
    StepForm form = first_capture_form();  // as filled in
    std::optional<StepForm> checked;       // what `problem` was found for; empty: nothing yet
    std::string problem;                   // why it cannot start; empty: it can
};

PanelEvents draw_capture_panel(const PanelContext& context, CaptureState& state);

}  // namespace app
