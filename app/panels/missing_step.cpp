#include "app/panels/missing_step.h"

#include "app/widgets/text.h"

#include <fmt/format.h>

namespace app {

void draw_missing_step(const char* icon, const Selection& selection) {
    const std::string advice =
        selection.a->trace->sweep_points.empty()
            ? "The capture ended before its first step; capture it again."
            : "It is a sweep over batch sizes, which Compare draws; choose another trace as A, or "
              "record a step with Capture.";
    empty_state(icon, fmt::format("{} holds no recorded step", selection.look_a.name), advice);
}

}  // namespace app
