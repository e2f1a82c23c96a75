#pragma once

#include "profiler/trace/trace.h"

#include <string_view>

namespace profiler {

/// What to say beside the classes of a trace: that they are inferred. Empty: the file has them.
std::string_view classes_note(const Trace& trace);

}  // namespace profiler
