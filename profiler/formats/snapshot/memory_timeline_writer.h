#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <filesystem>

namespace profiler {

/// Writes the raw memory timeline that torch.profiler's `export_memory_timeline("x.raw.json.gz")`
/// writes and HolisticTraceAnalysis reads: a list of [time, action, bytes, category] of the first
/// GPU, or of the CPU if there is none.
///
///     time      nanoseconds since 1970; -1 for what was there before the recording
///     action    1 there before, 2 created, 4 destroyed (3, a new version, is not known here)
///     bytes     of the block; negative when it is destroyed
///     category  0 parameter, 1 optimizer state, 2 input, 3 temporary or workspace, 4 activation,
///               5 gradient, 7 unknown
///
/// A name that ends in ".gz" packs the file. Errors: the trace has no allocations; as write_file.
/// Source: torch/profiler/_memory_profiler.py.
models::Result<void> write_memory_timeline(const Trace& trace, const std::filesystem::path& path);

}  // namespace profiler
