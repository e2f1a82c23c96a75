#pragma once

#include "profiler/trace/trace.h"

#include <vector>

namespace profiler {

/// The name of each storage: that of its first tensor with a name, or none.
std::vector<StringId> names_of_storages(const Trace& trace);

}  // namespace profiler
