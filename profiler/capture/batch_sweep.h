#pragma once

#include "models/training/training.h"
#include "profiler/capture/capture_options.h"
#include "profiler/capture/torch_adapter/out_of_memory.h"
#include "profiler/trace/trace.h"

#include <functional>

/// The largest batch that trains, and the step time at each batch on the way, on any device.
namespace profiler {

/// What a sweep needs of the device.
struct SweptDevice {
    /// Builds the training of a batch of this size. The training that it returned before ends here,
    /// and the peaks and failed allocations of earlier batches are forgotten. May throw as a step
    /// does.
    std::function<models::Training&(int64_t batch_size)> begin_batch;
    std::function<void(SweepPoint&)> read_peaks;
    std::function<OutOfMemoryDetail()> last_out_of_memory;
};

/// Adds a row of `sweep_point` for each batch size tried, and its step times. A batch that does not
/// fit is a result, not an error. A step ends when its loss is known on the host, so that times are
/// right on a device that works asynchronously. Returns the share of the time in which this process
/// had a processor (ProcessorShare).
double sweep_batches(const SweepOptions& options, const SweptDevice& device,
                     const CaptureCallbacks& callbacks, Trace& trace);

}  // namespace profiler
