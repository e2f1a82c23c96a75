#pragma once

#include "profiler/trace/trace.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What ran at which time: framework calls on threads, kernels and copies on streams. For short,
/// all three are calls here, as in the window.
namespace profiler {

enum class CallKind : uint8_t { kOp, kKernel, kMemcpy };

/// The autograd engine's call around each node of the graph begins with this.
inline constexpr std::string_view kEngineCall = "autograd::engine::evaluate_function: ";

/// The class that colours and sums a span: the class of its op, or copy.
enum class CallClass : uint8_t { kContraction, kNormalization, kElementWise, kOther, kCopy };
inline constexpr std::array<std::string_view, 5> kCallClassNames{"contraction", "normalization",
                                                                 "element_wise", "other", "copy"};

/// A row of `op`, `kernel` or `memcpy`.
struct CallId {
    CallKind kind = CallKind::kOp;
    int32_t row = -1;

    bool valid() const { return row >= 0; }
    friend bool operator==(CallId, CallId) = default;
};

/// Spans that do not overlap, ordered by time.
struct CallRow {
    std::vector<int64_t> start_ns;
    std::vector<int64_t> end_ns;
    std::vector<int64_t> busy_ns;  // of all spans before this one
    std::vector<CallId> ids;

    std::size_t size() const { return ids.size(); }
    /// The first span that ends after `time_ns`.
    std::size_t first_ending_after(int64_t time_ns) const;
    /// The first span that starts at `time_ns` or later.
    std::size_t first_starting_at(int64_t time_ns) const;
};

/// A thread or a stream. The engine's call around a node is left out where the node itself is
/// recorded, because both are the same work. Its rows go from the outermost call inwards. A span
/// lies in the first row that is free at its start; for nested calls that is the depth of the call.
struct CallLane {
    static constexpr std::size_t kMostRows = 32;

    std::string name;        // "main thread", "stream 7 of cuda:0"
    bool is_stream = false;  // kernels and copies; else calls
    std::vector<CallRow> rows;
    int64_t left_out = 0;  // spans that found no free row
};

/// Built once per trace in O(n log n) for n ops, kernels and copies. A query for a window takes
/// O(log n) per span shown. It copies what it needs, so the trace need not outlive it.
class Calls {
public:
    explicit Calls(const Trace& trace);

    /// Streams, then threads, each in the order of their ids.
    const std::vector<CallLane>& lanes() const { return lanes_; }
    bool empty() const { return lanes_.empty(); }

    /// The class of a span. A call without an own class has the class of the longest call in it: a
    /// backward node counts as the product that it computes.
    CallClass class_of(const Trace& trace, CallId id) const;
    /// Kernels that `op` itself launched, in their order.
    std::span<const Id<Kernel>> kernels_of(Id<Op> op) const;
    /// Allocations made while `op` was the innermost call.
    std::span<const Id<Allocation>> allocations_of(Id<Op> op) const;
    /// How many kernels ran at some time in [start_ns, end_ns), without copies.
    int64_t count_kernels(int64_t start_ns, int64_t end_ns) const;

private:
    /// Rows of another table, grouped by their op: one list of all rows, ordered by op.
    template <typename Row>
    class ByOp {
    public:
        ByOp() = default;
        ByOp(std::span<const Id<Op>> op_of_row, std::size_t num_ops);
        std::span<const Id<Row>> of(Id<Op> op) const;

    private:
        std::vector<std::size_t> first_;  // of each op, and the end
        std::vector<Id<Row>> rows_;
    };

    std::vector<CallLane> lanes_;
    std::vector<OpClass> op_classes_;        // by op, inherited where it has none
    std::vector<int64_t> kernel_starts_ns_;  // each sorted on its own, which is enough to count
    std::vector<int64_t> kernel_ends_ns_;
    ByOp<Kernel> kernels_;
    ByOp<Allocation> allocations_;
};

/// The full name of a call or a kernel, or the kind of a copy.
std::string_view name_of(const Trace& trace, CallId id);

struct CallSpan {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
};
CallSpan span_of(const Trace& trace, CallId id);

/// The op of a span: the span itself, or the op that launched it. Invalid when it is not known.
Id<Op> op_of(const Trace& trace, CallId id);

}  // namespace profiler
