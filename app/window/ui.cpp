#include "app/window/ui.h"

#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/window/bars.h"
#include "app/window/session.h"
#include "app/window/verdict.h"
#include "profiler/formats/trace_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace app {
namespace {

// ---- toasts ---------------------------------------------------------------------------------

constexpr size_t kMaxToasts = 5;

struct ToastStyle {
    const char* icon;
    ImU32 color;
};

ToastStyle style_of(const Notice& notice) {
    if (!notice.reload.empty()) return {ICON_ROTATE, palette().accent};  // nothing is done yet
    switch (notice.severity) {
        case profiler::Severity::kError:
            return {ICON_TRIANGLE_EXCLAMATION, palette().bad};
        case profiler::Severity::kWarning:
            return {ICON_TRIANGLE_EXCLAMATION, palette().warn};
        case profiler::Severity::kInfo:
            break;
    }
    return {ICON_CHECK, palette().good};
}

/// True when the user wants to read the file again.
bool draw_reload(const ToastState::Toast& toast) {
    if (toast.notice.reload.empty()) return false;
    ImGui::Dummy({em(1.4F), 0});
    ImGui::SameLine(0, 0);
    const bool clicked = ImGui::Button(ICON_ROTATE "  Reload###reload");
    ImGui::SetItemTooltip("%s", toast.notice.reload.c_str());
    return clicked;
}

/// Returns false when the user closed it. `bottom` moves up by the toast's height.
bool draw_toast(ToastState::Toast& toast, float& bottom,
                std::vector<std::filesystem::path>& reload) {
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    const float width = 26 * ImGui::GetFontSize();
    const ToastStyle style = style_of(toast.notice);
    ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x - em(0.8F), bottom}, 0,
                            {1, 1});
    ImGui::SetNextWindowSize({width, 0});
    const ScopedStyle padding(ImGuiStyleVar_WindowPadding, {em(0.8F), em(0.6F)});
    const ScopedColor background(ImGuiCol_WindowBg, palette().popup);
    const std::string name = fmt::format("##toast{}", toast.id);
    bool keep = true;
    {
        const ScopedWindow window(name.c_str(), nullptr,
                                  ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoDocking |
                                      ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoMove |
                                      ImGuiWindowFlags_NoFocusOnAppearing |
                                      ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoNav);
        const ImVec2 corner = ImGui::GetWindowPos();
        const float height = ImGui::GetWindowHeight();
        ImGui::GetWindowDrawList()->AddRectFilled(corner, {corner.x + em(0.2F), corner.y + height},
                                                  style.color, em(0.2F));
        {
            const ScopedColor color(ImGuiCol_Text, style.color);
            ImGui::TextUnformatted(style.icon);
        }
        ImGui::SameLine(0, em(0.5F));
        ImGui::PushTextWrapPos(width - em(2.4F));
        ImGui::TextUnformatted(toast.notice.text.c_str());
        ImGui::PopTextWrapPos();
        if (draw_reload(toast)) {
            reload.push_back(toast.notice.reload);
            keep = false;
        }
        ImGui::SameLine();
        ImGui::SetCursorPos({width - em(2.1F), em(0.35F)});
        const ScopedColor quiet(ImGuiCol_Button, 0);
        if (ImGui::SmallButton(ICON_XMARK)) keep = false;
        bottom -= height + em(0.5F);
        if (ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem)) {
            toast.until_s = std::max(toast.until_s, ImGui::GetTime() + 2);
        }
    }
    return keep && ImGui::GetTime() < toast.until_s;
}

/// Errors and warnings stay for 12 s, other notices for 5 s; a toast under the mouse stays, and so
/// does an offer to read a file again.
void add_toast(ToastState& state, Notice notice) {
    constexpr double kUntilClosed = 1e9;
    const double seconds = !notice.reload.empty()                         ? kUntilClosed
                           : notice.severity == profiler::Severity::kInfo ? 5
                                                                          : 12;
    const double until_s = ImGui::GetTime() + seconds;
    std::erase_if(state.toasts, [&](const auto& t) {
        return t.notice.text == notice.text && t.notice.reload == notice.reload;
    });
    state.toasts.push_back({state.next_id++, std::move(notice), until_s});
    if (state.toasts.size() <= kMaxToasts) return;
    // An offer to read a file again is not made twice, so it stays the longest.
    const auto least = std::find_if(state.toasts.begin(), state.toasts.end(),
                                    [](const auto& t) { return t.notice.reload.empty(); });
    state.toasts.erase(least != state.toasts.end() ? least : state.toasts.begin());
}

