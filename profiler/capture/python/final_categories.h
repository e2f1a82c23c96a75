#pragma once

#include "profiler/trace/trace.h"

#include <cstddef>

/// Categories that do not show when a block is allocated.
namespace profiler {

/// After a step: what lives on and has no name is not temporary, but unknown. `first`: the number
/// of the first storage since the last call.
void name_survivors(Trace& trace, std::size_t first);

// Each of the others runs once, in this order, when all of the recording and its stacks are known.

/// Keepers are looked for at a few moments, and of the largest blocks. A block of which nobody
/// knows anything is held, or a gradient, if one is that the same op of the same module made on the
/// same line: the same variable held it in another step. Before the first step no ops are known:
/// there blocks of one line and one size are alike, as the batches of a data set that lies on the
/// GPU. O(allocations log allocations).
void name_likes_of_kept(Trace& trace);

/// What a module makes in forward and an op of the same step's backward reads was kept for it,
/// though autograd did not save it: a selective checkpoint keeps such results, and a function of
/// the program's own may, in its ctx. Such a block is an activation, and not temporary. O(uses of
/// tensors).
void name_kept_for_backward(Trace& trace);

/// What a checkpoint makes again in backward, and a node of backward then reads, is a recomputed
/// activation. O(uses of tensors).
void name_recomputed(Trace& trace);

/// Blocks from before the first step, of which nothing is known but who holds them: where they have
/// the sizes of all parameters, or of all that are trained, they are copies of the weights. Copies
/// of another precision have all sizes times 2 or 1/2. A model of few tensors, or of tensors of one
/// size, could have such blocks by chance: there nothing is named. O(allocations).
void name_weight_copies(Trace& trace);

}  // namespace profiler
