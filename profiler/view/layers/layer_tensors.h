#pragma once

#include "profiler/view/layers/layer_flow.h"

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

/// The saved tensors of a LayerFlow. A part of layer_flow.cpp.
namespace profiler {

struct FlowCalls {
    std::function<FlowPlace(Id<Op>)> place_of;                // column kOutside: in none
    std::function<std::optional<PhaseKind>(Id<Op>)> kind_of;  // none: not of this step
};

/// The rows of the ledger in these layers, with the columns of their makers and consumers. Tensors
/// with the same name and place in several layers are summed. A cast that the recorder could only
/// name after its op ("to_copy_output") is named after the tensor that it copies.
std::vector<FlowTensor> collect_saved_tensors(const Trace& trace, const Ledger& ledger,
                                              const LayerRange& layers, const FlowCalls& calls);

}  // namespace profiler
