#pragma once

#include "models/training/training.h"
#include "profiler/capture/capture_callbacks.h"
#include "profiler/capture/capture_options.h"
#include "profiler/capture/out_of_memory.h"
#include "profiler/trace/trace.h"

#include <functional>

/// The largest batch that trains, and the step time at each batch on the way, on any device.
namespace profiler {

/// What a sweep asks of the device's memory.
struct SweptMemory {
    /// Before a batch: the peaks and the refusals of others are forgotten.
    std::function<void()> begin_batch;
    std::function<void(SweepPoint&)> read_peaks;
    std::function<OutOfMemoryDetail()> last_out_of_memory;
};

/// Adds a row of `sweep_point` for each batch size tried, and its step times. Running out of memory
/// is a data point. A step has ended when its loss is known, so that times are whole steps' on a
/// device that works behind the program's back, too.
void sweep_batches(models::Training& training, const SweepOptions& options,
                   const SweptMemory& memory, const CaptureCallbacks& callbacks, Trace& trace);

}  // namespace profiler
