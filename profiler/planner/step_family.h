#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/planner/gpu.h"
#include "profiler/planner/step_memory.h"
#include "profiler/planner/step_work.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// One workload at every batch size, from as few traces as possible.
namespace profiler {

/// Traces a step without running it: events in order, requested bytes, ops with their work; no
/// addresses, no times. The capability says which class of cards it is traced for. The app gives
/// the worker, tests give traces of their own.
using MetaTraceSource = std::function<models::Result<std::shared_ptr<const Trace>>(
    const models::Workload&, ComputeCapability)>;

/// The class for which all plans are traced. What differs between cards in a step that all of them
/// run is the size of cuBLAS workspaces, which `MemoryOptions` sets.
inline constexpr ComputeCapability kTracedCapability{8, 0};

/// Not safe to use from several threads at once. `source` must outlive it.
class StepFamily {
public:
    /// Traces batches 2 and 4 (1 and 2 where the model allows no more).
    /// Errors: a workload that cannot be at batch 1; what the source says.
    static models::Result<StepFamily> trace(const models::Workload& workload,
                                            const MetaTraceSource& source);

    const models::Workload& workload() const { return workload_; }
    /// The largest batch that the model accepts (no tensor over 2^31 elements).
    int64_t largest_valid_batch() const { return largest_valid_batch_; }

    /// Batch 1 and batches of a family that is not affine are traced themselves.
    models::Result<StepWork> at(int64_t batch_size);
    models::Result<StepWork> ops_at(int64_t batch_size);

    /// Peaks without a limit; kept, since all cards of equal options share them.
    models::Result<StepMemory> unlimited_memory(int64_t batch_size, const MemoryOptions& options);
    models::Result<StepMemory> limited_memory(int64_t batch_size, const MemoryOptions& options,
                                              int64_t limit_bytes);

    bool is_affine() const { return affine_.has_value(); }
    /// Why not; one clause for a note.
    const std::string& why_not_affine() const { return why_not_affine_; }

private:
    StepFamily(models::Workload workload, const MetaTraceSource& source)
        : workload_(std::move(workload)), source_(&source) {}

    models::Result<const StepWork*> traced(int64_t batch_size);
    bool fits_line(int64_t batch_size) const { return affine_ && batch_size > 1; }

    models::Workload workload_;
    const MetaTraceSource* source_;
    int64_t largest_valid_batch_ = 0;
    std::optional<AffineStep> affine_;
    std::string why_not_affine_;
    std::map<int64_t, StepWork> traced_;  // by batch size
    struct Peaks {
        MemoryOptions options;
        std::map<int64_t, StepMemory> by_batch;
    };
    std::vector<Peaks> peaks_;
};

}  // namespace profiler
