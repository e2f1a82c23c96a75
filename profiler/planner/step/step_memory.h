#pragma once

#include "profiler/allocator/simulation.h"
#include "profiler/analysis/peak.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/planner/data/software_environment.h"
#include "profiler/planner/step/data_parallel.h"
#include "profiler/planner/step/step_work.h"

#include <cstdint>
#include <optional>
#include <vector>

/// What a step takes on a GPU: its requests through the exact allocator.
namespace profiler {

struct MemoryOptions {
    AllocatorSettings settings;
    Gradients gradients = Gradients::kNone;
    DataParallel parallel;
    int64_t cublas_workspace_bytes = 0;     // of the GPU; 0: as traced
    std::vector<int64_t> persistent_bytes;  // tensors beside the step's, from its begin
    friend bool operator==(const MemoryOptions& a, const MemoryOptions& b);
};

/// Peaks are those of the last step; the warm-up before it shapes the memory that it finds, and has
/// to fit, too.
struct StepMemory {
    int64_t peak_allocated_bytes = 0;
    int64_t peak_reserved_bytes = 0;
    std::optional<OutOfMemoryPoint> out_of_memory;
};
StepMemory simulate_step(const StepWork& step, const MemoryOptions& options,
                         std::optional<int64_t> limit_bytes);

/// The peaks, and what lives when most is allocated. `rounding_bytes`: what blocks are larger than
/// their tensors.
struct PeakContents {
    StepMemory peaks;
    CategoryBytes by_category{};
    int64_t persistent_bytes = 0;
    int64_t rounding_bytes = 0;
    int64_t cached_bytes = 0;  // reserved and not allocated then: fragmentation
};
PeakContents peak_contents(const StepWork& step, const MemoryOptions& options,
                           std::optional<int64_t> limit_bytes);

/// What lives at some moments of the last step, without the rounding of blocks.
struct StepLevels {
    int64_t begin_bytes = 0;   // when it begins
    int64_t update_bytes = 0;  // at most, while the optimizer has temporaries; 0: it has none
};
StepLevels levels_of(const StepWork& step, const MemoryOptions& options);

bool is_cublas_workspace(Category category, int64_t size_bytes);

}  // namespace profiler
