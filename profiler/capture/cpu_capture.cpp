#include "profiler/capture/cpu_capture.h"

#include "models/training/training.h"
#include "profiler/capture/batch_sweep.h"
#include "profiler/capture/measure_device.h"
#include "profiler/capture/processor_share.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/capture/recorder.h"
#include "profiler/capture/run_description.h"
#include "profiler/capture/tracking_allocator.h"
#include "profiler/trace/available_memory.h"

#include <ATen/Parallel.h>
#include <jemalloc/jemalloc.h>

/// Keeps memory that a step frees mapped in the process. Linking this library makes jemalloc the
/// malloc of the process, which reads these settings when it starts (jemalloc(3), TUNING).
///
/// Otherwise page faults would decide comparisons on the CPU. glibc's malloc takes each block over
/// 32 MiB from the system and gives it back, and its memalign cannot reuse a freed block of the
/// same size once something small lies behind it. Writing 128 MiB of attention probabilities then
/// takes ten times as long as the bandwidth allows, and a recipe that orders its blocks differently
/// looks slow.
/// decay -1: pages are never returned. oversize_threshold 0: large blocks come from the one arena,
/// too, so that all blocks reuse its freed extents.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0,narenas:1";
}

namespace profiler {
namespace {

#define TEMPOSCOPE_TEXT(x) #x
#define TEMPOSCOPE_ARENA_PURGE(arena) "arena." TEMPOSCOPE_TEXT(arena) ".purge"

/// Gives all freed memory back to the system, so that it counts as available.
void return_freed_memory() {
    mallctl(TEMPOSCOPE_ARENA_PURGE(MALLCTL_ARENAS_ALL), nullptr, nullptr, nullptr, 0);
}

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

/// The user's limit, else what the machine has: an allocation beyond it then fails with a sentence,
/// before the kernel ends the process.
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
    StepWatch watch(callbacks, &recorder, &training);
    ProcessorShare processor;
    for (int64_t i = 0; i < options.steps; ++i) {
        report(callbacks, "step", i, options.steps);
        recorder.skip(wait_for_turn(callbacks, trace));
        note_wall_clock(recorder.now_ns(), trace);
        processor.begin();
        const double loss = train_recorded(training, watch, recorder);
        processor.end();
        recorder.end_step(loss);
        describe_storages(recorder, training);  // without warm-up the optimizer's state is new
        note_step(recorder, training, i, loss);
        if (callbacks.step_done) callbacks.step_done();
    }
    report(callbacks, "step", options.steps, options.steps);
    recorder.stop();
    note_busy_machine(trace, processor.share());
}

SweptDevice swept_device(models::Training& training) {
    TrackingAllocator& allocator = TrackingAllocator::instance();
    return {.begin_batch = [&](int64_t batch_size) -> models::Training& {
                training.set_batch_size(batch_size);
                allocator.reset_peak();
                return training;
            },
            .read_peaks =
                [&](SweepPoint& point) {
                    point.peak_allocated_bytes = allocator.peak_bytes();
                    point.peak_reserved_bytes = point.peak_allocated_bytes;
                },
            .last_out_of_memory = [&] { return allocator.last_out_of_memory(); }};
}

RunEnvironment this_machine(const CaptureOptions& options) {
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
    warm_up(training, options.warmup_steps, callbacks);
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
    note_busy_machine(trace, sweep_batches(sweep, swept_device(training), callbacks, trace));
}

models::BenchmarkTime benchmark_on_cpu(const models::Benchmark& benchmark, double seconds,
                                       const CaptureCallbacks& callbacks) {
    const MemoryLimit limit(effective_limit({}));
    return time_benchmark(at::kCPU, benchmark, seconds, callbacks);
}

}  // namespace profiler
