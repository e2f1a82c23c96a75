#pragma once

#include "app/panels/layers/layer_ribbons.h"
#include "app/panels/parts/panel_context.h"
#include "profiler/view/layers/layer_view.h"

#include <memory>
#include <string>
#include <vector>

namespace app {

struct LayerState {
    bool show_switches = true;
    std::string asked;              // the recipe that the user asked for last, until B has it
    double predicting_since_s = 0;  // 0: no recipe is being predicted
    LayerPicture picture;           // where the last frame drew it; tests point into it

    /// The view drawn last. It stays until the next B's view is ready, so that nothing flickers.
    std::shared_ptr<const profiler::LayerView> shown;
    DocumentPtr shown_a;
    double shown_since_s = 0;
    std::vector<std::string> shown_before;  // marks of the view before this one, sorted
};

/// A layer as a picture: its calls, the tensors saved between forward and backward, and the
/// switches of the recipe. B lies over A.
PanelEvents draw_layer_panel(const PanelContext& context, LayerState& state);

}  // namespace app
