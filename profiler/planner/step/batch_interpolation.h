#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/planner/step/step_memory.h"
#include "profiler/planner/step/step_work.h"
#include "profiler/trace/trace.h"

#include <concepts>
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

/// A step, and the GPU on which it is traced. On another GPU reductions take other scratch.
struct StepToTrace {
    models::Workload workload;
    std::string gpu;  // its id; empty: one GPU for all plans
    friend bool operator==(const StepToTrace&, const StepToTrace&) = default;
};

/// Traces a step: allocations in order with their requested bytes, and ops with their work. In the
/// program workers do it on virtual GPUs; tests make their own traces. Plans call it from several
/// threads at once.
class StepSource {
public:
    using Function =
        std::function<models::Result<std::shared_ptr<const Trace>>(const StepToTrace&)>;
    /// The batches of a workload that a source has, rising; empty: none.
    using Batches = std::function<std::vector<int64_t>(const models::Workload&)>;

    /// Without `batches`, the source traces any batch.
    template <typename Lambda>
        requires std::convertible_to<Lambda, Function>
    StepSource(Lambda trace, Batches batches = nullptr)  // implicit: a lambda is a source
        : trace_(std::move(trace)), batches_(std::move(batches)) {}

    models::Result<std::shared_ptr<const Trace>> operator()(const StepToTrace& step) const {
        return trace_(step);
    }
    std::vector<int64_t> batches(const models::Workload& workload) const {
        return batches_ ? batches_(workload) : std::vector<int64_t>();
    }

private:
    Function trace_;
    Batches batches_;
};

struct TracingOptions {
    std::size_t num_threads = 1;  // that call the source at once
    std::vector<int64_t> later;   // batches that will be needed: for threads with nothing to do
};

/// Not safe for several threads at once. `source` must outlive it.
///
/// Some kernels allocate differently from some batch on: the embedding's backward sorts above 3072
/// tokens, a reduction takes scratch when its rows no longer fill the GPU, and its scratch stops
/// growing at a number of bytes per multiprocessor. So requests are interpolated between
/// neighbouring anchors only:
///
///     1 ──── 4 ──────────── 32 ──────────── 256 ...       or the batches that the source has
///
/// Anchors are traced when a batch beside them is first needed. Beyond the last one, and where one
/// cannot be traced, the line of the anchors below is extended.
class BatchInterpolation {
public:
    /// Larger batches are not tried.
    static constexpr int64_t kLargestBatch = int64_t{1} << 20;

    /// Traces two anchors: the second and the third, if there are three.
    /// Errors: a workload that is invalid at batch 1; errors of the source.
    static models::Result<BatchInterpolation> trace(const StepToTrace& step,
                                                    const StepSource& source,
                                                    TracingOptions options = {});

    /// A program that is not ours, from its recorded steps, by rising batch. None is traced anew.
    /// Errors: fewer than two steps, or steps that run different ops.
    static models::Result<BatchInterpolation> of_steps(std::vector<StepWork> steps);

    const models::Workload& workload() const { return step_.workload; }
    /// The largest batch that the model accepts (no tensor over 2^31 elements).
    int64_t largest_valid_batch() const { return largest_valid_batch_; }
    /// The first batch that is traced: a good start for a search.
    int64_t first_traced() const { return anchors_[anchors_.size() > 2 ? 1 : 0]; }

    /// Traces this batch itself: from now on its requests are exact. A batch that no GPU could hold
    /// stays interpolated.
    models::Result<void> trace_batch(int64_t batch_size);
    /// Traces the batches that have no trace yet, at once if there are threads. The error of a
    /// batch is kept for its next use.
    void trace_together(const std::vector<int64_t>& batches);

    /// The requests of a process that runs two steps.
    models::Result<StepRequests> requests_at(int64_t batch_size);
    /// Only the ops, without requests. Cached, because all GPUs try the same batches.
    models::Result<StepWork> ops_at(int64_t batch_size);

    /// Peaks without a limit; cached, because GPUs with equal options share them.
    models::Result<StepMemory> unlimited_memory(int64_t batch_size, const MemoryOptions& options);
    /// The peaks that `unlimited_memory` has cached, by batch.
    const std::map<int64_t, StepMemory>& known_peaks(const MemoryOptions& options);
    models::Result<StepMemory> limited_memory(int64_t batch_size, const MemoryOptions& options,
                                              int64_t limit_bytes);

    /// Whether `ops_at` interpolates. If not, each batch costs a trace.
    bool interpolates_ops() const { return ops_line_.has_value(); }

private:
    /// Between two traced batches.
    struct Interval {
        int64_t first = 1;
        int64_t last = 1;
    };

    BatchInterpolation(StepToTrace step, const StepSource* source)
        : step_(std::move(step)), source_(source) {}

    Interval anchors_around(int64_t batch_size) const;
    /// Errors: of the source; or the two ends cannot be compared.
    models::Result<const AffineRequests*> line_over(const Interval& interval);
    models::Result<const StepWork*> traced(int64_t batch_size);
    models::Result<StepWork> trace_step(int64_t batch_size) const;
    models::Result<void> trace_ops(int64_t first);

    StepToTrace step_;
    const StepSource* source_;  // null: only what is in traced_
    TracingOptions options_;
    int64_t largest_valid_batch_ = 1;
    std::vector<int64_t> anchors_;                        // rising, at least one
    std::map<int64_t, models::Result<StepWork>> traced_;  // by batch size
    std::map<int64_t, AffineRequests> lines_;             // by the larger anchor
    std::optional<AffineOps> ops_line_;
    std::unordered_map<int64_t, StepWork> ops_;  // by batch size
    struct Peaks {
        MemoryOptions options;
        std::map<int64_t, StepMemory> by_batch;
    };
    Peaks& peaks_of(const MemoryOptions& options);
    std::deque<Peaks> peaks_;  // references to its elements stay valid
};

/// The interpolations of several steps, so that each is traced only once. Not safe for several
/// threads at once.
class InterpolationCache {
public:
    /// `source` must outlive the cache.
    explicit InterpolationCache(const StepSource& source) : source_(&source) {}

    /// Stays valid as long as the cache. Errors: as BatchInterpolation::trace.
    models::Result<BatchInterpolation*> get(const StepToTrace& step);
    void add(const StepToTrace& step, BatchInterpolation interpolation);
    const StepSource& source() const { return *source_; }

private:
    const StepSource* source_;
    std::deque<std::pair<StepToTrace, models::Result<BatchInterpolation>>> traced_;
};

}  // namespace profiler
