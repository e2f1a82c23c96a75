#pragma once

#include "profiler/trace/trace.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

/// Blocks of memory that nobody has named yet, and what refers to them in the program.
///
///     unnamed_blocks ► Python looks for the objects that refer to them ► add_keepers
///
/// A block whose storage is temporary or unknown gets a category from its keepers: parameter,
/// gradient or optimizer state if a keeper is one, and held if the block lives past its last use.
///     in a phase         It does once an op of another phase has begun after the last op that read
///                        or wrote the block.
///     outside of phases  Nobody knows which use is the last, nor where no recorded op has used the
///                        block. It does if more than a variable keeps the block, or if a step has
///                        begun since the block was made.
/// What only autograd, C++ or the garbage collector keeps is not held by the program.
namespace profiler {

/// The `count` largest live blocks that may be anything: temporary, unknown, activation or held.
/// The largest first; of equal ones the oldest. O(allocations).
std::vector<Id<Allocation>> unnamed_blocks(const Trace& trace, std::size_t count);

/// Adds the keepers of some blocks, as found when `event` events had happened, and gives the blocks
/// their categories. O(uses of tensors) for each block. `blocks` is
///     [{"allocation": 7, "keepers": [{"kind": "container", "text": "list `history[3]`",
///       "file": "train.py", "line": 16}]}]
/// with an empty file and line 0 where they are not known.
/// Throws std::invalid_argument for an allocation or kind that does not exist, and nlohmann's error
/// for a field that is missing; then the trace is as before.
void add_keepers(const nlohmann::json& blocks, int64_t event, Trace& trace);

/// Keepers are looked for at a few moments. A block of which nobody knows anything is held, too, if
/// one that the same op of the same module made on the same line was: the same variable held it in
/// another step. O(allocations log allocations). Once, when stacks are known.
void name_likes_of_held(Trace& trace);

}  // namespace profiler
