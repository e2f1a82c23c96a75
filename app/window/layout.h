#pragma once

#include "app/panels/panels.h"

#include <imgui.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

/// The default layout, what the layout is now, and what it was.
namespace app {

struct DockedWindow {
    std::string name;  // as given to ImGui::Begin
    DockPlace place = DockPlace::kMain;
    bool is_further = false;  // not the first window of its panel
};

/// In how many areas a window of this size shows panels: 4 as DockPlace has them, 2 with all but
/// the main one in the lower area, or 1. A window gets more than the areas that it has only when
/// there is room to spare, so that the layout does not flicker while the user drags its edge.
int areas_for(ImVec2 size, int areas_now);

/// The area in which panels dock: the window without its bars. Builds the default layout if there
/// is no saved layout or `rebuild` is set. Returns true if it built the layout.
bool draw_dockspace(const std::vector<DockedWindow>& windows, int areas, bool rebuild);

/// Which window lies in which place, as text to compare: it changes when the user moves a panel,
/// and does not depend on the size of the window.
std::string describe_placement(const std::vector<DockedWindow>& windows);
/// The same with the share of the window that each place has.
std::string describe_layout(const std::vector<DockedWindow>& windows);

/// Windows and places as ImGui writes them to its file, without tables.
std::string save_layout();
/// Only between frames.
void load_layout(const std::string& layout);
/// The layout that ImGui saved into `file` in an earlier run, if there is one.
void load_saved_layout(const std::string& file);

/// The next window appears as a tab beside another one, or near it if that floats.
void place_next_window(const std::string& beside, ImGuiCond condition);

/// Whether two windows are tabs of one place.
bool share_place(const std::string& one, const std::string& other);

/// Brings the window to the front of its tabs, and scrolls them to it.
void reveal_tab(const std::string& name);

/// Closes the innermost menu or popup; false when none is open.
bool close_popup();

/// A small button at the right end of the tab bar in which the window `name` is the visible one.
/// Returns true when it was clicked.
bool tab_bar_button(const std::string& name, const char* label, const char* tooltip);

/// A bar over the window's whole width. Call ImGui::End in any case.
bool begin_bar(const char* name, ImGuiDir side, float height);

/// An earlier layout: where panels lay and which were open.
struct LayoutSnapshot {
    std::string places;  // of save_layout
    std::map<std::string, bool> shown_panels;
};

/// Remembers layouts, so that the user can undo moving or closing a panel, and a reset.
///
/// Once a frame it is told the arrangement of the panels. A different arrangement that has settled
/// (no mouse button is down, the same for some frames) is a change to undo, unless the size of the
/// window has changed too.
class LayoutHistory {
public:
    static constexpr size_t kMaxPast = 30;

    struct Arrangement {
        std::string description;  // of describe_layout
        std::map<std::string, bool> shown_panels;

        friend bool operator==(const Arrangement&, const Arrangement&) = default;
    };

    /// `save` returns the layout as text. It is called only for layouts to remember, because it is
    /// slow.
    template <typename Save>
    void observe(const Arrangement& now, ImVec2 window_size, bool mouse_is_down, const Save& save) {
        if (!is_settled(now, mouse_is_down)) return;
        if (!current_) return take_over(now, window_size, save());
        if (current_->arrangement == now) {
            restoring_ = false;
            return;
        }
        const bool resized =
            window_size.x != current_->window_size.x || window_size.y != current_->window_size.y;
        if (!resized && !restoring_) remember_current();
        take_over(now, window_size, save());
    }

    bool can_undo() const { return !past_.empty(); }
    /// The layout before the last change, to be loaded between frames.
    std::optional<LayoutSnapshot> undo();

private:
    struct Known {
        Arrangement arrangement;
        ImVec2 window_size;
        LayoutSnapshot snapshot;
    };

    bool is_settled(const Arrangement& now, bool mouse_is_down);
    void remember_current();
    void take_over(const Arrangement& now, ImVec2 window_size, std::string places);

    std::optional<Known> current_;
    std::vector<Known> past_;  // oldest first
    Arrangement candidate_;
    int frames_equal_ = 0;
    bool restoring_ = false;  // the next change comes from undo() itself
};

}  // namespace app
