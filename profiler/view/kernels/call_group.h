#pragma once

#include "profiler/analysis/step_index.h"
#include "profiler/trace/trace.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Calls, kernels and copies that do the same work: how their times are spread, and which spans of
/// the Kernels panel are theirs.
namespace profiler {

class OutermostOps;

/// The module of a row of the Movement panel: inside its layer, or else its path.
struct ModuleKey {
    std::string path;
    bool is_in_layer = false;

    friend bool operator==(const ModuleKey&, const ModuleKey&) = default;
};

/// What the calls of a group have in common.
struct CallKey {
    CallKind kind = CallKind::kOp;
    std::string name;                 // "aten::addmm"; of a kernel its short_name
    std::optional<PhaseKind> phase;   // empty: any
    std::optional<ModuleKey> module;  // of counted calls only (movement.h); empty: of all

    friend bool operator==(const CallKey&, const CallKey&) = default;
};

/// The name and the phase of a span.
CallKey key_of(const Trace& trace, CallId id);

/// The spans of a group in the order of their rows. Of an op that calls itself under autocast the
/// outer call counts. O(n) for n ops or launches; `counted` is needed for a key with a module.
std::vector<CallId> calls_of(const Trace& trace, const CallKey& key,
                             const OutermostOps* counted = nullptr);

/// How long the calls of one trace take. On a GPU a call takes as long as the kernels and copies
/// that it and the calls in it launch. If no call launches any, the processor's time counts.
struct CallTimes {
    int64_t num_calls = 0;
    int64_t total_ns = 0;
    int64_t least_ns = 0;
    int64_t median_ns = 0;
    int64_t most_ns = 0;
    bool are_of_device = false;
    std::vector<int64_t> counts;  // of calls, by class of the histogram
};

/// The group of a picked call in its own trace and in the other one. The classes of the histogram
/// have equal widths on a logarithmic axis from `low_ns` to `high_ns`, the same for both traces.
struct CallGroup {
    static constexpr std::size_t kNumClasses = 32;

    CallKey key;
    std::size_t source = 0;  // the trace of the picked call
    CallId picked;
    std::vector<CallTimes> sources;  // as asked; without calls where the other trace has none
    double low_ns = 0;
    double high_ns = 0;
    int64_t picked_ns = 0;
    int64_t num_longer = 0;  // calls of its trace that take longer than the picked one
    CallId previous;         // by time, in its trace; invalid: none
    CallId next;
    CallId longest;

    std::size_t class_of(int64_t time_ns) const;
};

/// `traces` are A, or A and B; `picked` belongs to the one at `source`.
CallGroup build_call_group(std::span<const Trace* const> traces, std::size_t source, CallId picked);

/// Calls that the user marked in A and in B.
struct SelectedCalls {
    std::string label;                         // "9 ops of the roofline", "aten::addmm"
    std::array<std::vector<CallKey>, 2> keys;  // by trace

    friend bool operator==(const SelectedCalls&, const SelectedCalls&) = default;
};

struct MarksRequest {
    Steps steps;
    SelectedCalls marks;

    friend bool operator==(const MarksRequest&, const MarksRequest&) = default;
};

/// The spans of one trace that are marked: the calls, what they call, and what all of these launch.
struct MarkedSpans {
    std::array<std::vector<bool>, 3> rows;  // by CallKind and row
    int64_t num_calls = 0;                  // of the keys
    int64_t time_ns = 0;                    // of these, as in CallTimes

    std::vector<bool>& of(CallKind kind) { return rows[static_cast<std::size_t>(kind)]; }
    bool contains(CallId id) const {
        return rows[static_cast<std::size_t>(id.kind)][static_cast<std::size_t>(id.row)];
    }
};

struct MarksView {
    std::vector<MarkedSpans> traces;
};

/// O(n k) for n ops and launches and k keys.
MarksView build_marks_view(const MarksRequest& request);

}  // namespace profiler
