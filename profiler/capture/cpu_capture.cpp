#include "profiler/capture/cpu_capture.h"

#include "models/training.h"
#include "profiler/capture/available_memory.h"
#include "profiler/capture/batch_sweep.h"
#include "profiler/capture/freed_memory.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/capture/recorder.h"
#include "profiler/capture/run_description.h"
#include "profiler/capture/tracking_allocator.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>

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

/// How much of the steps' time this process ran: at least one of its threads always has something
/// to do, so that a machine of its own gives it 1 or more. (With many threads it may be 1 on a
/// shared machine too: what is called busy is busy, not the other way round.)
class ProcessorShare {
public:
    void begin_step() {
        start_ = std::chrono::steady_clock::now();
        start_processor_s_ = read_processor_s();
    }
    void end_step() {
        wall_ += std::chrono::steady_clock::now() - start_;
        processor_s_ += read_processor_s() - start_processor_s_;
    }
    double share() const { return wall_.count() > 0 ? processor_s_ / wall_.count() : 1; }

private:
    static double read_processor_s() {
        timespec time{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    }

    std::chrono::steady_clock::time_point start_;
    double start_processor_s_ = 0;
    std::chrono::duration<double> wall_{0};
    double processor_s_ = 0;
};

void note_busy_machine(Recorder& recorder, double share) {
    constexpr double kLeastShare = 0.9;
    if (share >= kLeastShare) return;
    recorder.add_note(
        kMachineBusy, Severity::kWarning,
        fmt::format("Something else ran on this machine: the steps got {:.0f} % of the time of one "
                    "processor. Memory is right; times are not the recipe's, capture again when "
                    "the machine is idle.",
                    share * 100));
}

void record_steps(models::Training& training, const CaptureOptions& options,
                  const CaptureCallbacks& callbacks, Trace& trace) {
    Recorder recorder(trace);
    recorder.start();
    describe_storages(recorder, training);
    RecordedStep recorded(recorder, training, callbacks);
    CancellableListener listener(&recorded, callbacks);
    ProcessorShare processor;
    for (int64_t i = 0; i < options.steps; ++i) {
        report(callbacks, "step", i, options.steps);
        recorder.begin_step();
        processor.begin_step();
        const double loss = training.step(&listener);
        processor.end_step();
        recorder.end_step(loss);
        describe_storages(recorder, training);  // without warm-up the optimizer's state is new
        note_step(recorder, training, i, loss);
        if (callbacks.step_done) callbacks.step_done(trace);
    }
    report(callbacks, "step", options.steps, options.steps);
    note_busy_machine(recorder, processor.share());
    recorder.stop();
}

SweptMemory swept_memory() {
    TrackingAllocator& allocator = TrackingAllocator::instance();
    return {.begin_batch = [&] { allocator.reset_peak(); },
            .read_peaks =
                [&](SweepPoint& point) {
                    point.peak_allocated_bytes = allocator.peak_bytes();
                    point.peak_reserved_bytes = point.peak_allocated_bytes;
                },
            .last_out_of_memory = [&] { return allocator.last_out_of_memory(); }};
}

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
    sweep_batches(training, sweep, swept_memory(), callbacks, trace);
}

}  // namespace profiler
