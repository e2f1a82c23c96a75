#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Every tensor that autograd saves for backward: who saved it, shape, dtype, bytes.
///
/// Each storage stands once. Its `scope` is that of the first op that keeps it, so that a middle
/// layer of a stack equals the closed forms whatever the recipe; at the ends a layer's input or
/// output is charged to whoever keeps it first. Taken where backward of the last recorded step
/// begins: what head and loss keep is in it. Parameters, gradients, optimizer state and step inputs
/// are left out unless asked for.
namespace profiler {

struct LedgerRow {
    std::string_view module_path;  // "encoder.layer.1.attention.self"
    std::string_view op;           // the first op that keeps it: "aten::bmm"
    std::string_view tensor;       // "query"
    std::string_view shape;        // "[128, 512, 64]"
    DType dtype = DType::kOther;
    Category category = Category::kUnknown;
    int64_t size_bytes = 0;
    std::vector<std::string_view> saved_by;  // every op that keeps it, in the order of saving
    Id<Storage> storage;
    Id<Allocation> allocation;
    int64_t layer = -1;        // of its scope
    int64_t saved_event = -1;  // lifetime as a kept tensor
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
    std::string module_path;   // only this scope and what lies in it; empty = everything
};

Ledger build_ledger(const Trace& trace, const LedgerOptions& options = {});

}  // namespace profiler
