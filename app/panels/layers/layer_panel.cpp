#include "app/panels/layers/layer_panel.h"

#include "app/panels/layers/layer_drawing.h"
#include "app/panels/parts/layer_switches.h"
#include "app/panels/parts/panel_notes.h"
#include "app/panels/parts/timeline_lanes.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/workspace/jobs/wake.h"
#include "app/workspace/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using profiler::LayerNode;
using profiler::LayerRange;
using profiler::LayerRibbon;
using profiler::LayerView;
using profiler::PairFigure;
using profiler::Presence;

constexpr double kChange_s = 0.25;

/// One frame's drawing: what the helpers below share.
struct Frame {
    const PanelContext& context;
    const Selection& selection;
    const LayerView& view;
    LayerState& state;
    PanelEvents& events;
    bool is_current = true;  // false: the view of the B before, until the new one is ready
};

// ---- which view -----------------------------------------------------------------------------

/// Tells whether a ribbon looks the same in two views of one A.
std::string mark_of(const LayerRibbon& ribbon) {
    return fmt::format("{} {} {} {}", static_cast<int>(ribbon.presence), ribbon.storage[0].value,
                       ribbon.name, ribbon.size_text);
}

std::vector<std::string> marks_of(const LayerView& view) {
    std::vector<std::string> marks;
    for (const LayerRibbon& ribbon : view.ribbons) marks.push_back(mark_of(ribbon));
    std::sort(marks.begin(), marks.end());
    return marks;
}

/// The view to draw: the wanted one, or the last one of the same A while that is being built.
const LayerView* choose_view(const Workspace& workspace, LayerState& state) {
    const auto& slot = workspace.slots().layers;
    const DocumentPtr& a = workspace.selection().a;
    if (state.shown_a != a || !slot.error().empty()) {
        state.shown.reset();
        state.shown_a = a;
        state.shown_before.clear();
    }
    if (auto newest = slot.shared(); newest && newest != state.shown) {
        const bool changes = state.shown && state.shown->layers == newest->layers;
        state.shown_before = changes ? marks_of(*state.shown) : marks_of(*newest);
        state.shown_since_s = ImGui::GetTime();
        state.shown = std::move(newest);
    }
    return state.shown.get();
}

/// How far each ribbon has changed since the view before.
std::vector<float> arrivals(const LayerView& view, LayerState& state) {
    const double passed_s = ImGui::GetTime() - state.shown_since_s;
    if (state.shown_before.empty() || passed_s >= kChange_s) {
        state.shown_before.clear();
        return {};
    }
    wake_window();  // another frame is due
    const auto t = static_cast<float>(passed_s / kChange_s);
    std::vector<float> arrived;
    for (const LayerRibbon& ribbon : view.ribbons) {
        const bool stays = std::binary_search(state.shown_before.begin(), state.shown_before.end(),
                                              mark_of(ribbon));
        arrived.push_back(stays ? 1.0F : t);
    }
    return arrived;
}

// ---- toolbar --------------------------------------------------------------------------------

enum class Scope { kOne, kAll, kSome };

Scope scope_of(const LayerView& view) {
    if (view.layers.count() == 1) return Scope::kOne;
    return view.layers.count() == view.num_layers ? Scope::kAll : Scope::kSome;
}

/// A number with buttons below and above it.
bool layer_input(const char* id, int64_t& layer, int64_t last) {
    int value = static_cast<int>(layer);
    ImGui::SetNextItemWidth(em(5.6F));
    if (!ImGui::InputInt(id, &value, 1, 4)) return false;
    layer = std::clamp<int64_t>(value, 0, last);
    return true;
}

