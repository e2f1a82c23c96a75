#pragma once

#include "models/config/result.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/trace.h"

#include <filesystem>
#include <string_view>

/// Traces of the PyTorch profiler (Kineto): the Chrome JSON, plain or gzip, that
/// `torch.profiler.profile(...).export_chrome_trace(path)` writes, from 2021 to 2026, of NVIDIA and
/// AMD GPUs and of the CPU. docs/snapshots_and_traces.md says what is read, inferred and lost.
/// Source: libkineto/src/output_json.cpp, torch/csrc/profiler/kineto_shim.cpp.
namespace profiler {

/// Whether a file that begins so is JSON with events: an object, or a list of objects; also packed
/// with gzip.
bool looks_like_profiler_trace(std::string_view first_bytes);

/// Time 0 is the first event. Steps and phases are rows where the file marks or implies them;
/// categories of blocks are inferred (kInferredCategories).
/// Errors: the file cannot be read, is not JSON, holds no events that are known, is too large: one
/// sentence with the path and the offset.
models::Result<Trace> read_profiler_trace(const std::filesystem::path& path,
                                          const ReadOptions& options);

}  // namespace profiler
