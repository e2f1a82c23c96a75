#pragma once

#include "models/config/result.h"
#include "profiler/trace/allocator_recording.h"

#include <filesystem>
#include <string_view>
#include <vector>

/// PyTorch memory snapshots: what `torch.cuda.memory._dump_snapshot(path)` writes.
///
/// The dictionary has `segments` (what the allocator holds, with its blocks), `device_traces` (the
/// events of each device, oldest first, the first of them lost when the buffer was full) and
/// `allocator_settings`. Call stacks, compile contexts and annotations are passed over.
/// Source: torch/csrc/cuda/memory_snapshot.cpp, torch/cuda/_memory_viz.py.
namespace profiler {

struct PytorchSnapshot {
    std::vector<AllocatorRecording> devices;  // by number; some may be empty

    /// The device with most events, then with most segments.
    const AllocatorRecording& busiest() const;
};

/// Errors: not there, not a pickle, truncated, a pickle that would run code, a pickle of something
/// else, values that cannot be: one sentence with the file and the offset.
models::Result<PytorchSnapshot> read_pytorch_snapshot(const std::filesystem::path& path);

/// The same from memory, `name` standing for the file in errors.
models::Result<PytorchSnapshot> parse_pytorch_snapshot(std::string_view bytes,
                                                       std::string_view name);

/// Whether a file that begins so is a pickle of protocol 2 or later.
bool looks_like_pickle(std::string_view first_bytes);

}  // namespace profiler
