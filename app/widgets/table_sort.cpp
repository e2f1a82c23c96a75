#include "app/widgets/table_sort.h"

#include <imgui_internal.h>  // TableSetColumnSortDirection; the public interface only reads

namespace app {

void point_sort_arrow(int column, bool descending) {
    ImGui::TableSetColumnSortDirection(
        column, descending ? ImGuiSortDirection_Descending : ImGuiSortDirection_Ascending, false);
}

}  // namespace app
