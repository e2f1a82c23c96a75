#pragma once

#include "profiler/analysis/ops/movement.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// The calls of a trace whose arithmetic and data movement are counted.
namespace profiler {

/// The module of a call; of a call of backward, the module of its forward op.
struct CallPlace {
    std::string_view path;  // of the trace; empty: outside of modules
    int64_t layer = -1;
    std::string_view layer_path;  // of the layer itself; empty outside of layers
};

/// Only the outermost of nested counted calls is counted: it has to move at least what its inner
/// calls move together. Built in O(n) for n ops, launches and tensors. Borrows the trace.
class OutermostOps {
public:
    explicit OutermostOps(const Trace& trace);

    /// The counted call that a call belongs to, which may be itself; invalid: none.
    Id<Op> owner_of(Id<Op> op) const { return owners_[op.index()]; }
    bool is_counted(Id<Op> op) const { return owner_of(op) == op; }

    /// Empty for what did not run in a recorded step.
    std::optional<PhaseKind> phase_of(Id<Op> op) const;
    CallPlace place_of(Id<Op> op) const;

    /// Whether the trace holds kernels or copies: these are then the times of calls.
    bool has_device_times() const { return has_device_times_; }
    /// Of kernels and copies: of a counted call, all that it or a call in it launched; of a call
    /// that belongs to none, what it launched itself.
    int64_t device_ns_of(Id<Op> op) const { return device_ns_[op.index()]; }
    int64_t time_of(Id<Op> op) const;
    MovementWork work_of(Id<Op> op) const;

private:
    struct Words {
        double bytes = 0;
        int64_t words = 0;
    };

    void find_owners();
    void find_word_sizes();
    template <typename Launch>
    void add_device_times(const Table<Launch>& launches);

    const Trace& trace_;
    const bool has_device_times_;
    std::vector<Id<Op>> owners_;      // by op
    std::vector<Words> words_;        // by op: of the tensors that it reads or writes
    std::vector<int64_t> device_ns_;  // by op
};

}  // namespace profiler
