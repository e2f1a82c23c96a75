#pragma once

#include "models/config/result.h"
#include "profiler/allocator/sizes.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/planner/step/step_memory.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// The largest batch in a given memory, and the least memory for a given batch.
///
/// A step whose reserved peak is within the capacity fits, and a step whose allocated peak is above
/// it does not. In between the allocator decides: it frees cached segments and tries again before
/// it fails. Only there a step is simulated with the capacity as its limit.
namespace profiler {

/// Whether a step fits. `unlimited`: its peaks without a limit; `limited` simulates the step with
/// the capacity as its limit.
models::Result<bool> fits(const StepMemory& unlimited, int64_t capacity_bytes,
                          const std::function<models::Result<StepMemory>()>& limited);

/// The same for one batch of a workload.
models::Result<bool> fits_at(BatchInterpolation& interpolation, const MemoryOptions& options,
                             int64_t capacity_bytes, int64_t batch_size);

/// The largest batch that fits, as far as interpolated steps say; 0 if not even batch 1 does.
models::Result<int64_t> find_max_batch(BatchInterpolation& interpolation,
                                       const MemoryOptions& options, int64_t capacity_bytes);
/// The same; the batch and the next one, which does not fit, are traced.
models::Result<int64_t> find_traced_max_batch(BatchInterpolation& interpolation,
                                              const MemoryOptions& options, int64_t capacity_bytes);

/// The smallest capacity, to `precision_bytes`, in which a step runs that does not run in
/// `too_small_bytes`. `limited` simulates the step with a limit.
models::Result<int64_t> least_capacity_bytes(
    const StepMemory& unlimited, int64_t too_small_bytes,
    const std::function<models::Result<StepMemory>(int64_t limit_bytes)>& limited,
    int64_t precision_bytes = kSmallSegmentBytes);
models::Result<int64_t> least_capacity_bytes(BatchInterpolation& interpolation,
                                             const MemoryOptions& options, int64_t batch_size,
                                             int64_t too_small_bytes,
                                             int64_t precision_bytes = kSmallSegmentBytes);

/// What a step needs that does not fit: "23.2 GiB for tensors", or "23.2 GiB for tensors and
/// fragmentation (22.6 GiB for tensors alone)" where the tensors alone are within the capacity.
std::string text_of_need(int64_t needed_bytes, const StepMemory& unlimited, int64_t capacity_bytes);

// Which batches a search for the best throughput tries. Throughput rises and falls with whole
// tiles and waves of the GEMMs, so neighbouring batches differ.

/// The batches of the first pass: every batch up to 64, every 8th or fewer above, and `max_batch`.
/// Without `dense` only powers of two and `max_batch`: for workloads in which each batch costs a
/// trace.
std::vector<int64_t> sampled_batches(int64_t max_batch, bool dense);

/// The batches of the second pass: those between each of `best` and its neighbours in `tried`
/// (rising), at most 64 on each side.
std::vector<int64_t> batches_between(const std::vector<int64_t>& best,
                                     const std::vector<int64_t>& tried);

}  // namespace profiler
