#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profiler {

struct BlockPair {
    Id<Allocation> first;
    Id<Allocation> second;
};

/// Blocks that two traces have in common on their first devices, in the order in which both
/// allocated them: the longest such list among the pairs of equal keys.
///
///     first    A B C   A D        the key is the size and the call site without its line, which
///              | |     | |        an edit moves; without call stacks, the name of the op
///     second   A B   E A D
///
/// The i-th block of a key is paired with the i-th. O(n log n).
std::vector<BlockPair> match_blocks(const Trace& first, const Trace& second);

/// "model.py:54 forward" without ":54".
std::string without_line(std::string_view site);

}  // namespace profiler
