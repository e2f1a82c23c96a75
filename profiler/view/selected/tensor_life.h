#pragma once

#include "profiler/analysis/blocks/block_history.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string>

/// When a trace holds a tensor, and what becomes of a tensor of A in B: not only whether B has it
/// in as many bytes, but what it is alive across.
namespace profiler {

/// Where in a step something happens: "backward of layer 3".
struct StepPlace {
    std::optional<PhaseKind> phase;  // empty: outside of the phases
    int64_t layer = -1;              // -1: in no layer
    int64_t steps_later = 0;         // after the step in which the tensor was made

    friend bool operator==(const StepPlace&, const StepPlace&) = default;
};

/// "backward of layer 3 of the next step"; empty outside of the phases.
std::string text_of(const StepPlace& place);

struct TensorLife {
    int64_t size_bytes = 0;
    bool is_saved = false;          // autograd keeps it for backward
    bool is_in_ledger_step = true;  // false: made in an earlier step, whose saves nobody listed
    StepPlace made;
    std::optional<StepPlace> freed;  // empty: never
    Id<Op> freeing_op;
    int64_t lifetime_ns = 0;   // to the end of the trace, if it is never freed
    double share_of_step = 0;  // of the step that made it, else of the last one
    bool is_at_peak = false;   // live when its step, as above, holds most
};

/// The life of a block; `history` is that of the trace. O(n) for n changes of memory in the step.
TensorLife life_of(const Trace& trace, const BlockHistory& history, Id<Allocation> allocation,
                   bool is_saved);

/// "63.7 ms, 45.1 % of the step"; "to the end, the whole step".
std::string length_text(const TensorLife& life);

/// What becomes of a tensor of A in B.
enum class Fate : uint8_t {
    kUnknown,
    kSame,     // as many bytes, alive across the same
    kSmaller,  // fewer bytes
    kLarger,
    kShorter,  // as many bytes, freed earlier
    kLonger,
    kOther,  // as many bytes, freed in the same place, and yet not the same
    kGone,   // only A holds it
    kAdded,  // only B holds it
};

struct TensorFate {
    Fate fate = Fate::kUnknown;
    std::string text;  // "B frees it in forward of layer 3; A keeps it until backward of layer 3."
};

/// At least one of the two is known; null: the trace does not hold it.
TensorFate compare_lives(const TensorLife* a, const TensorLife* b);

}  // namespace profiler
