#include "app/window/layout_history.h"

#include <utility>

namespace app {
namespace {
constexpr int kFramesToSettle = 2;  // panels take their places a frame after they are docked
}

bool LayoutHistory::is_settled(const Look& now, bool mouse_is_down) {
    if (mouse_is_down || !(now == candidate_)) {
        candidate_ = now;
        frames_equal_ = 0;
        return false;
    }
    return ++frames_equal_ >= kFramesToSettle;
}

void LayoutHistory::remember_current() {
    past_.push_back(std::move(*current_));
    if (past_.size() > kMaxPast) past_.erase(past_.begin());
}

void LayoutHistory::take_over(const Look& now, ImVec2 window_size, std::string places) {
    current_ = Known{now, window_size, {std::move(places), now.shown_panels}};
    restoring_ = false;
}

std::optional<LayoutSnapshot> LayoutHistory::undo() {
    if (past_.empty()) return std::nullopt;
    LayoutSnapshot snapshot = std::move(past_.back().snapshot);
    past_.pop_back();
    restoring_ = true;
    frames_equal_ = 0;
    return snapshot;
}

}  // namespace app
