#pragma once

#include <imgui.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace app {

/// An earlier layout: where panels lay and which were open.
struct LayoutSnapshot {
    std::string places;  // of save_layout
    std::map<std::string, bool> shown_panels;
};

/// Remembers layouts, so that the user can undo moving or closing a panel, and a reset.
///
/// Once a frame it is told how the layout looks. A different look that has settled (no mouse button
/// is down, the same for some frames) is a change to undo, unless the size of the window has
/// changed too.
class LayoutHistory {
public:
    static constexpr size_t kMaxPast = 30;

    struct Look {
        std::string description;  // of describe_layout
        std::map<std::string, bool> shown_panels;

        friend bool operator==(const Look&, const Look&) = default;
    };

    /// `save` returns the layout as text. It is called only for layouts to remember, because it is
    /// slow.
    template <typename Save>
    void observe(const Look& now, ImVec2 window_size, bool mouse_is_down, const Save& save) {
        if (!is_settled(now, mouse_is_down)) return;
        if (!current_) return take_over(now, window_size, save());
        if (current_->look == now) {
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
        Look look;
        ImVec2 window_size;
        LayoutSnapshot snapshot;
    };

    bool is_settled(const Look& now, bool mouse_is_down);
    void remember_current();
    void take_over(const Look& now, ImVec2 window_size, std::string places);

    std::optional<Known> current_;
    std::vector<Known> past_;  // oldest first
    Look candidate_;
    int frames_equal_ = 0;
    bool restoring_ = false;  // the next change comes from undo() itself
};

}  // namespace app
