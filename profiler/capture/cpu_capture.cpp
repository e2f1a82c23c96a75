#include "profiler/capture/cpu_capture.h"

#include "models/training.h"
#include "profiler/capture/available_memory.h"
#include "profiler/capture/freed_memory.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/capture/recorder.h"
#include "profiler/capture/run_description.h"
#include "profiler/capture/tracking_allocator.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

namespace profiler {
namespace {

/// Limits the tracking allocator for the lifetime of the object.
class MemoryLimit {
public:
    explicit MemoryLimit(int64_t limit_bytes) {
        TrackingAllocator::instance().set_limit(limit_bytes);
    }
    ~MemoryLimit() { TrackingAllocator::instance().set_limit(-1); }
    MemoryLimit(const MemoryLimit&) = delete;
    MemoryLimit& operator=(const MemoryLimit&) = delete;
};

/// Without a limit of the user's, what the machine has: an allocation then fails with a sentence
/// instead of the kernel ending the process.
int64_t effective_limit(const CaptureOptions& options) {
    if (options.memory_limit_bytes >= 0) return options.memory_limit_bytes;
    return_freed_memory();
    const int64_t available_bytes = available_memory_bytes();
    if (available_bytes < 0) return -1;  // not known: no limit
    return TrackingAllocator::instance().allocated_bytes() + available_bytes;
}

void record_steps(models::Training& training, const CaptureOptions& options,
                  const CaptureCallbacks& callbacks, Trace& trace) {
    Recorder recorder(trace);
    recorder.start();
    describe_storages(recorder, training);
    RecordedStep recorded(recorder, training, callbacks);
    CancellableListener listener(&recorded, callbacks);
    for (int64_t i = 0; i < options.steps; ++i) {
        report(callbacks, "step", i, options.steps);
        recorder.begin_step();
        const double loss = training.step(&listener);
        recorder.end_step(loss);
        describe_storages(recorder, training);  // without warm-up the optimizer's state is new
        if (!std::isfinite(loss)) {
            recorder.add_note(
                "loss_not_finite", Severity::kWarning,
                fmt::format("The loss of step {} is {}: memory and time are still right, the "
                            "training is not; try a smaller learning rate or fp32.",
                            i, loss));
        }
        if (training.skipped_update()) {
            recorder.add_note(
                "update_skipped", Severity::kWarning,
                fmt::format("The optimizer did not run in step {}, because a gradient overflowed "
                            "in 16 bits: its memory and time are missing; record later steps "
                            "(--warmup).",
                            i));
        }
        if (callbacks.step_done) callbacks.step_done(trace);
    }
    report(callbacks, "step", options.steps, options.steps);
    recorder.stop();
}

/// Runs the steps of one batch size; the point is kOutOfMemory when they do not fit.
class Sweep {
public:
    Sweep(models::Training& training, const SweepOptions& options,
          const CaptureCallbacks& callbacks, Trace& trace)
        : training_(training), options_(options), callbacks_(callbacks), trace_(trace) {}

    void run() {
        if (!options_.batch_sizes.empty()) {
            for (const int64_t batch_size : options_.batch_sizes) try_batch(batch_size);
            return;
        }
        int64_t fits = 0;
        int64_t fails = 0;
        for (int64_t batch_size = 1; fails == 0 && batch_size <= options_.max_batch_size;
             batch_size *= 2) {
            (try_batch(batch_size) ? fits : fails) = batch_size;
        }
        while (fails - fits > 1) {
            const int64_t middle = fits + (fails - fits) / 2;
            (try_batch(middle) ? fits : fails) = middle;
        }
    }

private:
    bool try_batch(int64_t batch_size) {
        report(callbacks_, fmt::format("batch {}", batch_size), tried_++, 0);
        TrackingAllocator& allocator = TrackingAllocator::instance();
        SweepPoint point{.batch_size = batch_size};
        std::vector<int64_t> step_times_ns;
        try {
            training_.set_batch_size(batch_size);
            allocator.reset_peak();
            CancellableListener listener(nullptr, callbacks_);
            for (int64_t i = 0; i < options_.warmup_steps + options_.steps; ++i) {
                const auto start = std::chrono::steady_clock::now();
                training_.step(&listener);
                const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
                if (i >= options_.warmup_steps) step_times_ns.push_back(elapsed.count());
            }
        } catch (const c10::OutOfMemoryError&) {
            const auto failure = allocator.last_out_of_memory();
            point.outcome = SweepOutcome::kOutOfMemory;
            point.requested_bytes = failure.requested_bytes;
            point.free_bytes = failure.free_bytes;
        }
        point.peak_allocated_bytes = allocator.peak_bytes();
        point.peak_reserved_bytes = point.peak_allocated_bytes;
        add(point, step_times_ns);
        return point.outcome == SweepOutcome::kOk;
    }

    void add(const SweepPoint& point, const std::vector<int64_t>& step_times_ns) {
        const Id<SweepPoint> id = trace_.sweep_points.append(point);
        for (const int64_t time : step_times_ns) {
            trace_.sweep_samples.append({.point = id, .step_time_ns = time});
        }
        if (callbacks_.step_done) callbacks_.step_done(trace_);
    }

    models::Training& training_;
    const SweepOptions& options_;
    const CaptureCallbacks& callbacks_;
    Trace& trace_;
    int64_t tried_ = 0;
};

RunPlace this_machine(const CaptureOptions& options) {
    return {.source = Source::kMeasuredCpu,
            .time_basis = TimeBasis::kMeasured,
            .device_name = processor_name(),
            .memory_limit_bytes = options.memory_limit_bytes,
            .num_threads = at::get_num_threads()};
}

void set_threads(int num_threads) {
    if (num_threads > 0) at::set_num_threads(num_threads);
}

}  // namespace

void capture_on_cpu(const models::Workload& workload, const CaptureOptions& options,
                    const CaptureCallbacks& callbacks, Trace& trace) {
    set_threads(options.num_threads);
    const MemoryLimit limit(effective_limit(options));
    describe_run(workload, this_machine(options), trace);
    report(callbacks, "building the model", 0, 1);
    models::Training training(workload);
    warm_up(training, options.warmup_steps, nullptr, callbacks);
    record_steps(training, options, callbacks, trace);
}

void sweep_on_cpu(const models::Workload& workload, const CaptureOptions& options,
                  const SweepOptions& sweep, const CaptureCallbacks& callbacks, Trace& trace) {
    set_threads(options.num_threads);
    const MemoryLimit limit(effective_limit(options));
    if (trace.runs.empty()) describe_run(workload, this_machine(options), trace);
    report(callbacks, "building the model", 0, 1);
    models::Workload smallest = workload;
    smallest.batch_size = 1;
    models::Training training(smallest);
    Sweep(training, sweep, callbacks, trace).run();
}

}  // namespace profiler
