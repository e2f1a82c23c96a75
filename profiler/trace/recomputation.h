#pragma once

#include "profiler/trace/trace.h"

#include <string_view>

/// Calls that an activation checkpoint runs a second time, in backward.
namespace profiler {

/// The op by which a checkpoint keeps its inputs. Without reentry no backward runs it.
inline constexpr std::string_view kInputsOfCheckpoint = "_NoopSaveInputs";

/// A node of the backward graph, and not a call that computes a forward.
bool is_autograd_node(std::string_view op_name);
/// A checkpoint's own call, in forward or in backward.
bool is_checkpoint_call(std::string_view op_name);

/// Whether a call in backward belongs to the forward that a checkpoint runs again: it refers to the
/// same forward op as the checkpoint around it. (So do the calls of an op's own backward.)
bool runs_again(const Trace& trace, Id<Op> op);

/// Whether a call in backward computes a part of forward again. A reentrant checkpoint has a node
/// of its own, and `runs_again` knows its calls. One without reentry runs inside the first node
/// that needs its tensors, which is of another module than the calls.
bool is_recomputed(const Trace& trace, Id<Op> op);

}  // namespace profiler