/// In the lower right corner, the newest at the bottom. Returns the files that the user wants to
/// read again.
std::vector<std::filesystem::path> draw_toasts(ToastState& state) {
    std::vector<std::filesystem::path> reload;
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    float bottom = viewport->WorkPos.y + viewport->WorkSize.y - em(0.8F);
    for (auto toast = state.toasts.rbegin(); toast != state.toasts.rend(); ++toast) {
        if (!draw_toast(*toast, bottom, reload)) toast->until_s = 0;
    }
    std::erase_if(state.toasts, [](const auto& toast) { return toast.until_s == 0; });
    return reload;
}

/// Drops the offers to read this file again.
void drop_reload(ToastState& state, const std::filesystem::path& file) {
    std::erase_if(state.toasts, [&](const auto& toast) {
        return !toast.notice.reload.empty() && toast.notice.reload == file;
    });
}

/// Seconds until the next toast disappears; a large number when there is none.
double seconds_to_next_change(const ToastState& state) {
    double seconds = 1e9;
    for (const auto& toast : state.toasts) {
        seconds = std::min(seconds, std::max(0.0, toast.until_s - ImGui::GetTime()));
    }
    return seconds;
}

// ---- docks and panels -----------------------------------------------------------------------

/// Also the closed windows, so that a window has its place when it comes back.
std::vector<DockedWindow> docked_windows(Layout layout) {
    std::vector<DockedWindow> windows;
    for (const PanelWindow& window : all_windows()) {
        const PlaceInLayout& in_layout = window.panel->places[static_cast<size_t>(layout)];
        windows.push_back({window_name(window), in_layout.place, window.number > 1});
    }
    return windows;
}

std::map<std::string, bool> shown_panels(const Ui& ui) {
    std::map<std::string, bool> shown;
    for (const PanelWindow& window : all_windows()) shown[id_of(window)] = is_open(ui, window);
    return shown;
}

/// The dock space. Builds the default layout at the first start, when the user asks for it, and
/// when the window becomes small or large while the user has not moved a panel.
void draw_docks(Ui& ui) {
    if (std::exchange(ui.reset_layout, false)) {
        ui.settings.shown_panels.clear();
        ui.settings.layout_areas = 0;  // builds it again
    }
    const std::vector<DockedWindow> windows = docked_windows(layout_of(ui));
    const int areas = areas_for(ImGui::GetMainViewport()->Size, ui.settings.layout_areas);
    const bool is_reset = ui.settings.layout_areas == 0;
    const bool outgrown = areas != ui.settings.layout_areas &&
                          ui.settings.layout_placement == describe_placement(windows);
    const bool rebuilt = draw_dockspace(windows, areas, is_reset || outgrown);
    if (rebuilt) {
        ui.settings.layout_areas = areas;
        ui.settings.layout_placement.clear();
        ui.layout_settles_in = 3;
        // Where panels share a place, the first one is in front. The main one gets the focus, or
        // the panel that had it before the window changed its size.
        ui.focus_queue = front_panels(ui);
        if (!is_reset && !ui.focused_panel.empty()) ui.focus_queue.push_back(ui.focused_panel);
    }
    if (ui.layout_settles_in > 0 && --ui.layout_settles_in == 0) {
        ui.settings.layout_placement = describe_placement(windows);
    }
    ui.layout_history.observe({describe_layout(windows), shown_panels(ui)},
                              ImGui::GetMainViewport()->WorkSize, ImGui::IsAnyMouseDown(),
                              save_layout);
}

/// A right click in the current panel that neither drags nor opens a menu of its own.
bool wants_panel_menu() {
    const ImGuiIO& io = ImGui::GetIO();
    const float slack = io.MouseDragThreshold * io.MouseDragThreshold;
    return ImGui::IsMouseReleased(ImGuiMouseButton_Right) &&
           io.MouseDragMaxDistanceSqr[ImGuiMouseButton_Right] < slack &&
           ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows |
                                  ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) &&
           !ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
}

