#include "app/panels/parts/inferred_mark.h"

#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/workspace/document.h"
#include "profiler/view/layers/classes_note.h"

#include <imgui.h>

#include <string>

namespace app {

void draw_inferred_mark(const Selection& selection) {
    for (const DocumentPtr& document : {selection.a, selection.b}) {
        if (!document) continue;
        const std::string note(profiler::classes_note(*document->trace));
        if (note.empty()) continue;
        ImGui::SameLine(0, px(12));
        dim_text("inferred");
        return ImGui::SetItemTooltip("%s", note.c_str());
    }
}

}  // namespace app
