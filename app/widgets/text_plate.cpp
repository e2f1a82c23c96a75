#include "app/widgets/text_plate.h"

#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <cmath>

namespace app {

void text_on_plate(ImDrawList* draw, ImVec2 at, std::string_view content, ImU32 ink, ImU32 ground,
                   ImVec2 margin) {
    at = {std::round(at.x), std::round(at.y)};
    const ImVec2 size{text_width(content), ImGui::GetTextLineHeight()};
    const ImVec2 around{px(margin.x), px(margin.y)};
    draw->AddRectFilled(at - around, at + size + around, ground, px(3));
    draw->AddText(at, ink, content.data(), content.data() + content.size());
}

}  // namespace app
