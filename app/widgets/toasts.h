#pragma once

#include "profiler/trace/trace.h"

#include <string>
#include <vector>

/// Sentences that the user must see once: a file that does not open, a capture that ended.
namespace app {

struct Notice {
    profiler::Severity severity = profiler::Severity::kInfo;
    std::string text;  // one sentence
};

struct ToastState {
    struct Toast {
        int id = 0;
        Notice notice;
        double until_s = 0;  // on ImGui's clock
    };
    std::vector<Toast> toasts;  // oldest first
    int next_id = 0;
};

/// Errors stay 12 s, the rest 5 s; a toast under the mouse stays.
void add_toast(ToastState& state, Notice notice);

/// In the lower right corner, newest at the bottom.
void draw_toasts(ToastState& state);

/// Until a toast goes by itself; a large number when there is none.
double seconds_to_next_change(const ToastState& state);

}  // namespace app
