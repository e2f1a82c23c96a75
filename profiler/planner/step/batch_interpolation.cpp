#include "profiler/planner/step/batch_interpolation.h"

#include "models/config/batch_bisection.h"
#include "models/config/validity.h"

#include <algorithm>
#include <future>

namespace profiler {
namespace {

bool is_valid_at(models::Workload workload, int64_t batch_size) {
    workload.batch_size = batch_size;
    return models::validate(workload).has_value();
}

/// 0: not even batch 1 is valid.
int64_t find_largest_valid_batch(const models::Workload& workload) {
    models::BatchBisection search{.fails = BatchInterpolation::kLargestBatch + 1};
    while (!search.is_done()) {
        const int64_t batch_size = search.next();
        search.answer(batch_size, is_valid_at(workload, batch_size));
    }
    return search.fits;
}

std::vector<int64_t> anchors_up_to(int64_t largest_batch) {
    constexpr int64_t kRatio = 8;  // traces cost time
    std::vector<int64_t> anchors{1};
    for (int64_t anchor = 4; anchor < largest_batch; anchor *= kRatio) anchors.push_back(anchor);
    if (largest_batch > 1) anchors.push_back(largest_batch);
    return anchors;
}

}  // namespace

models::Result<BatchInterpolation> BatchInterpolation::trace(const StepToTrace& step,
                                                             const StepSource& source,
                                                             TracingOptions options) {
    BatchInterpolation interpolation(step, &source);
    interpolation.options_ = std::move(options);
    models::Workload& workload = interpolation.step_.workload;
    workload.batch_size = 1;
    if (const auto ok = models::validate(workload); !ok) return tl::unexpected(ok.error());
    interpolation.largest_valid_batch_ = find_largest_valid_batch(workload);
    interpolation.anchors_ = source.batches(workload);
    if (interpolation.anchors_.empty()) {
        interpolation.anchors_ = anchors_up_to(interpolation.largest_valid_batch_);
    }
    if (const auto ok = interpolation.trace_ops(interpolation.first_traced()); !ok) {
        return tl::unexpected(ok.error());
    }
    return interpolation;
}

models::Result<BatchInterpolation> BatchInterpolation::of_steps(std::vector<StepWork> steps) {
    if (steps.size() < 2) return models::fail("One batch gives no line: record another one.");
    BatchInterpolation interpolation(StepToTrace{}, nullptr);
    auto ops = AffineOps::fit(steps.front(), steps.back());
    if (!ops) return tl::unexpected(ops.error());
    interpolation.ops_line_ = std::move(*ops);
    interpolation.largest_valid_batch_ = kLargestBatch;
    for (StepWork& step : steps) {
        const int64_t batch_size = step.batch_size;
        interpolation.anchors_.push_back(batch_size);
        interpolation.traced_.emplace(batch_size, std::move(step));
    }
    return interpolation;
}

/// A step that no GPU could hold is replaced by one of the anchors below.
models::Result<void> BatchInterpolation::trace_ops(int64_t first) {
    const int64_t last = anchors_around(first + 1).last;
    trace_together({first, last});
    const auto small = traced(first);
    const auto large = traced(last);
    if (small && large) {
        if (auto ops = AffineOps::fit(**small, **large)) ops_line_ = std::move(*ops);
        return {};
    }
    const models::Error& error = small ? large.error() : small.error();
    if (!error.gpu_out_of_memory() || first == anchors_.front()) return tl::unexpected(error);
    return trace_ops(anchors_around(first).first);
}

/// The anchors with first < batch <= last, or the two that are nearest to that.
BatchInterpolation::Interval BatchInterpolation::anchors_around(int64_t batch_size) const {
    auto last = std::lower_bound(anchors_.begin(), anchors_.end(), batch_size);
    if (last == anchors_.end()) --last;
    if (last == anchors_.begin() && batch_size < *last && anchors_.size() > 1) ++last;
    return {.first = last == anchors_.begin() ? *last : *(last - 1), .last = *last};
}

models::Result<const AffineRequests*> BatchInterpolation::line_over(const Interval& interval) {
    if (const auto known = lines_.find(interval.last); known != lines_.end()) return &known->second;
    trace_together({interval.first, interval.last});
    const auto small = traced(interval.first);
    const auto large = traced(interval.last);
    if (small && large) {
        auto line = AffineRequests::fit(**small, **large);
        if (!line) return tl::unexpected(line.error());
        return &lines_.emplace(interval.last, std::move(*line)).first->second;
    }
    const Interval below = anchors_around(interval.first);
    if (below.last != interval.first || below.first == below.last) {
        return tl::unexpected(small ? large.error() : small.error());
    }
    const auto line = line_over(below);
    if (!line) return line;
    return &lines_.emplace(interval.last, **line).first->second;
}

models::Result<const StepWork*> BatchInterpolation::traced(int64_t batch_size) {
    trace_together({batch_size});
    const auto& step = traced_.at(batch_size);
    if (!step) return tl::unexpected(step.error());
    return &*step;
}

void BatchInterpolation::trace_together(const std::vector<int64_t>& batches) {
    std::vector<int64_t> unknown;
    const auto add = [&](int64_t batch_size) {
        if (traced_.contains(batch_size) || std::ranges::count(unknown, batch_size) > 0) return;
        unknown.push_back(batch_size);
    };
    for (const int64_t batch_size : batches) add(batch_size);
    if (unknown.empty()) return;
    for (const int64_t batch_size : options_.later) {
        if (unknown.size() < options_.num_threads) add(batch_size);
    }
    std::vector<std::future<models::Result<StepWork>>> steps;
    for (std::size_t i = 0; i < unknown.size(); ++i) {
        // The first and those beyond the threads run on this thread, when their step is taken.
        const bool has_own_thread = i > 0 && i < options_.num_threads;
        steps.push_back(std::async(has_own_thread ? std::launch::async : std::launch::deferred,
                                   [this, batch = unknown[i]] { return trace_step(batch); }));
    }
    for (std::size_t i = 0; i < unknown.size(); ++i) {
        const auto& step = traced_.emplace(unknown[i], steps[i].get()).first->second;
        if (!step) continue;
        for (Peaks& peaks : peaks_) peaks.by_batch.erase(unknown[i]);  // they were interpolated
    }
}

models::Result<StepWork> BatchInterpolation::trace_step(int64_t batch_size) const {
    if (source_ == nullptr) return models::fail("Batch {} was not recorded.", batch_size);
    StepToTrace step = step_;
    step.workload.batch_size = batch_size;
    const auto trace = (*source_)(step);
    if (!trace) return tl::unexpected(trace.error());
    auto work = step_work_of(**trace);
    if (work && work->batch_size != batch_size) {
        return models::fail(
            "A step with batch {} was requested, but a step with batch {} was traced.", batch_size,
            work->batch_size);
    }
    return work;
}

models::Result<void> BatchInterpolation::trace_batch(int64_t batch_size) {
    const auto work = traced(batch_size);
    if (!work && !work.error().gpu_out_of_memory()) return tl::unexpected(work.error());
    return {};
}

models::Result<StepRequests> BatchInterpolation::requests_at(int64_t batch_size) {
    const auto of_two_steps = [](StepRequests step) {
        repeat_first_step(step);
        return step;
    };
    const Interval around = anchors_around(batch_size);
    if (traced_.contains(batch_size) || batch_size == around.last) {
        const auto own = traced(batch_size);
        if (own) return of_two_steps(**own);
        if (around.first == around.last) return tl::unexpected(own.error());
    }
    const auto line = line_over(around);
    if (!line) return tl::unexpected(line.error());
    return of_two_steps((*line)->at(batch_size));
}

models::Result<StepWork> BatchInterpolation::ops_at(int64_t batch_size) {
    if (ops_line_) {
        const auto known = ops_.find(batch_size);
        if (known != ops_.end()) return known->second;
        return ops_[batch_size] = ops_line_->at(batch_size);
    }
    const auto work = traced(batch_size);
    if (!work) return tl::unexpected(work.error());
    StepWork merged = **work;
    merge_equal_ops(merged);
    return merged;
}

models::Result<StepMemory> BatchInterpolation::unlimited_memory(int64_t batch_size,
                                                                const MemoryOptions& options) {
    std::map<int64_t, StepMemory>& by_batch = peaks_of(options).by_batch;
    const auto known = by_batch.find(batch_size);
    if (known != by_batch.end()) return known->second;
    const auto work = requests_at(batch_size);
    if (!work) return tl::unexpected(work.error());
    return by_batch[batch_size] = simulate_step(*work, options, std::nullopt);
}

const std::map<int64_t, StepMemory>& BatchInterpolation::known_peaks(const MemoryOptions& options) {
    return peaks_of(options).by_batch;
}

BatchInterpolation::Peaks& BatchInterpolation::peaks_of(const MemoryOptions& options) {
    const auto known = std::ranges::find(peaks_, options, &Peaks::options);
    return known != peaks_.end() ? *known : peaks_.emplace_back(Peaks{options, {}});
}

models::Result<StepMemory> BatchInterpolation::limited_memory(int64_t batch_size,
                                                              const MemoryOptions& options,
                                                              int64_t limit_bytes) {
    const auto unlimited = unlimited_memory(batch_size, options);
    if (!unlimited || unlimited->peak_reserved_bytes <= limit_bytes) return unlimited;
    const auto work = requests_at(batch_size);
    if (!work) return tl::unexpected(work.error());
    return simulate_step(*work, options, limit_bytes);
}

models::Result<BatchInterpolation*> InterpolationCache::get(const StepToTrace& step) {
    auto known = std::ranges::find_if(traced_, [&](const auto& one) { return one.first == step; });
    if (known == traced_.end()) {
        traced_.emplace_back(step, BatchInterpolation::trace(step, *source_));
        known = traced_.end() - 1;
    }
    if (!known->second) return tl::unexpected(known->second.error());
    return &*known->second;
}

void InterpolationCache::add(const StepToTrace& step, BatchInterpolation interpolation) {
    traced_.emplace_back(step, std::move(interpolation));
}

}  // namespace profiler
