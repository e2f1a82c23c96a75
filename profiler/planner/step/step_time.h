#pragma once

#include "models/config/workload.h"
#include "profiler/planner/data/software_environment.h"
#include "profiler/planner/step/communication.h"
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

/// How a GPU and a software environment turn work into time. The pointers must outlive it.
struct TimeModel {
    const SoftwareEnvironment* environment = nullptr;
    const Calibration* calibration = nullptr;
    KernelModel kernels;
    std::string optimizer;  // name of its implementation in the calibration; empty: the step's ops
                            // tell what the update does
    OptimizerState optimizer_state = OptimizerState::kFp32;
    DataParallel parallel;
    double bus_bytes_per_s = 0;                       // of the link between GPUs
    std::optional<CommunicationModel> communication;  // of recorded collectives; none: no time
};

/// Errors: the calibration has no row for the optimizer. Requires a GPU with a kernel model.
models::Result<TimeModel> make_time_model(const Gpu& gpu, const SoftwareEnvironment& environment,
                                          const Calibration& calibration,
                                          const models::Workload& workload,
                                          const DataParallel& parallel = {},
                                          double bus_bytes_per_s = 0);

/// The same for a program of the user's.
TimeModel time_model_of_program(const Gpu& gpu, const SoftwareEnvironment& environment,
                                const Calibration& calibration);

/// The time of a phase: of its kernels, and of the host that launches them.
struct PhaseTime {
    double kernels_ns = 0;
    double host_ns = 0;
    double total_ns() const { return kernels_ns > host_ns ? kernels_ns : host_ns; }
    /// In a phase that waits for the host, the factor from kernel time to wall time: >= 1.
    double stretch() const { return kernels_ns > 0 ? total_ns() / kernels_ns : 1; }
};

struct StepTime {
    PhaseTime forward;  // with the loss
    PhaseTime backward;
    double optimizer_ns = 0;
    double all_reduce_ns = 0;                                // not hidden by backward
    std::array<double, kOpClassNames.size()> by_class_ns{};  // kernels of forward and backward

    double total_ns() const {
        return forward.total_ns() + backward.total_ns() + optimizer_ns + all_reduce_ns;
    }
    /// How long the GPU waits for the host.
    double waiting_ns() const {
        return forward.total_ns() - forward.kernels_ns + backward.total_ns() - backward.kernels_ns;
    }
};

/// Rounded, and clamped to int64_t: a user's data file may contain any figure.
int64_t whole_ns(double ns);

StepTime time_of(const StepWork& step, const TimeModel& model);

/// The implementation of the parameter update. For AdamW the software environment names it, or
/// leaves it to the recipe. SGD is always the recipe's.
std::string optimizer_of(const SoftwareEnvironment& environment, const models::Workload& workload);
/// The workload to trace for a software environment: its optimizer is replaced by one of ours that
/// allocates the same temporaries as the optimizer of the environment.
models::Workload traced_workload(models::Workload workload, const SoftwareEnvironment& environment,
                                 const Calibration& calibration);
/// Errors: the calibration has no row for this implementation and state.
models::Result<const OptimizerRow*> find_optimizer(const Calibration& calibration,
                                                   const std::string& implementation,
                                                   OptimizerState state);

}  // namespace profiler
