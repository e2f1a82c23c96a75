#pragma once

#include "profiler/analysis/step/peak.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Every tensor that autograd saves for backward: who saved it, shape, dtype, bytes.
///
/// Each storage has one row. Its module path is the first saving op's. A middle layer
/// of a stack therefore equals the closed forms whatever the recipe, and at both ends of the stack
/// a layer's input or output counts for the op that saves it first. The ledger is taken where the
/// backward of the last recorded step begins, so it includes what the head and the loss save; of
/// several backwards of a step, where autograd keeps the most. It leaves out parameters, gradients,
/// optimizer state and step inputs unless asked for.
namespace profiler {

struct LedgerRow {
    std::string_view module_path;  // "encoder.layer.1.attention.self"
    std::string_view op;           // the first op that saves it: "aten::bmm", "checkpoint"
    std::string_view made_by;      // the op that allocated its storage; empty if not known
    std::string_view tensor;       // "query"
    std::string_view shape;        // "[128, 512, 64]"; of a part of the storage: of the whole
    DType dtype = DType::kOther;   // likewise
    Category category = Category::kUnknown;
    int64_t size_bytes = 0;
    std::vector<std::string_view> saved_by;  // every op that saves it, in the order of saving
    std::vector<Id<Op>> saving_ops;          // the same ops
    Id<Op> maker;                            // the op of `made_by`
    Id<Tensor> saved_tensor;                 // as it was saved first
    Id<Storage> storage;
    Id<Allocation> allocation;
    int64_t layer = -1;           // of its module path
    std::string_view layer_path;  // "encoder.layer.1"; empty outside of layers
    int64_t saved_event = -1;     // lifetime as a saved tensor
    int64_t released_event = -1;
    int64_t saved_ns = -1;
    int64_t released_ns = -1;
};

/// Borrows text from the trace, which must outlive it.
struct Ledger {
    std::vector<LedgerRow> rows;  // in the order of saving
    int64_t total_bytes = 0;
};

struct LedgerOptions {
    bool include_all = false;  // parameters, gradients, optimizer state and inputs too
    std::string module_path;   // only this module and its submodules; empty = everything
};

/// `peak` is find_peak(trace). It gives the moment of the ledger in a trace without phases.
Ledger build_ledger(const Trace& trace, const PeakReport& peak, const LedgerOptions& options = {});
Ledger build_ledger(const Trace& trace, const LedgerOptions& options = {});

/// The step that the ledger lists: the last one with a forward. None: no forward lies in a step.
Id<Step> step_of_ledger(const Trace& trace);
/// When it began; the least number if there is none.
int64_t start_of_ledger_step(const Trace& trace);

/// The total of build_ledger(trace), without its rows.
int64_t saved_bytes_of(const Trace& trace);

}  // namespace profiler
