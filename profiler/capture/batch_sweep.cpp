#include "profiler/capture/batch_sweep.h"

#include "profiler/capture/processor_share.h"
#include "profiler/capture/recorded_training.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>

namespace profiler {
namespace {

class Sweep {
public:
    Sweep(models::Training& training, const SweepOptions& options, const SweptMemory& memory,
          const CaptureCallbacks& callbacks, Trace& trace)
        : training_(training),
          options_(options),
          memory_(memory),
          callbacks_(callbacks),
          trace_(trace) {}

    double run() {
        if (options_.batch_sizes.empty()) {
            search();
        } else {
            for (const int64_t batch_size : options_.batch_sizes) try_batch(batch_size);
        }
        return processor_.share();
    }

private:
    /// Doubles the batch until it fails, then bisects.
    void search() {
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

    /// Runs the steps of one batch size. The point is kOutOfMemory when they do not fit.
    bool try_batch(int64_t batch_size) {
        report(callbacks_, fmt::format("batch {}", batch_size), tried_++, 0);
        SweepPoint point{.batch_size = batch_size};
        std::vector<int64_t> step_times_ns;
        try {
            for (int64_t i = 0; i < options_.warmup_steps + options_.steps; ++i) {
                wait_for_turn(callbacks_, trace_);
                if (i == 0) begin_batch(batch_size);
                const int64_t step_time_ns = time_step();
                if (i >= options_.warmup_steps) step_times_ns.push_back(step_time_ns);
            }
        } catch (const std::exception& error) {
            if (!is_out_of_memory(error)) throw;
            point.outcome = SweepOutcome::kOutOfMemory;
            const OutOfMemoryDetail refusal = memory_.last_out_of_memory();
            point.requested_bytes = refusal.requested_bytes;
            point.free_bytes = refusal.free_bytes;
        }
        memory_.read_peaks(point);
        add(point, step_times_ns);
        return point.outcome == SweepOutcome::kOk;
    }

    void begin_batch(int64_t batch_size) {
        training_.set_batch_size(batch_size);
        memory_.begin_batch();
    }

    int64_t time_step() {
        StepWatch watch(callbacks_);
        processor_.begin();
        const auto start = std::chrono::steady_clock::now();
        training_.step(&watch);
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

    models::Training& training_;
    const SweepOptions& options_;
    const SweptMemory& memory_;
    const CaptureCallbacks& callbacks_;
    Trace& trace_;
    ProcessorShare processor_;
    int64_t tried_ = 0;
};

}  // namespace

double sweep_batches(models::Training& training, const SweepOptions& options,
                     const SweptMemory& memory, const CaptureCallbacks& callbacks, Trace& trace) {
    return Sweep(training, options, memory, callbacks, trace).run();
}

}  // namespace profiler
