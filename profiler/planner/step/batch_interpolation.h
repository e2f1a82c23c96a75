#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/planner/step/step_memory.h"
#include "profiler/planner/step/step_work.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// One workload at every batch size, interpolated from as few traces as possible.
namespace profiler {

/// Traces a step without running it on a GPU: allocations in order with their requested bytes, ops
/// with their work; no addresses and no times. The capability says for which class of GPUs. In the
/// program workers trace; tests make their own traces. Plans call it from several threads at once.
using MetaTraceSource = std::function<models::Result<std::shared_ptr<const Trace>>(
    const models::Workload&, ComputeCapability)>;

/// All plans are traced for this class. On other classes only the size of the cuBLAS workspaces
/// differs, and `MemoryOptions` sets it.
inline constexpr ComputeCapability kTracedCapability = models::kAmpere;

/// Not safe for several threads at once. `source` must outlive it.
///
/// Some kernels allocate differently above a number of tokens. Batches are therefore divided into
/// ranges in which the sequence of requests stays the same:
///
///     1 | 2 ... 6 | 7 ... 59 | 60 ... largest    BERT, S = 512. The embedding's backward sorts
///                   main                         above 3072 tokens; above 30522 tokens (the
///                                                vocabulary) its buffers no longer grow.
///
/// Inside a range, sizes are interpolated between two traced batches; they are traced when the
/// range is first needed. Batch 1 may have a sequence of its own and is traced itself.
class BatchInterpolation {
public:
    /// Larger batches are not tried.
    static constexpr int64_t kLargestBatch = int64_t{1} << 20;

    /// Traces the first two batches of the main range, in which most maximum batches lie.
    /// Errors: a workload that is invalid at batch 1; errors of the source.
    static models::Result<BatchInterpolation> trace(const models::Workload& workload,
                                                    const MetaTraceSource& source);

    const models::Workload& workload() const { return workload_; }
    /// The largest batch that the model accepts (no tensor over 2^31 elements).
    int64_t largest_valid_batch() const { return ranges_.back().last; }
    /// The first batch of the main range: a good start for a search, because it is traced.
    int64_t main_begin() const { return ranges_[main_].first; }

    models::Result<StepWork> at(int64_t batch_size);
    /// Only the ops, without requests. Cached, because all GPUs try the same batches.
    models::Result<StepWork> ops_at(int64_t batch_size);

    /// Peaks without a limit; cached, because GPUs with equal options share them.
    models::Result<StepMemory> unlimited_memory(int64_t batch_size, const MemoryOptions& options);
    /// The peaks that `unlimited_memory` has cached, by batch.
    const std::map<int64_t, StepMemory>& known_peaks(const MemoryOptions& options);
    models::Result<StepMemory> limited_memory(int64_t batch_size, const MemoryOptions& options,
                                              int64_t limit_bytes);

    /// Why each batch in the range of `batch_size` was traced itself, as a clause for a note; empty
    /// if the range is interpolated.
    std::string why_not_affine(int64_t batch_size);
    /// Whether `ops_at` interpolates. If not, each batch costs a trace.
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
    std::map<int64_t, StepWork> traced_;         // by batch size
    std::unordered_map<int64_t, StepWork> ops_;  // by batch size
    struct Peaks {
        MemoryOptions options;
        std::map<int64_t, StepMemory> by_batch;
    };
    Peaks& peaks_of(const MemoryOptions& options);
    std::deque<Peaks> peaks_;  // references to its elements stay valid
};

}  // namespace profiler
