#pragma once

#include "profiler/capture/capture_options.h"
#include "profiler/layouts/layout_plan.h"

#include <c10/core/Device.h>

#include <vector>

namespace profiler {

/// Measures every configuration of every op of the encoder layer on `device`, on which nothing else
/// should run, and the copies between orders. Values are fp32.
///
/// The configurations of an op run in turn, round by round, so that a change of the machine's speed
/// hits all of them alike; the figure is the median. A configuration that takes far longer than the
/// best in the first two runs gets no further round. Configurations that are the same GEMM, and
/// equal ops, are measured once.
/// Errors: c10::Error, Cancelled.
LayoutGraph measure_layouts(const at::Device& device, const LayoutMeasurement& measurement,
                            const CaptureCallbacks& callbacks);

/// Runs whole layers, op by op with their copies, and returns the median time of each. They run in
/// turn, one of each in every round.
/// Errors: as above; std::invalid_argument for a GEMM that no call computes.
std::vector<double> time_layout_runs(const at::Device& device, const LayoutMeasurement& measurement,
                                     const std::vector<LayoutRun>& runs,
                                     const CaptureCallbacks& callbacks);

}  // namespace profiler
