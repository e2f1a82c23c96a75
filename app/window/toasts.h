#pragma once

#include "app/workspace/notice.h"

#include <filesystem>
#include <vector>

/// Notices in a corner of the window, which disappear by themselves.
namespace app {

struct ToastState {
    struct Toast {
        int id = 0;
        Notice notice;
        double until_s = 0;  // on ImGui's clock
    };
    std::vector<Toast> toasts;  // oldest first
    int next_id = 0;
};

/// Errors and warnings stay for 12 s, other notices for 5 s; a toast under the mouse stays, and so
/// does an offer to read a file again.
void add_toast(ToastState& state, Notice notice);

/// In the lower right corner, the newest at the bottom. Returns the files that the user wants to
/// read again.
std::vector<std::filesystem::path> draw_toasts(ToastState& state);
/// Drops the offers to read this file again.
void drop_reload(ToastState& state, const std::filesystem::path& file);

/// Seconds until the next toast disappears; a large number when there is none.
double seconds_to_next_change(const ToastState& state);

}  // namespace app