void draw_scope(Frame& frame) {
    const LayerView& view = frame.view;
    const int64_t last = std::max<int64_t>(view.num_layers - 1, 0);
    LayerRange layers = view.layers;
    const Scope scope = scope_of(view);
    const auto choose = [&](const char* label, bool on, LayerRange range) {
        if (toggle_button(label, on)) frame.events.selection.layers = range;
        ImGui::SameLine(0, px(3));
    };
    const int64_t middle = view.num_layers / 2;
    choose("One layer###one", scope == Scope::kOne,
           scope == Scope::kOne ? layers : LayerRange{middle, middle});
    if (last > 0) {
        const LayerRange some{std::max<int64_t>(middle - 1, 0), std::min(middle + 1, last)};
        choose("Range###some", scope == Scope::kSome, scope == Scope::kSome ? layers : some);
        choose("All###all", scope == Scope::kAll, {0, last});
    }
    ImGui::SameLine(0, px(10));
    bool changed = false;
    if (scope == Scope::kOne) {
        changed = layer_input("###layer", layers.first, last);
        ImGui::SetItemTooltip("Which layer");
        layers.last = layers.first;
    } else if (scope == Scope::kSome) {
        changed = layer_input("###first", layers.first, last);
        ImGui::SameLine(0, px(5));
        dim_text("to");
        ImGui::SameLine(0, px(5));
        changed = layer_input("###last", layers.last, last) || changed;
        layers.last = std::max(layers.last, layers.first);
    }
    if (changed) frame.events.selection.layers = layers;
}

/// The kinds of calls by colour, and what the other marks mean.
void draw_key(const LayerView& view) {
    std::array<bool, profiler::kOpClassNames.size()> seen{};
    for (const auto& column : view.columns) {
        for (const LayerNode* node : {&column.forward, &column.backward}) {
            if (node->exists) seen[static_cast<size_t>(node->op_class)] = true;
        }
    }
    std::vector<profiler::CallClass> classes;
    for (size_t i = 0; i < seen.size(); ++i) {
        if (seen[i]) classes.push_back(static_cast<profiler::CallClass>(i));
    }
    std::vector<NamedColor> colors = colors_of(classes);
    const float room = ImGui::GetContentRegionAvail().x - px(64);  // beside the help
    while (!colors.empty() && color_legend_width(colors) > room) colors.pop_back();
    color_legend(colors);
    constexpr std::string_view kWidths = "width of a ribbon: bytes, bar in a box: time";
    ImGui::SameLine(0, px(14));
    if (ImGui::GetContentRegionAvail().x > text_width(kWidths) + px(32)) {
        dim_text(kWidths);
        ImGui::SameLine(0, px(6));
    }
    help_marker(
        "A box: a call, in forward above, in backward below.\n"
        "The bar at its outer edge: its time. All bars have one scale; the width of a box has "
        "none.\n"
        "A ribbon: a tensor kept from forward to backward. Its width: its bytes.\n"
        "Dashed: A has it, B has not. Bold outline: B has it, A has not.\n"
        "An arrow at a switch: it raises (up, red) or lowers (down, green) the peak.\n"
        "A clock: some of this time recomputes forward.");
}

/// The prediction stays open beside the next ones.
void draw_keep_button(Frame& frame) {
    const DocumentPtr prediction = frame.context.workspace.prediction();
    if (!prediction || prediction != frame.selection.b) return;
    frame.events.traces.keep_prediction = ImGui::Button(ICON_THUMBTACK "  Keep B###keep_trial");
    ImGui::SetItemTooltip("Another switch replaces %s; keep it to compare it with others",
                          prediction->recipe.c_str());
    ImGui::SameLine(0, px(10));
}

void draw_toolbar(Frame& frame) {
    const float top = ImGui::GetCursorPosY();
    if (toggle_button("Recipe###switches", frame.state.show_switches)) {
        frame.state.show_switches = !frame.state.show_switches;
    }
    ImGui::SetItemTooltip("Show the switches of the recipe");
    ImGui::SameLine(0, px(10));
    draw_keep_button(frame);
    draw_scope(frame);
    ImGui::SameLine(0, px(20));
    const float right = ImGui::GetCursorPosX();
    ImGui::NewLine();
    const float below = ImGui::GetCursorPosY();
    ImGui::SetCursorPos({right, top + ImGui::GetStyle().FramePadding.y});
    draw_key(frame.view);
    for (const std::string& note : frame.view.notes) {
        ImGui::SameLine(0, px(10));
        help_marker(note);
    }
    ImGui::SetCursorPosY(below);
}

