#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// What the sources of collectives share.
namespace profiler {

/// By the name of an op of torch, or by the name that torch gives it in records:
/// "allreduce_coalesced_", "_reduce_scatter_base", "all_to_allv". None: "wait", "init".
std::optional<CollectiveKind> collective_kind_of(std::string_view name);

/// The numbers in Communicator::ranks: "[0, 8, 16]".
std::vector<int64_t> ranks_in(std::string_view text);

/// By collective its kernel. Torch gives the kernel of a batch to its first collective; a
/// collective without a kernel gets its predecessor's in the communicator. Invalid: no kernel is
/// known.
std::vector<Id<Kernel>> kernels_of_collectives(const Trace& trace);

/// If `kernel` is NCCL's, the collective that its op is or lies in gets it and its times.
/// Collectives stand in the order of their ops.
void link_collective(Trace& trace, Id<Kernel> kernel);

}  // namespace profiler
