#pragma once

#include "profiler/allocator/simulation.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/planner/data/software_environment.h"
#include "profiler/planner/step/data_parallel.h"
#include "profiler/planner/step/step_work.h"

#include <cstdint>
#include <optional>
#include <vector>

/// The memory of a step on a GPU: its requests, served by the simulated allocator.
namespace profiler {

struct MemoryOptions {
    AllocatorSettings settings;
    Gradients gradients = Gradients::kNone;
    DataParallel parallel;
    int64_t cublas_workspace_bytes = 0;     // on the GPU; 0: as traced
    std::vector<int64_t> persistent_bytes;  // tensors that live beside the step from its start
    friend bool operator==(const MemoryOptions&, const MemoryOptions&) = default;
};

/// The peaks of the last step. The warm-up before it must fit too, and decides which memory is
/// cached when the last step begins.
struct StepMemory {
    int64_t peak_allocated_bytes = 0;
    int64_t peak_reserved_bytes = 0;
    std::optional<OutOfMemoryPoint> out_of_memory;
};
StepMemory simulate_step(const StepRequests& step, const MemoryOptions& options,
                         std::optional<int64_t> limit_bytes);

/// The peaks, and what lives at the allocated peak. `rounding_bytes`: by how much blocks are larger
/// than their tensors.
struct PeakContents {
    StepMemory peaks;
    std::optional<PhaseKind> peak_phase;  // empty: outside of all phases
    CategoryBytes by_category{};
    int64_t persistent_bytes = 0;
    int64_t rounding_bytes = 0;
    int64_t cached_bytes = 0;  // reserved but not allocated at that time: fragmentation
};
PeakContents peak_contents(const StepRequests& step, const MemoryOptions& options,
                           std::optional<int64_t> limit_bytes);

/// Bytes that live at some times of the last step, without the rounding of blocks.
struct StepLevels {
    int64_t begin_bytes = 0;   // when the step begins
    int64_t update_bytes = 0;  // the most while the optimizer has temporaries; 0: it has none
};
StepLevels levels_of(const StepRequests& step, const MemoryOptions& options);

bool is_cublas_workspace(Category category, int64_t size_bytes);

}  // namespace profiler