// ---- figures --------------------------------------------------------------------------------

/// Green where B needs less, or does more.
ImU32 difference_color(const PairFigure& figure) {
    if (figure.sign == 0) return palette().dim;
    return (figure.sign > 0) == figure.more_is_good ? palette().good : palette().bad;
}

/// A waterfall: the preceding figure is pale, and what this figure adds is in full color. Of two
/// traces the bar shows B, and a mark shows where A ends.
void draw_bar(ImDrawList* draw, const PairFigure& figure, ImVec2 corner, float width) {
    const float height = px(5);
    const bool two = !figure.value[1].empty();
    const auto length = [&](double share) {
        return std::max(px(2), std::round(width * static_cast<float>(share)));
    };
    if (figure.share[0] <= 0 && figure.share[1] <= 0) return;  // no bytes
    draw->AddRectFilled(corner, {corner.x + width, corner.y + height}, palette().raised, px(2));
    const ImU32 color_a = side_color(0);
    const ImU32 filled = two ? side_color(1) : color_a;
    const double share = figure.share[two], start = figure.start[two];
    draw->AddRectFilled(corner, {corner.x + length(share), corner.y + height},
                        with_alpha(filled, 0.4F), px(2));
    const float left = start > 0 ? corner.x + length(start) : corner.x;
    draw->AddRectFilled({left, corner.y}, {corner.x + length(share), corner.y + height}, filled,
                        px(2));
    if (!two) return;
    const float mark = corner.x + length(figure.share[0]);
    draw->AddRectFilled({mark - px(2), corner.y - px(1)}, {mark, corner.y + height + px(1)},
                        color_a);
}

/// "55  →", in front of the value of B; empty if A has the same value.
std::string value_before(const PairFigure& figure) {
    const bool differs = !figure.value[1].empty() && figure.value[0] != figure.value[1];
    return differs ? figure.value[0] + "  \xe2\x86\x92" : "";
}

/// A's value counts only where no difference says what changes.
float wanted_width(const PairFigure& figure) {
    const ScopedFont small(fonts().text, kSmallSize);
    const float label = text_width(figure.label);
    const ScopedFont bold(fonts().bold, kTextSize);
    const std::string before = figure.difference.empty() ? value_before(figure) : "";
    const std::string& last = figure.value[figure.value[1].empty() ? 0 : 1];
    const float values = text_width(before) + text_width(last) + text_width(figure.difference);
    return std::max(label, values + px(21)) + px(2);
}

/// Each figure gets the width that it wants, and an equal share of what is left over. If they want
/// too much, the narrow figures keep their width and the wide ones share the rest.
std::vector<float> cell_widths(const std::vector<PairFigure>& figures, float width) {
    std::vector<float> widths;
    for (const PairFigure& figure : figures) widths.push_back(wanted_width(figure));
    std::vector<float> sorted = widths;
    std::sort(sorted.begin(), sorted.end());
    float left = width, most = 0;
    auto open = static_cast<float>(sorted.size());
    for (const float wanted : sorted) {
        most = std::max(px(40), left / open);
        left -= std::min(wanted, most);
        --open;
    }
    const float spare = std::max(0.0F, left) / static_cast<float>(widths.size());
    for (float& one : widths) one = std::min(one, most) + spare;
    return widths;
}

