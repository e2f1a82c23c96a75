#pragma once

#include "models/config/workload.h"
#include "profiler/planner/data/software_environment.h"
#include "profiler/planner/step/data_parallel.h"
#include "profiler/planner/step/kernel_model.h"
#include "profiler/planner/step/step_work.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

/// How long a step takes on a GPU.
///
///     step = forward + backward + optimizer + exposed all-reduce
///     forward = max(Σ kernels, ops · host time per op), backward likewise
namespace profiler {

/// How a GPU and a software environment turn work into time; pointers must outlive it.
struct TimeModel {
    const SoftwareEnvironment* environment = nullptr;
    const Calibration* calibration = nullptr;
    KernelModel kernels;
    std::string optimizer;  // its implementation in the calibration
    OptimizerState optimizer_state = OptimizerState::kFp32;
    DataParallel parallel;
    double bus_bytes_per_s = 0;  // of the link between GPUs
};

/// Errors: an optimizer that the calibration has no row for. Requires a GPU with a kernel model.
models::Result<TimeModel> make_time_model(const Gpu& gpu, const SoftwareEnvironment& environment,
                                          const Calibration& calibration,
                                          const models::Workload& workload,
                                          const DataParallel& parallel = {},
                                          double bus_bytes_per_s = 0);

/// One phase group: what the kernels take, and what the host takes to launch them.
struct PhaseTime {
    double kernels_ns = 0;
    double host_ns = 0;
    double total_ns() const { return kernels_ns > host_ns ? kernels_ns : host_ns; }
    /// Kernels of a phase that waits for the host are stretched by this: >= 1.
    double stretch() const { return kernels_ns > 0 ? total_ns() / kernels_ns : 1; }
};

struct StepTime {
    PhaseTime forward;  // with the loss
    PhaseTime backward;
    double optimizer_ns = 0;
    double all_reduce_ns = 0;                                // what backward does not hide
    std::array<double, kOpClassNames.size()> by_class_ns{};  // kernels of forward and backward

    double total_ns() const {
        return forward.total_ns() + backward.total_ns() + optimizer_ns + all_reduce_ns;
    }
    /// What the GPU waits for the host.
    double waiting_ns() const {
        return forward.total_ns() - forward.kernels_ns + backward.total_ns() - backward.kernels_ns;
    }
};

/// Rounded, and held where an int64_t ends: data files of the user's may say anything.
int64_t whole_ns(double ns);

StepTime time_of(const StepWork& step, const TimeModel& model);

/// The implementation of the parameter update: the software environment's of AdamW, or the recipe's where it says
/// so; SGD is the recipe's alone.
std::string optimizer_of(const SoftwareEnvironment& environment, const models::Workload& workload);
/// The workload whose step allocates what one under the software environment does: the recipe's optimizer gives
/// way to the one that has the temporaries of the software environment's.
models::Workload traced_workload(models::Workload workload, const SoftwareEnvironment& environment,
                                 const Calibration& calibration);
/// Errors: an implementation and a state that the calibration has no row for.
models::Result<const OptimizerRow*> find_optimizer(const Calibration& calibration,
                                                   const std::string& implementation,
                                                   OptimizerState state);

/// The link of a GPU, unless given: the last row that names it, else the one for any.
const LinkRow* find_link(const Calibration& calibration, std::string_view gpu);

}  // namespace profiler