/// A further window appears beside the one it was made from, and stays where the user puts it. A
/// view takes the place of the one that its panel showed before.
void place_window(Ui& ui, const PanelWindow& window) {
    if (const auto made = ui.new_windows.extract(id_of(window))) {
        place_next_window(made.mapped(), ImGuiCond_Always);
    } else if (window.number > 1) {
        place_next_window(window_name({window.panel}), ImGuiCond_FirstUseEver);
    }
}

/// Buttons for the views of a panel.
void draw_views(Ui& ui, const PanelWindow& window) {
    const auto views = views_beside(*window.panel);
    if (window.number > 1 || views.size() < 2) return;
    for (const PanelRow* view : views) {
        if (view != views.front()) ImGui::SameLine(0, px(2));
        const std::string label = fmt::format("{}###view_{}", view->part, view->id);
        if (toggle_button(label.c_str(), view == window.panel) && view != window.panel) {
            show_panel(ui, view->id);
        }
        ImGui::SetItemTooltip("%s", view->title);
    }
}

/// Returns what the user asked for in it; nullopt: this frame does not show it.
std::optional<PanelEvents> draw_window(Ui& ui, const PanelWindow& window) {
    const std::string id = id_of(window), name = window_name(window);
    const PanelContext context{ui.workspace, ui.workspace.views(window.number),
                               ui.settings.recent_files, ui.cursor_ns};
    std::optional<PanelEvents> events;
    bool open = true;
    place_window(ui, window);
    if (const ScopedWindow drawn(name.c_str(), &open, window.panel->flags); drawn) {
        if (ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows)) ui.focused_panel = id;
        if (ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows)) ui.hovered_panel = id;
        draw_views(ui, window);
        events = window.panel->draw(context, states_of(ui, window.number));
        ui.panel_rects[id] = {ImGui::GetWindowPos(), ImGui::GetWindowSize()};
        if (wants_panel_menu()) open_panel_menu(ui, id);
    }
    if (events && tab_bar_button(name, ICON_FILE_EXPORT "###panel_menu",
                                 window.panel->can_repeat
                                     ? "Copy or save what this panel shows, or open it once more"
                                     : "Copy or save what this panel shows")) {
        open_panel_menu(ui, id);
    }
    if (!open) set_open(ui, window, false);
    return events;
}

/// What is selected is described: the Inspector comes to the front, unless it would hide the panel
/// of the click.
void show_selected(Ui& ui, const PanelWindow& clicked, const PanelEvents& events) {
    if (!events.selection.tensor && !events.selection.call) return;
    const PanelWindow selected = meant_window(ui, "inspector");
    if (clicked.panel == selected.panel) return;
    if (share_place(window_name(clicked), window_name(selected))) return;
    set_open(ui, selected, true);
    reveal_tab(window_name(selected));
}

void draw_panels(Ui& ui) {
    draw_docks(ui);
    std::string front;
    if (!ui.focus_queue.empty()) {
        front = ui.focus_queue.front();
        ui.focus_queue.erase(ui.focus_queue.begin());
    }
    ui.panel_rects.clear();
    std::vector<std::pair<PanelWindow, PanelEvents>> events;
    for (const PanelWindow& window : all_windows()) {
        if (!is_open(ui, window)) continue;
        const bool comes_to_front = id_of(window) == front;
        if (comes_to_front) ImGui::SetNextWindowFocus();
        if (auto asked = draw_window(ui, window)) {
            events.emplace_back(window, std::move(*asked));
        }
        if (comes_to_front) reveal_tab(window_name(window));
    }
    ui.cursor_ns.reset();
    for (const auto& [window, event] : events) {
        if (event.time.cursor_ns) ui.cursor_ns = event.time.cursor_ns;
        if (event.traces.ask_for_files) ui.open_dialog.request_open = true;
        if (event.capture.fill) {
            StepForm& form = ui.panels.capture.form;
            form = capture_form_of(*event.capture.fill, std::move(form));
        }
        if (event.capture.fill) show_panel(ui, "capture");
        if (event.advice.show_run) ui.run_dialog.request_open = true;
        if (event.advice.show_plan) switch_layout(ui, Layout::kPlan);
        show_selected(ui, window, event);
        ui.workspace.apply(event, window.number);
    }
}

