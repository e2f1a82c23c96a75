#include "app/panels/programs/compare_chart_parts.h"
#include "app/panels/programs/compare_charts.h"
#include "app/widgets/plot.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace app {
namespace {

using profiler::PairMoment;
using profiler::PairView;

constexpr double kPairBarWidth = 0.34;  // of a moment's share of the axis
constexpr double kFromCenter = 0.2;     // to the middle of A's bar and of B's

double place_of(size_t moment, size_t trace) {
    return static_cast<double>(moment) + (trace == 0 ? -kFromCenter : kFromCenter);
}

/// Below each bar A or B, below the two the name of their moment.
void setup_moment_ticks(const PairView& view) {
    std::vector<double> places;
    std::vector<std::string> names;
    std::vector<const char*> labels;
    for (size_t i = 0; i < view.moments.size(); ++i) {
        places.insert(places.end(), {place_of(i, 0), static_cast<double>(i), place_of(i, 1)});
        names.insert(names.end(), {"A", "\n" + view.moments[i].title, "B"});
    }
    for (const std::string& name : names) labels.push_back(name.c_str());
    ImPlot::SetupAxisTicks(ImAxis_X1, places.data(), static_cast<int>(places.size()),
                           labels.data());
}

bool begin_pair_plot(const PairView& view, ImVec2 size) {
    if (!ImPlot::BeginPlot("##pair", size, kPlainPlot | ImPlotFlags_NoInputs)) return false;
    ImPlot::SetupAxes(nullptr, nullptr,
                      kFixedAxis | ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks,
                      kFixedAxis);
    setup_moment_ticks(view);
    const double text_room = 2 * ImGui::GetTextLineHeight() + px(8);
    const double inside = std::max(em(6), size.y - em(3.6F));
    const double end =
        static_cast<double>(view.max_bytes) / (1 - std::min(0.6, text_room / inside));
    setup_ticks(ImAxis_Y1, profiler::AxisUnit::kBytes, 0, end, size.y);
    ImPlot::SetupAxisLimits(ImAxis_X1, -0.55, static_cast<double>(view.moments.size()) - 0.45,
                            ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, 0, std::max(end, 1.0), ImPlotCond_Always);
    ImPlot::SetupFinish();
    return true;
}

void draw_moment(ImDrawList* draw, const PairView& view, size_t index, const Selection& selection,
                 PanelEvents& events) {
    const PairMoment& moment = view.moments[index];
    const std::array looks{selection.look_a.name, selection.look_b.name};
    const float room =
        ImPlot::PlotToPixels(kPairBarWidth, 0).x - ImPlot::PlotToPixels(0, 0).x + px(8);
    for (size_t i = 0; i < moment.bars.size(); ++i) {
        const PairMoment::Bar& bar = moment.bars[i];
        const PlotBar place = plot_bar(place_of(index, i), kPairBarWidth);
        const StackOwner owner{.name = looks[i],
                               .total_bytes = bar.size_bytes,
                               .total_text = bar.text + ", " + moment.title,
                               .is_predicted = view.is_predicted[i]};
        draw_stacked_bar(draw, place, owner, bar.stack, selection, events);
        bar_label(draw, place, static_cast<double>(bar.size_bytes), room, bar.text,
                  i == 1 ? moment.change : profiler::Change());
    }
}

}  // namespace

void draw_pair_chart(const PairView& view, const Selection& selection, ImVec2 size,
                     PanelEvents& events) {
    ImGui::BeginGroup();
    chart_title("Memory of A and B", "at moments that compare, by category", size.x);
    if (begin_pair_plot(view, below_title(size))) {
        ImDrawList* draw = ImPlot::GetPlotDrawList();
        ImPlot::PushPlotClipRect();
        for (size_t i = 0; i < view.moments.size(); ++i) {
            draw_moment(draw, view, i, selection, events);
        }
        ImPlot::PopPlotClipRect();
        ImPlot::EndPlot();
    }
    ImGui::EndGroup();
}

}  // namespace app
