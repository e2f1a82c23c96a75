#include "app/widgets/check_box.h"

#include "app/widgets/scoped.h"
#include "app/widgets/theme.h"

namespace app {

namespace {
/// Without an edge an empty box cannot be seen.
struct Edge {
    ScopedStyle width{ImGuiStyleVar_FrameBorderSize, px(1)};
    ScopedColor color{ImGuiCol_Border, with_alpha(palette().dim, 0.7F)};
};
}  // namespace

bool check_box(const char* label, bool* value) {
    const Edge edge;
    return ImGui::Checkbox(label, value);
}

bool radio_button(const char* label, bool is_chosen) {
    const Edge edge;
    return ImGui::RadioButton(label, is_chosen);
}

}  // namespace app
