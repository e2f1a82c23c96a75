#pragma once

#include "models/config/result.h"
#include "profiler/formats/snapshot/recorded_trace.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/trace.h"

#include <filesystem>
#include <span>

/// Writes PyTorch memory snapshots, which PyTorch's memory viewer (docs.pytorch.org/memory_viz) and
/// torch.cuda._memory_viz open. pytorch_snapshot.h says what they hold.
namespace profiler {

/// The allocations, steps, phases and annotations of a trace (recordings_of). What a snapshot has
/// no place for is left out: categories, kernels, saved tensors, times below a microsecond.
/// Errors: the trace has no allocations; as write_file.
models::Result<void> write_snapshot(const Trace& trace, const std::filesystem::path& path);

models::Result<void> write_snapshot(std::span<const AllocatorRecording> devices,
                                    std::span<const RecordedAnnotation> annotations,
                                    const std::filesystem::path& path);

}  // namespace profiler
