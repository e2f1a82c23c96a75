#pragma once

#include "app/workspace/notice.h"

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

/// Errors and warnings stay for 12 s, other notices for 5 s; a toast under the mouse stays.
void add_toast(ToastState& state, Notice notice);

/// In the lower right corner, the newest at the bottom.
void draw_toasts(ToastState& state);

/// Seconds until the next toast disappears; a large number when there is none.
double seconds_to_next_change(const ToastState& state);

}  // namespace app
