#pragma once

#include "profiler/analysis/blocks/block_history.h"
#include "profiler/analysis/step_index.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/trace.h"
#include "profiler/view/kernels/call_group.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the Inspector says about the selected category, tensor or block, and about the selected
/// call, kernel or copy.
namespace profiler {

// When a trace holds a tensor, and what becomes of a tensor of A in B: not only whether B has it
// in as many bytes, but what it is alive across.

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

/// One of `storage` and `allocation` may be invalid.
struct InspectedTensor {
    std::size_t source = 0;
    Id<Storage> storage;
    Id<Allocation> allocation;

    friend bool operator==(const InspectedTensor&, const InspectedTensor&) = default;
};

struct InspectedCall {
    std::size_t source = 0;
    CallId id;

    friend bool operator==(const InspectedCall&, const InspectedCall&) = default;
};

struct InspectorRequest {
    Steps steps;
    std::optional<Category> category;
    std::optional<InspectedTensor> tensor;
    std::optional<InspectedCall> call;

    friend bool operator==(const InspectorRequest&, const InspectorRequest&) = default;
};

using InspectorRows = std::vector<std::pair<std::string, std::string>>;  // "made by", "aten::bmm"

/// When a tensor is held: "freed in", with a value for A and one for B, or for its only trace.
struct LifeRow {
    std::string label;
    std::vector<std::string> values;
};

struct TensorCard {
    std::string title;
    Category category = Category::kUnknown;
    InspectorRows rows;
    std::vector<LifeRow> life;
    TensorFate fate;  // unknown without B
};

struct CallCard {
    std::string title;
    InspectorRows rows;
    CallGroup group;           // all calls like it
    InspectorRows group_rows;  // "A", "72 calls, 8.23 ms together; median 112 µs, 98 to 140 µs"
};

/// What one trace holds of a category.
struct CategoryCard {
    InspectorRows rows;     // "at the peak", "1.2 GiB, 34 % of it"
    InspectorRows largest;  // at the peak: "probs in encoder.layer.3", "64 MiB"
};

struct InspectorView {
    std::vector<CategoryCard> category;  // by source
    std::optional<TensorCard> tensor;
    std::optional<CallCard> call;
};

/// O(n) for n rows of the traces.
InspectorView build_inspector_view(const InspectorRequest& request);

/// The symbols of a closed form with the numbers of a step: "e = 4 B, T = B·A·S² = 8·16·512²".
/// Empty for a formula without known symbols.
std::string resolve_symbols(const std::string& formula, const models::Workload& workload);

// ---- tables for other programs ------------------------------------------------------------------

/// Cards of the Inspector, row by row.
DataTable inspector_data(const InspectorView& view);

}  // namespace profiler
