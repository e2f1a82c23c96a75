#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/placement/place_and_schedule.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/protocol/virtual_gpu_process.h"
#include "profiler/trace/trace.h"

#include <string>

namespace app {

/// A GPU and what is assumed around it.
struct PredictionTarget {
    const profiler::Gpu* gpu = nullptr;
    const profiler::SoftwareEnvironment* environment = nullptr;
    profiler::AllocatorSettings allocator = {};
};

/// The GPU and the software environment of these ids. If the environment's PyTorch does not run on
/// the GPU, another environment stands in. The result points into `data`. Errors: unknown ids.
models::Result<PredictionTarget> find_target(const profiler::PlannerData& data,
                                             const std::string& gpu_id,
                                             const std::string& setup_id);

/// The step as the GPU would record it. `source` traces with TraceDetail::kForCapture.
/// Errors: of the source, of place_and_schedule.
models::Result<profiler::Trace> predict_trace(const models::Workload& workload,
                                              const PredictionTarget& target,
                                              const profiler::PlannerData& data,
                                              const profiler::StepSource& source);

/// A GPU of the program's or the user's catalogue, with the software that such a program runs on.
class ProgramTarget {
public:
    /// Errors: an unknown GPU, one that is not CUDA's, the user's own files.
    static models::Result<ProgramTarget> find(const std::string& gpu);

    /// The GPU as it is.
    const profiler::VirtualCard& card() const { return card_; }
    /// It never runs out of memory.
    profiler::VirtualCard endless_card() const;
    /// The bandwidth between the GPUs of a node, in place of the calibration's.
    void set_link(double bus_bytes_per_s);
    /// What it leaves for tensors.
    int64_t capacity_bytes() const { return card_.total_bytes - card_.context_bytes; }

    /// Puts modelled times in place of the host's clock, by which the file was recorded.
    /// Errors: as profiler::model_times; the file cannot be read or written.
    models::Result<void> model_times(const std::string& file) const;
    models::Result<void> model_times(profiler::Trace& trace) const;

private:
    profiler::PlannerData data_;
    std::string gpu_;
    profiler::VirtualCard card_;
};

}  // namespace app
