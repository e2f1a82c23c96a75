#pragma once

#include "profiler/trace/trace.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
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

/// The op that saved each of the blocks for backward last, and keeps it. None: no op does.
/// O(saves).
std::vector<Id<Op>> savers_of(const Trace& trace, std::span<const Id<Allocation>> blocks);

/// Adds the keepers of some blocks, as found when `event` events had happened, and gives the blocks
/// their categories. O(uses of tensors) for each block. `blocks` is
///     [{"allocation": 7, "keepers": [...]}]    (keeper_json.h)
/// To the text of a block that only C++ keeps it adds the op that made the block.
/// Throws std::invalid_argument for an allocation or kind that does not exist, and nlohmann's error
/// for a field that is missing; then no row is added or changed.
void add_keepers(const nlohmann::json& blocks, int64_t event, Trace& trace);

}  // namespace profiler
