#pragma once

#include "models/config/compute_capability.h"
#include "models/config/workload.h"
#include "profiler/capture/capture_callbacks.h"
#include "profiler/trace/trace.h"

#include <cstdint>

/// The Meta source: the model's own code, autograd and optimizer, run on torch's Meta device, where
/// tensors have shapes and no memory. What comes out is what a GPU would be asked for.
namespace profiler {

/// The GPU that is predicted, as far as it decides what a step allocates.
struct MetaTarget {
    models::ComputeCapability capability;
    int64_t warmup_steps = 1;
    int64_t steps = 1;
};

/// Trains `workload` on Meta and records it into `trace`, which must be empty: a MetaTrace.
///
/// A MetaTrace is a Trace with source `predicted` and time_basis `event_order`:
///   - all requests to the CUDA allocator from the first parameter on, in CUDA's order, the warm-up
///     too: `requested_bytes` = `block_bytes`; no addresses, segments, streams, pools;
///   - phases of the warm-up, which belong to no step, and the categories of its allocations;
///   - ops, module paths and saves of the recorded steps only;
///   - every time (`*_ns`) is the number of allocator events before it: ordered, but no time;
///   - losses are 0: there are no values.
/// `models::validate_for_prediction` must have accepted the workload. docs/prediction.md says what
/// is mirrored and what of it no recording has confirmed. One capture at a time in a process.
/// Throws Cancelled, c10::Error.
void capture_on_meta(const models::Workload& workload, const MetaTarget& target,
                     const CaptureCallbacks& callbacks, Trace& trace);

}  // namespace profiler
