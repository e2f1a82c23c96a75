#include "app/widgets/theme.h"

#include "app/widgets/fonts.h"

#include <implot.h>

namespace app {
namespace {

Palette& current_palette() {
    static Palette palette;
    return palette;
}

ImVec4 mix(ImU32 from, ImU32 to, float share) {
    const ImVec4 a = to_vec4(from), b = to_vec4(to);
    return {a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share, a.z + (b.z - a.z) * share, 1};
}

ImVec4 alpha(ImU32 color, float a) { return to_vec4(with_alpha(color, a)); }

Palette make_palette(const profiler::Theme& theme) {
    Palette p;
    p.dark = theme.is_dark;
    p.background = to_u32(theme.background);
    p.panel = to_u32(theme.panel);
    p.raised = to_u32(theme.raised);
    p.popup = to_u32(theme.is_dark ? profiler::mix(theme.panel, theme.raised, 0.55) : theme.panel);
    p.plot = to_u32(theme.plot);
    p.border = to_u32(theme.border);
    p.text = to_u32(theme.text);
    p.dim = to_u32(theme.dim_text);
    p.accent = to_u32(theme.accent);
    p.good = to_u32(theme.good);
    p.bad = to_u32(theme.bad);
    p.warn = to_u32(theme.warning);
    return p;
}

void set_sizes(ImGuiStyle& style) {
    style.FontSizeBase = kTextSize;
    style.WindowPadding = {10, 8};
    style.FramePadding = {8, 4};
    style.ItemSpacing = {8, 6};
    style.ItemInnerSpacing = {6, 4};
    style.CellPadding = {8, 3};
    style.IndentSpacing = 16;
    style.ScrollbarSize = 11;
    style.GrabMinSize = 10;
    style.WindowRounding = style.ChildRounding = style.FrameRounding = style.TabRounding = 4;
    style.PopupRounding = style.ScrollbarRounding = 6;
    style.GrabRounding = 3;
    style.FrameBorderSize = 0;
    style.TabBorderSize = 0;
    style.TabBarOverlineSize = 2;
    style.DockingSeparatorSize = 3;
    style.WindowMenuButtonPosition = ImGuiDir_None;
    style.DockingNodeHasCloseButton = false;
    style.TabCloseButtonMinWidthSelected = style.TabCloseButtonMinWidthUnselected = 0;  // hovered
    style.SeparatorTextBorderSize = 1;
    style.SeparatorTextPadding = {0, 4};
    style.HoverDelayShort = 0.12F;
    style.HoverStationaryDelay = 0.05F;
}

void set_surface_colors(ImVec4* c, const Palette& p) {
    const auto lift = [&](float share) { return mix(p.panel, p.text, share); };
    c[ImGuiCol_Text] = to_vec4(p.text);
    c[ImGuiCol_TextDisabled] = to_vec4(p.dim);
    c[ImGuiCol_WindowBg] = to_vec4(p.panel);
    c[ImGuiCol_ChildBg] = {};
    c[ImGuiCol_PopupBg] = to_vec4(p.popup);
    c[ImGuiCol_Border] = to_vec4(p.border);
    c[ImGuiCol_BorderShadow] = {};
    c[ImGuiCol_FrameBg] = to_vec4(p.raised);
    c[ImGuiCol_FrameBgHovered] = lift(0.14F);
    c[ImGuiCol_FrameBgActive] = lift(0.18F);
    c[ImGuiCol_TitleBg] = c[ImGuiCol_TitleBgActive] = c[ImGuiCol_TitleBgCollapsed] =
        to_vec4(p.background);
    c[ImGuiCol_MenuBarBg] = to_vec4(p.background);
    c[ImGuiCol_ScrollbarBg] = {};
    c[ImGuiCol_ScrollbarGrab] = lift(0.16F);
    c[ImGuiCol_ScrollbarGrabHovered] = lift(0.24F);
    c[ImGuiCol_ScrollbarGrabActive] = lift(0.32F);
    c[ImGuiCol_Button] = to_vec4(p.raised);
    c[ImGuiCol_ButtonHovered] = lift(0.15F);
    c[ImGuiCol_ButtonActive] = lift(0.20F);
    c[ImGuiCol_TabHovered] = lift(0.10F);
    c[ImGuiCol_Tab] = c[ImGuiCol_TabDimmed] = to_vec4(p.background);
    c[ImGuiCol_TabSelected] = c[ImGuiCol_TabDimmedSelected] = to_vec4(p.panel);
    c[ImGuiCol_DockingEmptyBg] = to_vec4(p.background);
    c[ImGuiCol_TableHeaderBg] = mix(p.panel, p.raised, 0.6F);
    c[ImGuiCol_TableBorderStrong] = to_vec4(p.border);
    c[ImGuiCol_TableBorderLight] = alpha(p.border, 0.55F);
    c[ImGuiCol_TableRowBg] = {};
    c[ImGuiCol_TableRowBgAlt] = p.dark ? ImVec4(1, 1, 1, 0.018F) : ImVec4(0, 0, 0, 0.022F);
    c[ImGuiCol_ModalWindowDimBg] = {0, 0, 0, 0.45F};
}

void set_accent_colors(ImVec4* c, const Palette& p) {
    c[ImGuiCol_CheckMark] = c[ImGuiCol_SliderGrab] = c[ImGuiCol_SliderGrabActive] =
        to_vec4(p.accent);
    c[ImGuiCol_Header] = alpha(p.accent, p.dark ? 0.22F : 0.16F);
    c[ImGuiCol_HeaderHovered] = alpha(p.accent, p.dark ? 0.16F : 0.11F);
    c[ImGuiCol_HeaderActive] = alpha(p.accent, 0.30F);
    c[ImGuiCol_Separator] = to_vec4(p.border);
    c[ImGuiCol_SeparatorHovered] = alpha(p.accent, 0.6F);
    c[ImGuiCol_SeparatorActive] = to_vec4(p.accent);
    c[ImGuiCol_ResizeGrip] = {};
    c[ImGuiCol_ResizeGripHovered] = alpha(p.accent, 0.4F);
    c[ImGuiCol_ResizeGripActive] = alpha(p.accent, 0.8F);
    c[ImGuiCol_TabSelectedOverline] = to_vec4(p.accent);
    c[ImGuiCol_TabDimmedSelectedOverline] = to_vec4(p.border);
    c[ImGuiCol_DockingPreview] = alpha(p.accent, 0.35F);
    c[ImGuiCol_TextSelectedBg] = alpha(p.accent, 0.35F);
    c[ImGuiCol_NavCursor] = to_vec4(p.accent);
    c[ImGuiCol_PlotHistogram] = to_vec4(p.accent);
    c[ImGuiCol_TextLink] = to_vec4(p.accent);
    c[ImGuiCol_DragDropTarget] = to_vec4(p.accent);
}

void set_plot_style(ImPlotStyle& style, const Palette& p, float scale) {
    style.PlotBorderSize = 1;
    style.MajorTickLen = {4, 4};
    style.MinorTickLen = style.MinorGridSize = {0, 0};
    style.PlotPadding = {6, 6};
    style.LabelPadding = {6, 4};
    style.LegendPadding = {8, 8};
    style.LegendInnerPadding = {8, 5};
    style.LegendSpacing = {8, 2};
    style.AnnotationPadding = {5, 2};
    style.FitPadding = {0, 0.06F};
    // ImPlot has no ScaleAllSizes.
    for (ImVec2* size :
         {&style.MajorTickLen, &style.PlotPadding, &style.LabelPadding, &style.LegendPadding,
          &style.LegendInnerPadding, &style.LegendSpacing, &style.AnnotationPadding}) {
        *size *= scale;
    }
    ImVec4* c = style.Colors;
    c[ImPlotCol_FrameBg] = {};
    c[ImPlotCol_PlotBg] = to_vec4(p.plot);
    c[ImPlotCol_PlotBorder] = to_vec4(p.border);
    c[ImPlotCol_LegendBg] = alpha(p.panel, 0.88F);
    c[ImPlotCol_LegendBorder] = alpha(p.border, 0.7F);
    c[ImPlotCol_LegendText] = c[ImPlotCol_TitleText] = c[ImPlotCol_InlayText] = to_vec4(p.text);
    c[ImPlotCol_AxisText] = to_vec4(p.dim);
    c[ImPlotCol_AxisGrid] = alpha(p.text, p.dark ? 0.07F : 0.09F);
    c[ImPlotCol_AxisTick] = alpha(p.dim, 0.5F);
    c[ImPlotCol_AxisBg] = {};
    c[ImPlotCol_AxisBgHovered] = alpha(p.accent, 0.10F);
    c[ImPlotCol_AxisBgActive] = alpha(p.accent, 0.18F);
    c[ImPlotCol_Selection] = to_vec4(p.accent);
    c[ImPlotCol_Crosshairs] = alpha(p.text, 0.35F);
}

}  // namespace

void apply_theme(bool dark, float scale) {
    current_palette() = make_palette(dark ? profiler::dark_theme() : profiler::light_theme());
    const Palette& p = current_palette();
    ImGuiStyle& style = ImGui::GetStyle();
    style = ImGuiStyle();  // ScaleAllSizes must not compound
    dark ? ImGui::StyleColorsDark(&style) : ImGui::StyleColorsLight(&style);
    set_sizes(style);
    set_surface_colors(style.Colors, p);
    set_accent_colors(style.Colors, p);
    style.ScaleAllSizes(scale);
    style.FontScaleDpi = scale;
    ImPlot::BustColorCache();  // it caches the colours of the first frame
    ImPlot::GetStyle() = ImPlotStyle();
    set_plot_style(ImPlot::GetStyle(), p, scale);
}

const Palette& palette() { return current_palette(); }

const profiler::Theme& current_theme() {
    return current_palette().dark ? profiler::dark_theme() : profiler::light_theme();
}

ImU32 call_color(profiler::CallClass call_class) {
    return to_u32(profiler::color_of(current_theme(), call_class));
}

ImU32 category_color(profiler::Category category) {
    return to_u32(profiler::color_of(current_theme(), category));
}

ImU32 recipe_color(size_t index) { return to_u32(profiler::recipe_color(current_theme(), index)); }

ImU32 side_color(size_t side) { return to_u32(profiler::side_color(current_theme(), side)); }

ImU32 tone_color(profiler::Tone tone) {
    switch (tone) {
        case profiler::Tone::kGood:
            return palette().good;
        case profiler::Tone::kBad:
            return palette().bad;
        case profiler::Tone::kNeutral:
        case profiler::Tone::kStrong:
            break;
    }
    return palette().text;
}

float em(float size) { return size * ImGui::GetFontSize(); }
float px(float pixels) { return pixels * ImGui::GetStyle().FontScaleDpi; }

ImU32 ink_on(ImU32 fill) {
    const auto channel = [fill](int shift) { return static_cast<uint8_t>(fill >> shift & 255); };
    return to_u32(profiler::ink_on(
        {channel(IM_COL32_R_SHIFT), channel(IM_COL32_G_SHIFT), channel(IM_COL32_B_SHIFT)}));
}

ImU32 with_alpha(ImU32 color, float alpha) {
    return (color & ~IM_COL32_A_MASK) | (static_cast<ImU32>(alpha * 255) << IM_COL32_A_SHIFT);
}

ImU32 to_u32(profiler::Color color, float alpha) {
    return with_alpha(IM_COL32(color.r, color.g, color.b, 255), alpha);
}

ImVec4 to_vec4(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }

}  // namespace app
