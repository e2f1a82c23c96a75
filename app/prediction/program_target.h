#pragma once

#include "app/prediction/predict_trace.h"
#include "profiler/protocol/virtual_gpu_process.h"

#include <string>

/// A virtual GPU for a program of the user's.
namespace app {

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