void draw_figure(ImDrawList* draw, const PairFigure& figure, ImVec2 corner, float width,
                 float bar_width) {
    {
        const ScopedFont small(fonts().text, kSmallSize);
        draw->AddText(corner, palette().dim, fit_to(figure.label, width).c_str());
    }
    const float y = corner.y + px(kSmallSize) + px(4);
    float x = corner.x;
    const bool two = !figure.value[1].empty();
    const std::string& last = two ? figure.value[1] : figure.value[0];
    const auto add = [&](ImFont* face, float size, ImU32 color, const std::string& content) {
        const ScopedFont font(face, size);
        if (x + text_width(content) > corner.x + width) return;
        draw->AddText({std::round(x), y}, color, content.c_str());
        x += text_width(content) + px(7);
    };
    float needed = 0;
    {
        const ScopedFont bold(fonts().bold, kTextSize);
        needed = text_width(last) + text_width(figure.difference) + px(14);
    }
    // A's value only where there is room for everything.
    const std::string before = value_before(figure);
    if (!before.empty() && needed + text_width(before) + px(7) <= width) {
        add(fonts().text, kTextSize, palette().dim, before);
    }
    add(fonts().bold, kTextSize, palette().text, last);
    add(fonts().text, kTextSize, difference_color(figure), figure.difference);
    draw_bar(draw, figure, {corner.x, y + px(kTextSize) + px(7)}, bar_width);
}

/// Says that one figure leads to the next.
void draw_chevron(ImDrawList* draw, ImVec2 middle) {
    const ImU32 ink = with_alpha(palette().dim, 0.7F);
    const float size = px(4);
    draw->AddLine({middle.x - size / 2, middle.y - size}, {middle.x + size / 2, middle.y}, ink,
                  px(1.5F));
    draw->AddLine({middle.x + size / 2, middle.y}, {middle.x - size / 2, middle.y + size}, ink,
                  px(1.5F));
}

/// From one layer to the whole step: figures side by side, bytes with a bar in proportion to them.
void draw_layer_figures(const std::vector<PairFigure>& figures, float width) {
    if (figures.empty()) return;
    const float gap = px(26), height = px(kSmallSize + kTextSize + 20);
    const std::vector<float> widths =
        cell_widths(figures, width - gap * static_cast<float>(figures.size() - 1));
    const float bar = *std::min_element(widths.begin(), widths.end());  // all have one scale
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    float x = corner.x;
    for (size_t i = 0; i < figures.size(); ++i) {
        if (x + widths[i] > corner.x + width + px(1)) break;
        draw_figure(draw, figures[i], {std::round(x), corner.y}, widths[i], bar);
        if (i > 0) draw_chevron(draw, {std::round(x) - gap / 2, corner.y + height / 2});
        x += widths[i] + gap;
    }
    ImGui::Dummy({width, height});
}

// ---- the picture ----------------------------------------------------------------------------

void draw_ribbon_readout(const LayerRibbon& ribbon) {
    if (!ImGui::BeginTooltip()) return;
    category_swatch(ribbon.category);
    bold_text(ribbon.name);
    ImGui::SameLine(0, px(8));
    const ImU32 color = ribbon.presence == Presence::kDisappeared ? palette().good
                        : ribbon.presence == Presence::kAdded     ? palette().bad
                                                                  : palette().text;
    colored_text(color, ribbon.size_text);
    readout_table(ribbon.details);
    ImGui::EndTooltip();
}

void draw_box_readout(const Frame& frame, size_t index, bool in_backward) {
    const auto& column = frame.view.columns[index];
    const LayerNode& node = in_backward ? column.backward : column.forward;
    if (!ImGui::BeginTooltip()) return;
    bold_text(fmt::format("{}, {}", column.title, in_backward ? "backward" : "forward"));
    const char* presence = node.presence == Presence::kDisappeared ? "only A"
                           : node.presence == Presence::kAdded     ? "only B"
                                                                   : "";
    std::string time = node.time_text;
    if (!node.difference_text.empty()) {
        time = fmt::format("{} in B ({} against A)", time, node.difference_text);
    }
    readout_table(
        std::array<std::pair<std::string, std::string>, 5>{{{"module", column.path},
                                                            {"calls", node.calls},
                                                            {"time", time},
                                                            {"recomputes", node.recomputed_text},
                                                            {"runs in", presence}}});
    ImGui::EndTooltip();
}

