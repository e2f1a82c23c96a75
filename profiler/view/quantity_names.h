#pragma once

/// One name for each quantity that several panels, charts and tables show. A "peak" alone is the
/// peak allocated.
namespace profiler {

/// The most bytes in tensors at one time.
inline constexpr const char* kPeakAllocated = "Peak allocated";
/// The most bytes in the allocator's segments at one time.
inline constexpr const char* kPeakReserved = "Peak reserved";
/// The least that the card must have free for the step: tensors, gaps between them, CUDA context.
inline constexpr const char* kPeakOnGpu = "Peak on the GPU";
/// The largest batch that fits, or that trained.
inline constexpr const char* kLargestBatch = "Largest batch";
/// The highest throughput over all batches.
inline constexpr const char* kBestRate = "Best sequences/s";

}  // namespace profiler
