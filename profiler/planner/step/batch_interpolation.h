#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/planner/step/step_memory.h"
#include "profiler/planner/step/step_work.h"
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
/// addresses, no times. The capability says which class of GPUs it is traced for. The app gives
/// the worker, tests give traces of their own.
using MetaTraceSource = std::function<models::Result<std::shared_ptr<const Trace>>(
    const models::Workload&, ComputeCapability)>;

/// The class for which all plans are traced. What differs between GPUs in a step that all of them
/// run is the size of cuBLAS workspaces, which `MemoryOptions` sets.
inline constexpr ComputeCapability kTracedCapability = models::kAmpere;

/// Not safe to use from several threads at once. `source` must outlive it.
///
/// Batches lie in ranges within which the sequence of requests does not change:
///
///     1 | 2 ... 6 | 7 ... 59 | 60 ... largest    BERT, S = 512: torch sorts more than 3072 tokens;
///                   home                         more than the vocabulary's 30522 are not all new
///
/// A range gets its line from two traces when it is first asked for; batch 1, whose sequence may
/// be its own, is always traced itself.
class BatchInterpolation {
public:
    /// Larger batches than this are not looked for.
    static constexpr int64_t kLargestBatch = int64_t{1} << 20;

    /// Traces the two batches at the begin of the home range, where most maximum batches lie.
    /// Errors: a workload that cannot be at batch 1; what the source says.
    static models::Result<BatchInterpolation> trace(const models::Workload& workload,
                                                    const MetaTraceSource& source);

    const models::Workload& workload() const { return workload_; }
    /// The largest batch that the model accepts (no tensor over 2^31 elements).
    int64_t largest_valid_batch() const { return ranges_.back().last; }
    /// Where the home range begins: a search for a batch best begins there.
    int64_t main_begin() const { return ranges_[main_].first; }

    models::Result<StepWork> at(int64_t batch_size);
    /// What the ops have to do; without requests.
    models::Result<StepWork> ops_at(int64_t batch_size);

    /// Peaks without a limit; kept, since all GPUs of equal options share them.
    models::Result<StepMemory> unlimited_memory(int64_t batch_size, const MemoryOptions& options);
    models::Result<StepMemory> limited_memory(int64_t batch_size, const MemoryOptions& options,
                                              int64_t limit_bytes);

    /// Why the batches of this one's range were traced one by one; a clause for a note, empty when
    /// they were not.
    std::string why_not_affine(int64_t batch_size);
    /// Whether `ops_at` needs no trace of each batch.
    bool interpolates_ops() const { return ranges_[main_].line.has_value(); }

private:
    struct Range {
        int64_t first = 1;
        int64_t last = 1;
        bool is_traced = false;
        std::optional<AffineStep> line;
        std::string why_no_line;
    };

    BatchInterpolation(models::Workload workload, const MetaTraceSource& source)
        : workload_(std::move(workload)), source_(&source) {}

    void make_ranges(int64_t largest_valid_batch);
    Range& range_of(int64_t batch_size);
    models::Result<void> trace_range(Range& range);
    models::Result<const StepWork*> traced(int64_t batch_size);

    models::Workload workload_;
    const MetaTraceSource* source_;
    std::vector<Range> ranges_;  // rising, without gaps
    std::size_t main_ = 0;
    std::map<int64_t, StepWork> traced_;  // by batch size
    struct Peaks {
        MemoryOptions options;
        std::map<int64_t, StepMemory> by_batch;
    };
    std::vector<Peaks> peaks_;
};

}  // namespace profiler
