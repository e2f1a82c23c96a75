#include "app/widgets/check_box.h"

#include "app/widgets/scoped.h"
#include "app/widgets/theme.h"

namespace app {

bool check_box(const char* label, bool* value) {
    const ScopedStyle edge(ImGuiStyleVar_FrameBorderSize, px(1));
    const ScopedColor color(ImGuiCol_Border, with_alpha(palette().dim, 0.7F));
    return ImGui::Checkbox(label, value);
}

}  // namespace app