/// A click selects the tensor or the call everywhere; a click on nothing, or again, clears.
void handle_click(Frame& frame, const LayerHit& hit, const LayerHighlights& highlights) {
    if (!hit || (hit.ribbon && hit.ribbon == highlights.picked_ribbon)) {
        frame.events.selection.clear_tensor = frame.events.selection.clear_call = true;
        return;
    }
    if (hit.ribbon) {
        const LayerRibbon& ribbon = frame.view.ribbons[*hit.ribbon];
        const bool in_b = !ribbon.storage[0].valid();
        frame.events.selection.tensor = PickedTensor{in_b ? frame.selection.b : frame.selection.a,
                                                     ribbon.storage[in_b], ribbon.block[in_b]};
        return;
    }
    const auto& column = frame.view.columns[*hit.column];
    const LayerNode& node = hit.in_backward ? column.backward : column.forward;
    const bool in_b = !node.op[0].valid();
    frame.events.selection.call = PickedCall{in_b, {profiler::CallKind::kOp, node.op[in_b].value}};
}

LayerHighlights highlights_of(const Frame& frame) {
    LayerHighlights highlights;
    highlights.category = frame.selection.category;
    highlights.arrived = arrivals(frame.view, frame.state);
    if (!frame.is_current) return highlights;
    if (const auto& tensor = frame.selection.tensor) {
        highlights.picked_ribbon = profiler::ribbon_of(frame.view, tensor->in_b, tensor->storage);
    }
    if (const auto& call = frame.selection.call) {
        highlights.picked_call = profiler::place_of(frame.view, call->in_b, call->op);
    }
    return highlights;
}

