#include "app/panels/parts/unfilled.h"

#include "app/widgets/icons.h"
#include "app/widgets/text.h"

#include <fmt/format.h>

namespace app {
namespace {

void draw_missing_step(const char* icon, const Selection& selection) {
    const std::string advice =
        selection.a->trace->sweep_points.empty()
            ? "The capture ended before its first step. Capture it again."
            : "It is a sweep over batch sizes, which the Compare panel shows. Choose another trace "
              "as A, or record a step in the Capture panel.";
    empty_state(icon, fmt::format("{} holds no recorded step", selection.look_a.name), advice);
}

}  // namespace

void draw_unfilled(const UnfilledTexts& texts, const Selection& selection, std::string_view error) {
    if (!selection.a) {
        empty_state(texts.icon, "No trace is open", texts.purpose);
    } else if (!selection.a->has_step) {
        draw_missing_step(texts.icon, selection);
    } else if (!error.empty()) {
        empty_state(ICON_TRIANGLE_EXCLAMATION, texts.error_title, error);
    } else {
        working_line(texts.working);
    }
}

}  // namespace app
