#pragma once

#include "models/config/workload.h"
#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Arithmetic, data movement and time of each op of a training step: the table of Ivanov et al.,
/// "Data Movement Is All You Need" (arXiv 2007.00072).
///
/// A *word* is one element, whatever its type. An op moves each element of its inputs and outputs
/// once: that is the least that it has to move. Recomputation and passes that are not needed show
/// up as ops of their own.
namespace profiler {

enum class MovementScope : uint8_t {
    kLayers,  // forward and backward in the layers
    kAll      // loss, head, embeddings and optimizer too
};
inline constexpr std::array<std::string_view, 2> kMovementScopeNames{"layers", "all"};

enum class MovementBy : uint8_t { kOp, kClass, kLayer };
inline constexpr std::array<std::string_view, 3> kMovementByNames{"op", "class", "layer"};

/// The sum of two times, at most 36 years: the times of a damaged file may be any.
constexpr int64_t add_times(int64_t a_ns, int64_t b_ns) {
    constexpr int64_t kMost_ns = int64_t{1} << 60;
    return a_ns > kMost_ns - b_ns ? kMost_ns : a_ns + b_ns;
}

/// What one or more calls did in a step.
struct MovementWork {
    int64_t num_calls = 0;
    int64_t flop = 0;
    int64_t words_read = 0;
    int64_t words_written = 0;
    double bytes = 0;     // of these words
    int64_t time_ns = 0;  // 0: not known

    int64_t words() const { return words_read + words_written; }
    MovementWork& operator+=(const MovementWork& other);
};

/// The calls of one op in one module, in all layers together; or those of a class or a layer.
struct MovementRow {
    std::string name;    // "aten::addmm", "contraction", "encoder.layer.3"
    std::string module;  // of an op: inside its layer, "attention.self.query"; else its path
    bool is_in_layer = false;
    std::optional<PhaseKind> phase;   // of an op
    std::optional<OpClass> op_class;  // of an op or a class
    MovementWork work;
    Id<Op> call;  // the longest call of an op that ran
};

struct MovementReport {
    std::vector<MovementRow> rows;    // by op, in the order of their first calls
    std::vector<MovementRow> layers;  // the same by layer; outside of layers by module or phase
    int64_t num_layers = 0;
    /// On a GPU, time of kernels and copies of ops that are not counted.
    int64_t other_time_ns = 0;
    bool has_device_times = false;  // times are those of kernels and copies, not of calls
};

/// The ops that ran: the mean of the recorded steps. A call inside another counted call belongs to
/// it, and an op of backward to the module of its forward op. If the trace has kernels or copies,
/// they are the time of an op, else its calls are.
MovementReport movement_of(const Trace& trace, MovementScope scope);

std::vector<MovementRow> rows_by(const MovementReport& report, MovementBy by);

MovementWork total_of(const std::vector<MovementRow>& rows);

/// What a card can do at the precision of a step; 0: not known.
struct DevicePeaks {
    std::string gpu;   // its id in the catalogue: "a100-80gb"; empty: no card is known
    std::string name;  // "NVIDIA A100 80 GB SXM"
    double flop_per_s = 0;
    double bytes_per_s = 0;

    friend bool operator==(const DevicePeaks&, const DevicePeaks&) = default;
};

/// Rates of some work on a card. A rate is empty if it needs a time, flop, bytes or a peak that is
/// 0 or not known.
///
///     MUE = (Q / D) (B / B^) 100 %
///
/// is the memory usage efficiency of Fuhrer et al., GMD 11:1665 (2018). Q: the bytes that the op
/// has to move. D: the bytes that it moved. B = D / time: its bandwidth. B^: the peak. D cancels:
/// MUE is Q / (time B^), which needs no measured traffic. `bytes_per_s` is Q / time. The memory saw
/// this bandwidth or more.
struct MovementRates {
    std::optional<double> flop_per_word;
    std::optional<double> flop_per_byte;
    std::optional<double> flop_per_s;
    std::optional<double> bytes_per_s;
    std::optional<double> peak_share;  // of the card's flop/s
    std::optional<double> mue;         // as a share; above 1: caches held data
    /// The least time on the card for the arithmetic alone, and for the data alone.
    std::optional<double> compute_limit_ns;
    std::optional<double> memory_limit_ns;

    /// Whether data takes longer than arithmetic. Then MUE is above the share of peak.
    std::optional<bool> is_memory_bound() const;
};
/// Without `with_times` the times are those of another device: shares of peaks are left empty.
MovementRates rates_of(const MovementWork& work, const DevicePeaks& peaks, bool with_times = true);

/// The share of all time that memory-bound ops take; empty without times or peaks.
std::optional<double> memory_bound_share(const MovementReport& report, const DevicePeaks& peaks);

/// Shares of one operator class, as in Ivanov's Table 1.
struct ClassShare {
    OpClass op_class = OpClass::kOther;
    double flop = 0;             // of all flop
    std::optional<double> time;  // of all time
};
/// The classes that occur.
std::vector<ClassShare> class_shares(const MovementReport& report);
/// The paper's shares for one layer of BERT-large in PyTorch on a V100: contraction, normalization,
/// element-wise.
inline constexpr std::array<double, 3> kIvanovFlopShares{0.9980, 0.0017, 0.0003};
inline constexpr std::array<double, 3> kIvanovTimeShares{0.610, 0.255, 0.135};
/// Whether a layer is the paper's: a post-LN layer with the sizes of BERT-large at batch 8 and 512
/// tokens, with products in 16 bits. Its recipe and its card may be others.
bool is_workload_of_ivanov(const models::Workload& workload);

/// Bytes of one element of activations.
int64_t activation_bytes(models::Precision precision);

// The data flow of one layer: ops are nodes, and an edge is what one op writes and another reads.

struct MovementNode {
    std::string name;
    std::string module;  // inside the layer
    PhaseKind phase = PhaseKind::kForward;
    OpClass op_class = OpClass::kOther;
    MovementWork work;        // of this call
    Id<Op> call;              // invalid for a logical op
    bool runs_again = false;  // a checkpoint runs its forward a second time, in backward
};

struct MovementEdge {
    std::size_t from = 0;  // of `nodes`, before `to`
    std::size_t to = 0;
    int64_t words = 0;
    std::string tensor;  // empty: it has no name
};

struct MovementFlow {
    int64_t layer = -1;               // -1: any, of the logical ops
    std::vector<MovementNode> nodes;  // in the order in which they run, forward before backward
    std::vector<MovementEdge> edges;
};

/// A middle layer in the last recorded step. An op that works in place takes its tensor over from
/// the op before it. Empty if no op of a layer is counted.
MovementFlow movement_flow(const Trace& trace);
MovementFlow logical_flow(const models::Workload& workload);

// ---- the calls of a trace that are counted -----------------------------------------------------

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
    /// The time of kernels and copies. A counted call has the time of all launches in it, at any
    /// depth. A call outside of every counted call has the time of its own launches.
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
