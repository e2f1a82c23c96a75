#include "profiler/capture/batch_sweep.h"

#include "models/config/batch_bisection.h"
#include "profiler/capture/processor_share.h"
#include "profiler/capture/recorded_training.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>

namespace profiler {
namespace {

class Sweep {
public:
    Sweep(const SweepOptions& options, const SweptDevice& device, const CaptureCallbacks& callbacks,
          Trace& trace)
        : options_(options), device_(device), callbacks_(callbacks), trace_(trace) {}

    double run() {
        if (options_.batch_sizes.empty()) {
            search();
        } else {
            for (const int64_t batch_size : options_.batch_sizes) try_batch(batch_size);
        }
        return processor_.share();
    }

private:
    void search() {
        models::BatchBisection search;
        while (!search.is_done()) {
            const int64_t batch_size = search.next();
            if (batch_size > options_.max_batch_size) return;
            search.answer(batch_size, try_batch(batch_size));
        }
    }

    /// Runs the steps of one batch size. The point is kOutOfMemory when they do not fit.
    bool try_batch(int64_t batch_size) {
        report(callbacks_, fmt::format("batch {}", batch_size), tried_++, 0);
        SweepPoint point{.batch_size = batch_size};
        std::vector<int64_t> step_times_ns;
        try {
            models::Training* training = nullptr;
            for (int64_t i = 0; i < options_.warmup_steps + options_.steps; ++i) {
                wait_for_turn(callbacks_, trace_);
                if (i == 0) training = &device_.begin_batch(batch_size);
                const int64_t step_time_ns = time_step(*training);
                if (i >= options_.warmup_steps) step_times_ns.push_back(step_time_ns);
            }
        } catch (const std::exception& error) {
            if (!is_out_of_memory(error)) throw;
            point.outcome = SweepOutcome::kOutOfMemory;
            const OutOfMemoryDetail refusal = device_.last_out_of_memory();
            point.requested_bytes = refusal.requested_bytes;
            point.free_bytes = refusal.free_bytes;
        }
        device_.read_peaks(point);
        add(point, step_times_ns);
        return point.outcome == SweepOutcome::kOk;
    }

    int64_t time_step(models::Training& training) {
        StepWatch watch(callbacks_);
        processor_.begin();
        const auto start = std::chrono::steady_clock::now();
        training.step(&watch);
        const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
        processor_.end();
        return elapsed.count();
    }

    void add(const SweepPoint& point, const std::vector<int64_t>& step_times_ns) {
        const Id<SweepPoint> id = trace_.sweep_points.append(point);
        for (const int64_t time : step_times_ns) {
            trace_.sweep_samples.append({.point = id, .step_time_ns = time});
        }
        if (callbacks_.step_done) callbacks_.step_done();
    }

    const SweepOptions& options_;
    const SweptDevice& device_;
    const CaptureCallbacks& callbacks_;
    Trace& trace_;
    ProcessorShare processor_;
    int64_t tried_ = 0;
};

}  // namespace

double sweep_batches(const SweepOptions& options, const SweptDevice& device,
                     const CaptureCallbacks& callbacks, Trace& trace) {
    return Sweep(options, device, callbacks, trace).run();
}

}  // namespace profiler
