#pragma once

#include "profiler/trace/trace.h"

#include <string_view>

/// Calls that an activation checkpoint runs a second time, in backward.
namespace profiler {

/// A node of the backward graph, and not a call that computes a forward.
bool is_autograd_node(std::string_view op_name);
/// A checkpoint's own call, in forward or in backward.
bool is_checkpoint_call(std::string_view op_name);

/// Whether a call in backward belongs to the forward that a checkpoint runs again: it refers to the
/// same forward op as the checkpoint around it. (So do the calls of an op's own backward.)
bool runs_again(const Trace& trace, Id<Op> op);

}  // namespace profiler
