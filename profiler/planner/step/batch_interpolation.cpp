#include "profiler/planner/step/batch_interpolation.h"

#include "models/config/cuda_memory.h"
#include "models/config/validity.h"

#include <fmt/format.h>

#include <algorithm>

namespace profiler {
namespace {

bool is_valid_at(models::Workload workload, int64_t batch_size) {
    workload.batch_size = batch_size;
    return models::validate(workload).has_value();
}

/// 0: not even batch 1 is valid.
int64_t find_largest_valid_batch(const models::Workload& workload) {
    int64_t valid = 0;
    int64_t invalid = BatchInterpolation::kLargestBatch + 1;
    while (invalid - valid > 1) {
        const int64_t middle = valid + (invalid - valid) / 2;
        (is_valid_at(workload, middle) ? valid : invalid) = middle;
    }
    return valid;
}

bool has_embedding(const models::Workload& workload) {
    return workload.head != models::Head::kLayers;
}

/// The numbers of tokens above which kernels allocate differently (docs/prediction.md,
/// "thresholds") and that an ordinary batch exceeds.
std::vector<int64_t> token_thresholds(const models::Workload& workload) {
    std::vector<int64_t> tokens;
    const std::vector<models::Recipe> recipes = models::recipes_in(workload);
    const bool has_inplace_norm =
        std::any_of(recipes.begin(), recipes.end(), [](const models::Recipe& recipe) {
            return recipe.layer_norm == models::LayerNorm::kFromOutput &&
                   recipe.implementation == models::Implementation::kOurs;
        });
    if (has_inplace_norm) {
        tokens.push_back(models::kLayerNormPartialRows);
    }
    if (has_embedding(workload)) tokens.push_back(models::kMostUnsortedTokens);
    return tokens;
}

}  // namespace

models::Result<BatchInterpolation> BatchInterpolation::trace(const models::Workload& workload,
                                                             const MetaTraceSource& source) {
    BatchInterpolation interpolation(workload, source);
    interpolation.workload_.batch_size = 1;
    if (const auto ok = models::validate(interpolation.workload_); !ok)
        return tl::unexpected(ok.error());
    interpolation.make_ranges(find_largest_valid_batch(interpolation.workload_));
    if (const auto ok = interpolation.trace_range(interpolation.ranges_[interpolation.main_]);
        !ok) {
        return tl::unexpected(ok.error());
    }
    return interpolation;
}

void BatchInterpolation::make_ranges(int64_t largest_valid_batch) {
    const auto add_range_to = [&](int64_t last) {
        const int64_t first = ranges_.empty() ? 1 : ranges_.back().last + 1;
        last = std::min(last, largest_valid_batch);
        if (last >= first) ranges_.push_back({.first = first, .last = last});
    };
    add_range_to(1);
    for (const int64_t tokens : token_thresholds(workload_)) {
        add_range_to(tokens / workload_.seq_len);
    }
    main_ = ranges_.size();
    // The embedding's backward has a segment per distinct token: at most one per row of its table.
    if (has_embedding(workload_)) add_range_to(workload_.model.vocab_size / workload_.seq_len);
    add_range_to(largest_valid_batch);
    main_ = std::min(main_, ranges_.size() - 1);
}

BatchInterpolation::Range& BatchInterpolation::range_of(int64_t batch_size) {
    const auto range = std::find_if(ranges_.begin(), ranges_.end(),
                                    [&](const Range& one) { return batch_size <= one.last; });
    return range == ranges_.end() ? ranges_.back() : *range;
}

models::Result<void> BatchInterpolation::trace_range(Range& range) {
    if (range.is_traced) return {};
    const auto small = traced(range.first);
    if (!small) return tl::unexpected(small.error());
    range.is_traced = true;
    if (range.first == range.last) return {};
    const int64_t larger_batch = std::min(2 * range.first, range.last);
    const auto large = traced(larger_batch);
    if (!large) return tl::unexpected(large.error());
    if (auto line = AffineStep::fit(**small, **large)) {
        range.line = std::move(*line);
        traced_.erase(range.first);  // the line gives both from now on
        traced_.erase(larger_batch);
    } else {
        range.why_no_line = line.error().message;
    }
    return {};
}

models::Result<const StepWork*> BatchInterpolation::traced(int64_t batch_size) {
    if (const auto known = traced_.find(batch_size); known != traced_.end()) return &known->second;
    models::Workload workload = workload_;
    workload.batch_size = batch_size;
    const auto trace = (*source_)(workload, kTracedCapability);
    if (!trace) return tl::unexpected(trace.error());
    auto work = step_work_of(**trace);
    if (!work) return tl::unexpected(work.error());
    if (work->batch_size != batch_size) {
        return models::fail(
            "A step with batch {} was requested, but a step with batch {} was traced.", batch_size,
            work->batch_size);
    }
    order_frees(*work);
    return &traced_.emplace(batch_size, std::move(*work)).first->second;
}

models::Result<StepWork> BatchInterpolation::at(int64_t batch_size) {
    Range& range = range_of(batch_size);
    if (const auto ok = trace_range(range); !ok) return tl::unexpected(ok.error());
    if (range.line) return range.line->at(batch_size);
    const auto work = traced(batch_size);
    if (!work) return tl::unexpected(work.error());
    return **work;
}

std::string BatchInterpolation::why_not_affine(int64_t batch_size) {
    const Range& range = range_of(batch_size);
    if (range.why_no_line.empty()) return {};
    return fmt::format("each batch from {} to {} was traced: {}", range.first, range.last,
                       range.why_no_line);
}

models::Result<StepWork> BatchInterpolation::ops_at(int64_t batch_size) {
    // The ops are the same in all ranges, and the main range is traced.
    if (interpolates_ops()) {
        const auto known = ops_.find(batch_size);
        if (known != ops_.end()) return known->second;
        return ops_[batch_size] = ranges_[main_].line->ops_at(batch_size);
    }
    auto work = at(batch_size);
    if (work) merge_equal_ops(*work);
    return work;
}

models::Result<StepMemory> BatchInterpolation::unlimited_memory(int64_t batch_size,
                                                                const MemoryOptions& options) {
    std::map<int64_t, StepMemory>& by_batch = peaks_of(options).by_batch;
    const auto known = by_batch.find(batch_size);
    if (known != by_batch.end()) return known->second;
    const auto work = at(batch_size);
    if (!work) return tl::unexpected(work.error());
    return by_batch[batch_size] = simulate_step(*work, options, std::nullopt);
}

const std::map<int64_t, StepMemory>& BatchInterpolation::known_peaks(const MemoryOptions& options) {
    return peaks_of(options).by_batch;
}

BatchInterpolation::Peaks& BatchInterpolation::peaks_of(const MemoryOptions& options) {
    const auto known = std::find_if(peaks_.begin(), peaks_.end(),
                                    [&](const Peaks& other) { return other.options == options; });
    return known != peaks_.end() ? *known : peaks_.emplace_back(Peaks{options, {}});
}

models::Result<StepMemory> BatchInterpolation::limited_memory(int64_t batch_size,
                                                              const MemoryOptions& options,
                                                              int64_t limit_bytes) {
    const auto unlimited = unlimited_memory(batch_size, options);
    if (!unlimited || unlimited->peak_reserved_bytes <= limit_bytes) return unlimited;
    const auto work = at(batch_size);
    if (!work) return tl::unexpected(work.error());
    return simulate_step(*work, options, limit_bytes);
}

}  // namespace profiler
