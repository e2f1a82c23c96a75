#pragma once

#include "profiler/analysis/step/ledger.h"
#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// One Transformer layer of a recorded step as a flow: its forward and backward calls in columns,
/// and the tensors that autograd saves between them. Several layers are summed: what has the same
/// place in each layer counts as one.
///
///     column        0        1         2
///     forward     query -> scores -> softmax ->        time runs to the right
///                   |         \         |
///                   |          \        |              saved tensors
///     backward    query <- scores <- softmax <-        time runs to the left
///
/// Column   the calls of one module in a row. A call belongs to the module that made it; calls that
///          compute nothing (views) are left out. A backward call stands below the forward call
///          whose gradient it computes (Op::forward).
/// Maker    the call during which the storage was allocated. In another layer: kOutside.
/// Consumer the backward call of the op that saved the tensor: autograd hands it to no other call.
///          If several ops save a storage: the last to release it, since the memory is held until
///          then; the other ops are `also`.
///          If no backward call refers to the saving op: the first backward call that reads the
///          storage (op_tensor), else the call that freed its memory. If neither is known,
///          `consumer_op` is invalid and the tensor ends in the column of the saving op.
/// Recomputed  backward calls that run a forward again: calls of a checkpoint in the modules of its
///          layer, calls named "..._recompute", and calls with the name of a call inside the
///          forward op, unless that name is plain arithmetic or a copy.
/// Time     of the kernels that a call launched; in a trace without kernels, of the call itself.
namespace profiler {

inline constexpr std::size_t kOutside = static_cast<std::size_t>(-1);

struct LayerRange {
    int64_t first = 0;
    int64_t last = 0;  // included

    bool contains(int64_t layer) const { return layer >= first && layer <= last; }
    int64_t count() const { return last - first + 1; }
    friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

/// The calls of one column in one direction.
struct FlowNode {
    Id<Op> op;  // the first of them; invalid: there is none
    OpClass op_class = OpClass::kOther;
    int64_t duration_ns = 0;
    int64_t recomputed_ns = 0;       // part of duration_ns; 0 in forward
    bool recomputes = false;         // also where times are not known
    std::vector<std::string> calls;  // "linear", "bmm"; each once
};

struct FlowColumn {
    std::string key;    // the same in each layer and recipe: module, number of the run
    std::string path;   // of the module in the layer: "attention.self.query"; empty: the layer
    std::string title;  // "query", "add", "gelu"
    FlowNode forward;
    FlowNode backward;
};

struct FlowTensor {
    std::string name;  // "gelu_input", "hidden_states cast"
    std::string path;  // of the module that saves it, in the layer
    std::string shape;
    DType dtype = DType::kOther;
    Category category = Category::kUnknown;
    int64_t size_bytes = 0;              // over all layers
    std::size_t producer = kOutside;     // column
    std::size_t consumer = kOutside;     // column
    std::vector<std::size_t> also;       // columns of the other calls that are handed the tensor
    Id<Op> maker;                        // invalid: not known
    Id<Op> consumer_op;                  // invalid: not known
    std::vector<std::string> kept_by;    // the ops that save it, each once
    std::vector<Id<Storage>> storages;   // one a layer
    std::vector<Id<Allocation>> blocks;  // of these
};

/// Where a call stands.
struct FlowPlace {
    Id<Op> op;
    std::size_t column = kOutside;
    bool in_backward = false;
};

struct LayerFlow {
    std::vector<FlowColumn> columns;  // in the order of forward
    std::vector<FlowTensor> tensors;  // in the order of saving
    std::vector<FlowPlace> places;    // of all calls in the columns, by id
    int64_t size_bytes = 0;           // of the tensors
    int64_t forward_ns = 0;
    int64_t backward_ns = 0;
    int64_t recomputed_ns = 0;
    std::size_t columns_left_out = 0;  // beyond kMostColumns: the columns with the least time

    static constexpr std::size_t kMostColumns = 64;
};

/// `ledger` is that of the trace. Empty if the trace records no calls in these layers. Works on
/// damaged traces: links that lead nowhere or in circles are ignored. O(n log n) for n ops.
LayerFlow build_layer_flow(const Trace& trace, const Ledger& ledger, const LayerRange& layers);

/// "aten::addmm" -> "addmm", "autograd::engine::evaluate_function: AddmmBackward0" ->
/// "AddmmBackward0", "torch::autograd::CppNode<models::ops::DropoutFunction>" -> "DropoutFunction".
std::string short_call_name(std::string_view name);

}  // namespace profiler
