#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <filesystem>

namespace profiler {

/// Writes a trace as Chrome JSON in the dialect of the PyTorch profiler (Kineto), for Perfetto,
/// chrome://tracing, HolisticTraceAnalysis and read_profiler_trace.
///
///     steps, phases        ranges "ProfilerStep#0", "## forward ##" on a track of their own
///     modules              "nn.Module: encoder.layer.3.attention" on a track of their own
///     ops, calls of CUDA   spans of their thread
///     kernels, copies      spans of their stream, with an arrow from the call or the op
///     allocations, frees   "[memory]", with the sums of allocated and reserved bytes
///     categories           counters, one per category and device: "allocated activation"
///
/// A name that ends in ".gz" packs the file. What the format has no place for is left out: shapes,
/// saved tensors, segments, call stacks.
/// Errors: as write_file.
models::Result<void> write_chrome_trace(const Trace& trace, const std::filesystem::path& path);

}  // namespace profiler
