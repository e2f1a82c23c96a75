#include "app/panels/selected/inspector_calls.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace app {
namespace {

using profiler::CallGroup;
using profiler::CallTimes;

constexpr float kHistogram_em = 4.5F;  // height of the bars

/// Where the bars stand on the screen.
struct Bars {
    ImVec2 corner;
    ImVec2 size;
    int64_t most = 1;  // calls in one class

    float left_of(size_t index) const {
        constexpr auto kCount = static_cast<float>(CallGroup::kNumClasses);
        return std::round(corner.x + size.x * static_cast<float>(index) / kCount);
    }
    float bottom() const { return corner.y + size.y; }
    /// One call among thousands is still seen.
    float top_of(int64_t count) const {
        const float share = static_cast<float>(count) / static_cast<float>(most);
        return std::round(bottom() - std::max(px(2), size.y * share));
    }
    std::optional<size_t> class_at(ImVec2 at) const {
        const float along = (at.x - corner.x) / size.x;
        if (along < 0 || along >= 1 || at.y < corner.y || at.y > bottom()) return std::nullopt;
        return static_cast<size_t>(along * static_cast<float>(CallGroup::kNumClasses));
    }
};

int64_t most_calls(const CallGroup& group) {
    int64_t most = 1;
    for (const CallTimes& times : group.sources) {
        for (const int64_t count : times.counts) most = std::max(most, count);
    }
    return most;
}

/// A is filled, B an outline over it.
void draw_bars(ImDrawList* draw, const Bars& bars, const Selection& selection,
               const CallGroup& group) {
    for (size_t source = 0; source < group.sources.size(); ++source) {
        const bool is_a = source == 0;
        const ImU32 color = recipe_color((is_a ? selection.look_a : selection.look_b).color);
        const auto& counts = group.sources[source].counts;
        for (size_t i = 0; i < counts.size(); ++i) {
            if (counts[i] == 0) continue;
            const ImVec2 corner{bars.left_of(i), bars.top_of(counts[i])};
            const ImVec2 end{std::max(bars.left_of(i + 1) - px(1), corner.x + px(1)),
                             bars.bottom()};
            if (is_a) draw->AddRectFilled(corner, end, with_alpha(color, 0.75F));
            if (!is_a) draw->AddRect(corner, end, color, 0, px(1.5F));
        }
    }
}

/// A triangle at the foot of the class of the selected call.
void draw_picked(ImDrawList* draw, const Bars& bars, const CallGroup& group) {
    const size_t index = group.class_of(group.picked_ns);
    const float x = (bars.left_of(index) + bars.left_of(index + 1)) / 2;
    const float y = bars.bottom() + px(2);
    draw->AddTriangleFilled({x, y}, {x + px(4), y + px(6)}, {x - px(4), y + px(6)},
                            palette().accent);
}

std::string time_text(double time_ns) {
    return profiler::format_duration(std::llround(std::clamp(time_ns, 0.0, 0x1p62)));
}

void draw_class_tooltip(const CallGroup& group, size_t index) {
    if (!ImGui::BeginTooltip()) return;
    const double ratio = group.high_ns / group.low_ns;
    const auto edge = [&](size_t i) {
        const double along = static_cast<double>(i) / static_cast<double>(CallGroup::kNumClasses);
        return time_text(group.low_ns * std::pow(ratio, along));
    };
    bold_text(fmt::format("{} to {}", edge(index), edge(index + 1)));
    for (size_t source = 0; source < group.sources.size(); ++source) {
        const int64_t count = group.sources[source].counts[index];
        text(fmt::format("{}  {} {}", source == 0 ? "A" : "B", profiler::format_count(count),
                         count == 1 ? "call" : "calls"));
    }
    ImGui::EndTooltip();
}

void draw_histogram(const Selection& selection, const CallGroup& group) {
    const ScopedFont small(fonts().text, kSmallSize);
    const Bars bars{.corner = ImGui::GetCursorScreenPos(),
                    .size = {ImGui::GetContentRegionAvail().x, em(kHistogram_em)},
                    .most = most_calls(group)};
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(bars.corner, bars.corner + bars.size, palette().plot, px(2));
    draw_bars(draw, bars, selection, group);
    draw->AddLine({bars.corner.x, bars.bottom()}, {bars.corner.x + bars.size.x, bars.bottom()},
                  palette().dim);
    draw_picked(draw, bars, group);
    ImGui::InvisibleButton("###histogram", {std::max(bars.size.x, px(1)), bars.size.y + px(8)});
    const bool is_hovered = ImGui::IsItemHovered();
    const std::string low = time_text(group.low_ns), high = time_text(group.high_ns);
    const float left = ImGui::GetCursorPosX();
    dim_text(low);
    ImGui::SameLine(0, 0);
    ImGui::SetCursorPosX(left + std::max(bars.size.x - text_width(high), text_width(low) + px(8)));
    dim_text(high);
    if (!is_hovered) return;
    if (const auto index = bars.class_at(ImGui::GetMousePos())) draw_class_tooltip(group, *index);
}

void draw_step_to(const char* label, const char* tip, profiler::ActivityId to, bool in_b,
                  PanelEvents& events) {
    const ScopedDisabled disabled(!to.valid());
    if (ImGui::Button(label)) events.selection.activity = PickedActivity{in_b, to};
    ImGui::SetItemTooltip("%s", tip);
    ImGui::SameLine(0, px(4));
}

}  // namespace

void draw_call_group(const Selection& selection, const CallGroup& group, PanelEvents& events) {
    draw_histogram(selection, group);
    const ScopedFont small(fonts().text, kSmallSize);
    const bool in_b = selection.activity->in_b;
    const profiler::CallMarks marks{.label = selection.activity->name,
                                    .keys = {std::vector{group.key}, std::vector{group.key}}};
    const bool are_marked = selection.marks == marks;
    draw_step_to(ICON_ARROW_LEFT "###previous_call", "The call of it before", group.previous, in_b,
                 events);
    draw_step_to(ICON_ARROW_RIGHT "###next_call", "The next call of it", group.next, in_b, events);
    const bool is_longest = group.longest == selection.activity->id;
    draw_step_to("Longest###longest_call", "The call of it that takes longest",
                 is_longest ? profiler::ActivityId() : group.longest, in_b, events);
    if (toggle_button("Mark all###mark_calls", are_marked)) {
        events.selection.marks.emplace(are_marked ? std::nullopt : std::optional(marks));
    }
    ImGui::SetItemTooltip("Calls, kernels and copies of others become pale in the Kernels panel");
}

}  // namespace app
