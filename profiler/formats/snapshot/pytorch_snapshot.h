#pragma once

#include "models/config/result.h"
#include "profiler/formats/snapshot/recorded_trace.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/file/trace_file.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// PyTorch memory snapshots: the files that `torch.cuda.memory._dump_snapshot(path)` writes, and
/// the same dictionary as JSON.
///
/// The dictionary has `segments` (what the allocator holds, with its blocks), `device_traces` (the
/// events of each device, oldest first; the oldest are lost when torch's buffer was full),
/// `allocator_settings` and `external_annotations` (ranges of the profiler); since torch 2.14 also
/// `host_segments` and `host_traces`, pinned memory of the host. Allocations, requests
/// that were refused, and the blocks that are in use at the end keep their call stacks, up to the
/// 256 innermost frames; the user's metadata and the compile context are the innermost. The stacks
/// of other events are skipped.
///
/// `temposcope.watch` adds one more key, `temposcope`: a text of JSON that says how the program was
/// started and who keeps its largest blocks (app/python/temposcope/_watch.py).
///
/// A pickle is read in steps of a few hundred KiB: memory is that of the events (RecordedEvent),
/// and most_memory_bytes (plain_values.h) limits it. A file that this machine's memory could not
/// hold is refused before it is read.
/// Source: torch/csrc/cuda/memory_snapshot.cpp, torch/cuda/_memory_viz.py.
namespace profiler {

struct PytorchSnapshot {
    std::vector<AllocatorRecording> devices;         // by number; some may be empty
    std::vector<RecordedAnnotation> annotations;     // in the order of the file
    AllocatorRecording host{.device = kHostDevice};  // pinned memory, if it was recorded
    std::string watched;  // what temposcope.watch adds, as JSON; empty: torch alone wrote it

    const AllocatorRecording& main() const;  // main_recording
};

/// Errors: the file is not there, is too large, is not a pickle, is truncated, would run code, is a
/// pickle of something else, or holds impossible values: one sentence with the file and the offset.
models::Result<PytorchSnapshot> read_pytorch_snapshot(const std::filesystem::path& path);

/// Reads a snapshot from memory. Errors name it `name`.
models::Result<PytorchSnapshot> parse_pytorch_snapshot(std::string_view bytes,
                                                       std::string_view name);

// ---- the row of the table in trace_formats.cpp ----------------------------------------------

/// Whether these are the first bytes of a pickle of protocol 2 to 5, or of the JSON of a snapshot.
bool looks_like_snapshot(std::string_view first_bytes);

/// Reads a snapshot as a trace (recorded_trace.h).
models::Result<Trace> read_snapshot_trace(const std::filesystem::path& path,
                                          const ReadOptions& options);
models::Result<std::vector<AllocatorRecording>> read_snapshot_recordings(
    const std::filesystem::path& path);

}  // namespace profiler
