#pragma once

#include "profiler/trace/trace.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>

namespace profiler {

/// The row of what refers to `block`, as Python tells it when `event` events have happened:
///     {"kind": "container", "text": "list `history[3]`", "file": "train.py", "line": 16}
/// with an empty file and line 0 where they are not known.
/// Throws std::invalid_argument for a kind that does not exist, and nlohmann's error for a field
/// that is missing.
Keeper keeper_from(const nlohmann::json& told, Id<Allocation> block, int64_t event,
                   StringTable& strings);

}  // namespace profiler
