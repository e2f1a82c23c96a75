#include "profiler/planner/step_family.h"

#include <algorithm>

namespace profiler {
namespace {

/// Larger batches than this are not looked for.
constexpr int64_t kLargestBatch = int64_t{1} << 20;

bool is_valid_at(models::Workload workload, int64_t batch_size) {
    workload.batch_size = batch_size;
    return models::validate(workload).has_value();
}

/// 0: not even one sequence.
int64_t find_largest_valid_batch(const models::Workload& workload) {
    int64_t valid = 0;
    int64_t invalid = kLargestBatch + 1;
    while (invalid - valid > 1) {
        const int64_t middle = valid + (invalid - valid) / 2;
        (is_valid_at(workload, middle) ? valid : invalid) = middle;
    }
    return valid;
}

}  // namespace

models::Result<StepFamily> StepFamily::trace(const models::Workload& workload,
                                             const MetaTraceSource& source) {
    StepFamily family(workload, source);
    family.workload_.batch_size = 1;
    if (const auto ok = models::validate(family.workload_); !ok) return tl::unexpected(ok.error());
    family.largest_valid_batch_ = find_largest_valid_batch(family.workload_);
    if (family.largest_valid_batch_ == 1) {
        family.why_not_affine_ = "the model accepts no batch above 1";
        if (const auto one = family.traced(1); !one) return tl::unexpected(one.error());
        return family;
    }
    const int64_t first = family.largest_valid_batch_ >= 4 ? 2 : 1;
    const auto small = family.traced(first);
    if (!small) return tl::unexpected(small.error());
    const auto large = family.traced(2 * first);
    if (!large) return tl::unexpected(large.error());
    if (auto affine = AffineStep::fit(**small, **large)) {
        family.affine_ = std::move(*affine);
    } else {
        family.why_not_affine_ = affine.error().message;
    }
    return family;
}

models::Result<const StepWork*> StepFamily::traced(int64_t batch_size) {
    if (const auto known = traced_.find(batch_size); known != traced_.end()) return &known->second;
    models::Workload workload = workload_;
    workload.batch_size = batch_size;
    const auto trace = (*source_)(workload, kTracedCapability);
    if (!trace) return tl::unexpected(trace.error());
    auto work = step_work_of(**trace);
    if (!work) return tl::unexpected(work.error());
    if (work->batch_size != batch_size) {
        return models::fail("A step of batch {} was asked for and one of batch {} was traced.",
                            batch_size, work->batch_size);
    }
    return &traced_.emplace(batch_size, std::move(*work)).first->second;
}

models::Result<StepWork> StepFamily::at(int64_t batch_size) {
    if (fits_line(batch_size)) return affine_->at(batch_size);
    const auto work = traced(batch_size);
    if (!work) return tl::unexpected(work.error());
    return **work;
}

models::Result<StepWork> StepFamily::ops_at(int64_t batch_size) {
    // Times of batch 1 need no trace of their own: the ops are those of other batches.
    if (affine_) return affine_->ops_at(batch_size);
    return at(batch_size);
}

models::Result<StepMemory> StepFamily::unlimited_memory(int64_t batch_size,
                                                        const MemoryOptions& options) {
    auto peaks = std::find_if(peaks_.begin(), peaks_.end(),
                              [&](const Peaks& other) { return other.options == options; });
    if (peaks == peaks_.end()) peaks = peaks_.insert(peaks_.end(), {options, {}});
    const auto known = peaks->by_batch.find(batch_size);
    if (known != peaks->by_batch.end()) return known->second;
    const auto work = at(batch_size);
    if (!work) return tl::unexpected(work.error());
    return peaks->by_batch[batch_size] = simulate_step(*work, options, std::nullopt);
}

models::Result<StepMemory> StepFamily::limited_memory(int64_t batch_size,
                                                      const MemoryOptions& options,
                                                      int64_t limit_bytes) {
    const auto unlimited = unlimited_memory(batch_size, options);
    if (!unlimited || unlimited->peak_reserved_bytes <= limit_bytes) return unlimited;
    const auto work = at(batch_size);
    if (!work) return tl::unexpected(work.error());
    return simulate_step(*work, options, limit_bytes);
}

}  // namespace profiler
