#pragma once

#include "profiler/trace/trace.h"

#include <vector>

namespace profiler {

/// What each storage is called: the name of its first tensor that has one; none where none has.
std::vector<StringId> names_of_storages(const Trace& trace);

}  // namespace profiler
