#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace profiler {

/// The phases of a trace by the allocator's events. An update may run inside of backward, and
/// counts first; other phases do not overlap.
class PhasesByEvent {
public:
    explicit PhasesByEvent(const Trace& trace);

    /// Between phases and outside of steps: none.
    std::optional<Phase> at(int64_t event) const;
    std::optional<PhaseKind> kind_at(int64_t event) const;
    /// Whether an update by the optimizer began before the event.
    bool has_update_before(int64_t event) const;

private:
    std::vector<Phase> updates_, others_;  // by their first event
};

}  // namespace profiler
