#pragma once

#include "profiler/analysis/advice/explanation.h"
#include "profiler/analysis/step_index.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What rules and remedies read of a trace: one moment, what lives then, and what is known of it.
///
///     forward                    | backward
///     ---[ maker ]--[ last use ]----------------X  the moment: memory ran out, or the peak
///        logits ================================|  held: past its last use, saved by no op
namespace profiler {

/// Rows of another table, grouped by a row: one list, ordered.
template <typename Key, typename Row>
class RowsBy {
public:
    RowsBy() = default;
    RowsBy(std::span<const Id<Key>> keys, std::size_t num_keys) : first_(num_keys + 1) {
        for (const Id<Key> key : keys) {
            if (key.valid() && key.index() < num_keys) ++first_[key.index() + 1];
        }
        for (std::size_t i = 0; i < num_keys; ++i) first_[i + 1] += first_[i];
        rows_.resize(first_.back());
        std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
        for (std::size_t row = 0; row < keys.size(); ++row) {
            const Id<Key> key = keys[row];
            if (key.valid() && key.index() < num_keys) rows_[next[key.index()]++] = Id<Row>(row);
        }
    }
    std::span<const Id<Row>> of(Id<Key> key) const {
        if (!key.valid() || key.index() + 1 >= first_.size()) return {};
        return std::span(rows_).subspan(first_[key.index()],
                                        first_[key.index() + 1] - first_[key.index()]);
    }

private:
    std::vector<std::size_t> first_;  // of each key, and the end
    std::vector<Id<Row>> rows_;
};

/// Built once per explanation in O(n log n) for n rows. Borrows the index and its trace.
struct Evidence {
    explicit Evidence(const StepIndex& index);

    const StepIndex& steps;
    const Trace& trace;
    Id<Device> device;  // whose memory is explained

    // ---- the moment ----------------------------------------------------------------------------
    Id<Failure> failure;  // the out-of-memory error that ended the program; none: the peak
    int64_t event = -1;   // `live` are the blocks after the changes up to this one
    int64_t time_ns = -1;
    Id<Step> step;                     // around it; none: outside of steps
    Id<Phase> phase;                   // likewise
    int64_t allocated_bytes = 0;       // as requested, of `live`
    int64_t reserved_bytes = 0;        // in segments
    int64_t asked_bytes = 0;           // by the request that failed
    std::vector<Id<Allocation>> live;  // largest first
    std::vector<Id<Allocation>> held;  // of `live`: see is_held
    CachedPieces cached;               // reserved bytes that no block uses
    CategoryBytes by_category{};
    std::optional<PhaseKind> phase_kind() const;

    // ---- of a block ----------------------------------------------------------------------------
    int64_t bytes_of(Id<Allocation> id) const {
        return trace.allocations.get<&Allocation::requested_bytes>(id);
    }
    Category category_of(Id<Allocation> id) const { return category_of_block(trace, id); }
    /// "train.py:13 <module>" and the text of that line.
    std::string line_of(Id<Allocation> id) const;
    std::string_view code_of(Id<Allocation> id) const;
    /// The last op that reads or writes it, as far as the trace knows; none: no op did.
    Id<Op> last_use_of(Id<Allocation> id) const;
    std::span<const Id<Tensor>> tensors_of(Id<Allocation> id) const;
    std::span<const Id<Save>> saves_of(Id<Allocation> id) const;
    /// As they were found last: a variable may have let it go since the time before.
    std::span<const Id<Keeper>> keepers_of(Id<Allocation> id) const;
    /// Whether autograd keeps it at the moment.
    bool is_saved(Id<Allocation> id) const;
    /// Whether only the program still refers to it: its category says so, or it was made in a step
    /// in an earlier phase than that of the moment, no op that touches it runs or comes later,
    /// autograd does not keep it, and it is not a parameter, gradient, state of the optimizer,
    /// input or workspace.
    bool is_held(Id<Allocation> id) const;

    // ---- of an op ------------------------------------------------------------------------------
    std::string_view name_of_op(Id<Op> op) const {
        return op.valid() ? trace.text(trace.ops.get<&Op::name>(op)) : std::string_view();
    }
    /// The tensors that it reads and writes.
    std::span<const Id<OpTensor>> tensors_of(Id<Op> op) const { return op_tensors_.of(op); }
    /// The outermost call around it.
    Id<Op> outermost(Id<Op> op) const;

private:
    void find_uses();
    void find_moment();
    void find_live();

    RowsBy<Storage, Tensor> tensors_;
    RowsBy<Storage, Save> saves_;
    RowsBy<Allocation, Keeper> keepers_;
    RowsBy<Op, OpTensor> op_tensors_;
    std::vector<Id<Op>> last_use_;  // by storage
};

/// Bytes of all that is in the list.
int64_t bytes_of(const Evidence& evidence, std::span<const Id<Allocation>> blocks);

}  // namespace profiler
