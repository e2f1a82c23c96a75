#include "app/panels/memory/timeline_readout.h"

#include "app/widgets/fonts.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <imgui.h>

#include <algorithm>
#include <string>
#include <vector>

namespace app {

void draw_memory_readout(const Workspace& workspace, size_t num_traces, double time_ns) {
    if (!ImGui::BeginTooltip()) return;
    std::vector<profiler::TimelineReadout> readouts;
    for (size_t i = 0; i < num_traces; ++i) {
        readouts.push_back(workspace.read_timeline(i, time_ns));
    }
    const auto bytes_of = [&](size_t source, profiler::Category category) -> std::string {
        for (const auto& row : readouts[source].rows) {
            if (row.category == category) return row.text;
        }
        return "–";
    };
    if (ImGui::BeginTable("##readout", static_cast<int>(num_traces) + 1,
                          ImGuiTableFlags_SizingFixedFit)) {
        const auto row = [&](auto&& first, auto&& cell) {
            ImGui::TableNextRow();
            ImGui::TableNextColumn();
            first();
            for (size_t i = 0; i < num_traces; ++i) {
                ImGui::TableNextColumn();
                ImGui::Dummy({em(5), 0});  // numbers end on one line in every frame
                ImGui::SameLine(0, 0);
                ImGui::SetCursorPosX(ImGui::GetCursorPosX() - em(5));
                cell(i);
            }
        };
        row([&] { dim_text(readouts[0].time_text); },
            [&](size_t i) { right_text(i == 0 ? "A" : "B"); });
        for (auto category = profiler::kCategoryStackOrder.rbegin();
             category != profiler::kCategoryStackOrder.rend(); ++category) {
            const bool shown = std::any_of(readouts.begin(), readouts.end(), [&](const auto& r) {
                return std::any_of(r.rows.begin(), r.rows.end(),
                                   [&](const auto& cell) { return cell.category == *category; });
            });
            if (!shown) continue;
            row(
                [&] {
                    category_swatch(*category);
                    text(profiler::label_of(*category));
                },
                [&](size_t i) { right_text(bytes_of(i, *category)); });
        }
        const ScopedFont bold(fonts().bold);
        row([&] { text("Total"); }, [&](size_t i) { right_text(readouts[i].total_text); });
        ImGui::EndTable();
    }
    if (!readouts[0].phase_text.empty()) dim_text(readouts[0].phase_text);
    if (!readouts[0].annotation_text.empty()) {
        dim_text(fit_to(readouts[0].annotation_text, em(30)));
    }
    ImGui::EndTooltip();
}

}  // namespace app