void draw_dialogs(Ui& ui) {
    if (const auto files = draw_file_dialog(
            {.title = "Open traces", .button = "Open", .extensions = profiler::trace_extensions()},
            ui.open_dialog)) {
        ui.workspace.open(*files);
    }
    if (auto form = draw_run_dialog(ui.workspace.gpus(), ui.run_dialog)) {
        ui.workspace.apply({.advice = {.run = std::move(form)}});
    }
    draw_export_dialog(ui);
    draw_panel_menu(ui);
}

/// Files that were opened choose the layout. The panel of ranks is there for ranks alone.
void choose_layout(Ui& ui) {
    const Selection& selection = ui.workspace.selection();
    switch_layout(ui, selection.b ? Layout::kCompare : Layout::kExplain);
    const bool has_ranks = !ranks_beside(selection.a, ui.workspace.documents()).empty();
    if (has_ranks && !is_open(ui, *find_window("ranks"))) show_panel(ui, "ranks");
}

void take_news(Ui& ui) {
    if (ui.workspace.take_has_more()) choose_layout(ui);
    for (const auto& file : ui.workspace.take_opened()) {
        ui.settings.remember_file(file);
        drop_reload(ui.toasts, file);
    }
    if (const auto text = ui.workspace.exports().take_copied())
        ImGui::SetClipboardText(text->c_str());
    for (Notice& notice : ui.workspace.take_notices()) add_toast(ui.toasts, std::move(notice));
}

}  // namespace

void set_up(Ui& ui, Settings settings) {
    ui.settings = std::move(settings);
    ui.actions = make_actions();
    if (std::string sentence = apply_keys(ui.actions, ui.settings.keys); !sentence.empty()) {
        ui.workspace.notify(profiler::Severity::kWarning, std::move(sentence));
    }
    ui.panels.capture.form = form_from_fields(ui.settings.capture_form);
    restore_choices(ui.workspace, ui.settings.session);
    restore_windows(ui);
}

Settings current_settings(const Ui& ui) {
    Settings settings = ui.settings;
    settings.capture_form = to_fields(ui.panels.capture.form);
    settings.keys = changed_keys(ui.actions);
    settings.session = session_of(ui.workspace);
    remember_windows(ui, settings);
    return settings;
}

void restore_layout(Ui& ui, const LayoutSnapshot& layout) {
    load_layout(layout.places);
    for (const auto& [id, open] : layout.shown_panels) {
        if (find_window(id)) ui.settings.shown_panels[id] = open;
    }
}

bool needs_next_frame(const Ui& ui) {
    return ui.picture || ui.layout_to_restore || !ui.focus_queue.empty() ||
           ui.layout_settles_in > 0;
}

double seconds_to_next_frame(const Ui& ui) {
    constexpr double kRunning_s = 0.5;  // the time that a program has run is shown in seconds
    const double next_s = seconds_to_next_change(ui.toasts) + 0.01;
    return ui.workspace.programs().busy() ? std::min(next_s, kRunning_s) : next_s;
}

void draw_ui(Ui& ui) {
    ui.workspace.search({ui.palette.query, ui.palette.is_open});
    ui.workspace.reload_changed_files(ui.settings.reload_changed_files);
    show_open_windows(ui);
    ui.workspace.update();
    take_news(ui);
    run_shortcuts(ui);
    draw_menu_bar(ui);
    draw_tool_bar(ui);
    draw_verdict(ui);
    draw_status_bar(ui);
    draw_panels(ui);
    draw_dialogs(ui);
    draw_command_palette(ui.palette,
                         [&](const std::string& query) { return palette_content(ui, query); });
    draw_keyboard_window(ui);
    if (ui.show_metrics) ImGui::ShowMetricsWindow(&ui.show_metrics);
    if (const auto files = draw_toasts(ui.toasts); !files.empty()) ui.workspace.open(files);
}

}  // namespace app
