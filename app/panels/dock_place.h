#pragma once

namespace app {

/// Where a panel lies in the default layout. Panels that share a place are tabs.
enum class DockPlace {
    kLeftTop,      // narrow column at the left
    kLeftBottom,   //
    kTop,          // wide, above the two places at the bottom
    kBottomLeft,   //
    kBottomRight,  //
};

}  // namespace app