void draw_picture(Frame& frame) {
    const ImVec2 size = ImGui::GetContentRegionAvail();
    const LayerPicture picture = lay_out_picture(ImGui::GetCursorScreenPos(), size);
    frame.state.picture = picture;
    if (!picture.has_room()) {
        dim_text("make the panel larger to see the layer");
        return;
    }
    const bool clicked = ImGui::InvisibleButton("##picture", size);
    LayerHighlights highlights = highlights_of(frame);
    if (ImGui::IsItemHovered()) {
        highlights.hovered = hit_at(frame.view, picture, ImGui::GetMousePos());
        if (highlights.hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    }
    draw_layer_picture(ImGui::GetWindowDrawList(), frame.view, picture, highlights);
    if (highlights.hovered.ribbon)
        draw_ribbon_readout(frame.view.ribbons[*highlights.hovered.ribbon]);
    if (highlights.hovered.column) {
        draw_box_readout(frame, *highlights.hovered.column, highlights.hovered.in_backward);
    }
    if (clicked && frame.is_current) handle_click(frame, highlights.hovered, highlights);
}

/// A line over the picture while the recipe that was asked for is predicted. A prediction that is
/// known is shown at once, so the line waits a little.
void draw_predicting(Frame& frame, ImVec2 corner, float width) {
    constexpr double kPatience_s = 0.1;
    const std::string& recipe = frame.context.workspace.wanted_recipe();
    double& since_s = frame.state.predicting_since_s;
    if (recipe.empty()) {
        since_s = 0;
        return;
    }
    const double now_s = ImGui::GetTime();
    if (since_s == 0) since_s = now_s;
    wake_window();  // until it is predicted, each frame is due
    if (now_s - since_s < kPatience_s) return;
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const auto turn = static_cast<float>(std::fmod(now_s - since_s, 1.2) / 1.2);
    const float left = corner.x + width * (1.3F * turn - 0.3F);
    draw->AddRectFilled(corner, {corner.x + width, corner.y + px(2)}, palette().raised);
    draw->AddRectFilled({std::max(corner.x, left), corner.y},
                        {std::min(corner.x + width, left + width * 0.3F), corner.y + px(2)},
                        palette().accent);
    const std::string what = fit_to(fmt::format("Predicting {} ...", recipe), width - px(16));
    const ImVec2 at{corner.x + px(6), corner.y + px(6)};
    draw->AddRectFilled(
        {at.x - px(4), at.y - px(2)},
        {at.x + text_width(what) + px(4), at.y + ImGui::GetTextLineHeight() + px(2)},
        with_alpha(palette().plot, 0.9F), px(3));
    draw->AddText(at, palette().text, what.c_str());
}

/// From the layer to what it means for the whole step: its memory, the batch on the chosen GPU, and
/// the time.
std::vector<profiler::PairFigure> figures_of(const Frame& frame) {
    std::vector<profiler::PairFigure> figures = frame.view.figures;
    const auto& more = frame.context.workspace.pair_figures();
    if (frame.is_current) figures.insert(figures.end(), more.begin(), more.end());
    return figures;
}

void draw_right_side(Frame& frame) {
    const ScopedChild side("##layer", {0, 0}, 0, ImGuiWindowFlags_NoScrollWithMouse);
    if (!side) return;
    draw_toolbar(frame);
    ImGui::Dummy({0, px(2)});
    if (ImGui::GetContentRegionAvail().y > em(17)) {
        draw_layer_figures(figures_of(frame), ImGui::GetContentRegionAvail().x);
        ImGui::Dummy({0, px(4)});
    }
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    draw_picture(frame);
    draw_predicting(frame, corner, width);
}

void draw_switches(Frame& frame) {
    if (frame.view.switches.empty()) {
        return note_text("The trace does not say which recipe it ran.");
    }
    SwitchColors colors{.a = side_color(0)};
    if (frame.selection.b) colors.b = side_color(1);
    std::string& asked = frame.state.asked;
    const Workspace& workspace = frame.context.workspace;
    const SwitchEffect effect{
        .peak_change_bytes =
            [&](const auto& option) { return workspace.peak_change_bytes(option.recipe); },
        .rows = [&](const auto& option) { return workspace.effect_of(option.recipe); }};
    if (const auto* option = draw_recipe_switches(frame.view.switches, colors, asked, effect)) {
        asked = option->recipe;
        frame.events.recipes.try_recipe = option->recipe;
    }
}

constexpr UnfilledTexts kUnfilled{
    .icon = ICON_LAYERS,
    .purpose =
        "A layer of trace A appears here: its calls, and every tensor that they save for "
        "backward. Trace B lies over it.",
    .error_title = "The layer could not be drawn",
    .working = "Following the tensors of the layer ..."};

}  // namespace

PanelEvents draw_layer_panel(const PanelContext& context, LayerState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    const LayerView* view = choose_view(workspace, state);
    const auto& slot = workspace.slots().layers;
    if (!view) {
        draw_unfilled(kUnfilled, workspace.selection(), slot.error());
        return events;
    }
    if (view->columns.empty()) {
        empty_state(ICON_LAYERS, "This trace records no calls in Transformer layers",
                    "Traces captured or predicted by temposcope hold the calls of each layer.");
        return events;
    }
    Frame frame{context, workspace.selection(), *view, state, events, slot.view() == view};
    // B has the recipe that was asked for, or a notice said what to do.
    if (frame.is_current && workspace.wanted_recipe().empty() && workspace.settled()) {
        state.asked.clear();
    }
    events.recipes.predicts_ahead = true;
    const float width = ImGui::GetContentRegionAvail().x;
    if (state.show_switches && width > em(46)) {
        {
            const ScopedChild left("##switches", {em(13.5F), 0});
            if (left) draw_switches(frame);
        }
        ImGui::SameLine(0, px(12));
    }
    draw_right_side(frame);
    return events;
}

}  // namespace app
