#pragma once

#include <imgui.h>

namespace app {

/// Where a label stands on the screen, in pixels, so that the next one finds another place.
struct LabelArea {
    ImVec2 low;
    ImVec2 high;

    bool overlaps(const LabelArea& other) const {
        return low.x < other.high.x && other.low.x < high.x && low.y < other.high.y &&
               other.low.y < high.y;
    }
    /// Whether it covers a circle around `at`, or a part of it.
    bool contains(ImVec2 at, float radius) const {
        return at.x > low.x - radius && at.x < high.x + radius && at.y > low.y - radius &&
               at.y < high.y + radius;
    }
};

}  // namespace app
