#include "profiler/planner/step/step_time.h"

#include "models/config/switches.h"
#include "profiler/trace/units.h"

#include <algorithm>
#include <cmath>

namespace profiler {
namespace {

/// Of the update's own ops.
double recorded_optimizer_ns(const StepWork& step, const TimeModel& model) {
    PhaseTime update;
    for (const StepOp& op : step.ops) {
        if (op.phase != PhaseKind::kOptimizer) continue;
        const auto count = static_cast<double>(op.count);
        update.kernels_ns += count * model.kernels.time_ns(op.work);
        update.host_ns += count * model.environment->host_backward_ns.value;
    }
    return update.total_ns();
}

/// max(time to move the bytes, time to launch). With ZeRO each GPU updates its share of the
/// parameters.
double optimizer_ns(const StepWork& step, const TimeModel& model) {
    if (model.optimizer.empty()) return recorded_optimizer_ns(step, model);
    const auto row = find_optimizer(*model.calibration, model.optimizer, model.optimizer_state);
    if (!row) return 0;
    double bytes_per_parameter = (*row)->bytes_per_parameter;
    if (model.environment->clips_gradients) {
        bytes_per_parameter += model.calibration->clipping_bytes_per_parameter.value;
    }
    const Parameters& p = step.parameters;
    double bytes = bytes_per_parameter * static_cast<double>(p.num_elements);
    // Gradients are written with zeros, then read and written again when new ones are added.
    if (model.environment->gradients == Gradients::kZeroed) {
        bytes += 3 * static_cast<double>(p.size_bytes);
    }
    const double launches = (*row)->launches_per_tensor * static_cast<double>(p.num_tensors) *
                            model.environment->host_backward_ns.value;
    const double share =
        model.parallel.zero_stage >= 1 ? 1 / static_cast<double>(model.parallel.num_gpus) : 1;
    return share * std::max(bytes / model.kernels.bytes_per_s() * kNsPerS, launches);
}

/// Gradients are reduced in the last micro-batch, while its backward runs. Where each GPU keeps
/// only its share of them or of the parameters (ZeRO 2 and 3), every micro-batch communicates.
double exposed_all_reduce_ns(const StepWork& step, const TimeModel& model, double backward_ns) {
    if (model.parallel.num_gpus == 1) return 0;
    const int64_t times = model.parallel.zero_stage >= 2 ? step.micro_batches : 1;
    const double bytes =
        static_cast<double>(times) * communicated_bytes(model.parallel, step.parameters.size_bytes);
    const double all_reduce_ns = bytes / model.bus_bytes_per_s * kNsPerS;
    backward_ns *= static_cast<double>(times) / static_cast<double>(step.micro_batches);
    const Calibration& c = *model.calibration;
    return std::max(0.0, all_reduce_ns - c.all_reduce_overlap.value * backward_ns) +
           c.all_reduce_exposed_share.value * all_reduce_ns;
}

}  // namespace

models::Result<TimeModel> make_time_model(const Gpu& gpu, const SoftwareEnvironment& environment,
                                          const Calibration& calibration,
                                          const models::Workload& workload,
                                          const DataParallel& parallel, double bus_bytes_per_s) {
    TimeModel model{.environment = &environment,
                    .calibration = &calibration,
                    .kernels = KernelModel(gpu, environment, calibration),
                    .optimizer = optimizer_of(environment, workload),
                    .optimizer_state = optimizer_state_of(workload.precision),
                    .parallel = parallel,
                    .bus_bytes_per_s = bus_bytes_per_s};
    const auto row = find_optimizer(calibration, model.optimizer, model.optimizer_state);
    if (!row) return tl::unexpected(row.error());
    return model;
}

TimeModel time_model_of_program(const Gpu& gpu, const SoftwareEnvironment& environment,
                                const Calibration& calibration) {
    return {.environment = &environment,
            .calibration = &calibration,
            .kernels = KernelModel(gpu, environment, calibration),
            .communication = CommunicationModel(calibration, gpu.id)};
}

int64_t whole_ns(double ns) {
    constexpr double kMost = 0x1p62;
    return static_cast<int64_t>(std::llround(std::min(ns, kMost)));
}

StepTime time_of(const StepWork& step, const TimeModel& model) {
    StepTime time;
    for (const StepOp& op : step.ops) {
        if (op.phase == PhaseKind::kOptimizer) continue;
        const auto count = static_cast<double>(op.count);
        const double kernels_ns = count * model.kernels.time_ns(op.work);
        const bool is_backward = op.phase == PhaseKind::kBackward;
        PhaseTime& phase = is_backward ? time.backward : time.forward;
        phase.kernels_ns += kernels_ns;
        phase.host_ns += count * (is_backward ? model.environment->host_backward_ns
                                              : model.environment->host_forward_ns)
                                     .value;
        time.by_class_ns[static_cast<std::size_t>(op.op_class)] += kernels_ns;
    }
    time.optimizer_ns = optimizer_ns(step, model);
    time.all_reduce_ns = exposed_all_reduce_ns(step, model, time.backward.total_ns());
    return time;
}

std::string optimizer_of(const SoftwareEnvironment& environment, const models::Workload& workload) {
    const models::Optimizer chosen = workload.recipe.optimizer;
    const std::string ours(models::name_of(chosen));
    if (chosen == models::Optimizer::kSgd || chosen == models::Optimizer::kLamb) return ours;
    const OptimizerState state = optimizer_state_of(workload.precision);
    const std::string& special = state == OptimizerState::kMaster ? environment.optimizer_master
                                 : state == OptimizerState::kHalf ? environment.optimizer_half
                                                                  : environment.optimizer;
    const std::string& name = special.empty() ? environment.optimizer : special;
    return name == "recipe" ? ours : name;
}

models::Workload traced_workload(models::Workload workload, const SoftwareEnvironment& environment,
                                 const Calibration& calibration) {
    const auto row = find_optimizer(calibration, optimizer_of(environment, workload),
                                    optimizer_state_of(workload.precision));
    if (row) workload.recipe.optimizer = (*row)->allocates_as;
    return workload;
}

models::Result<const OptimizerRow*> find_optimizer(const Calibration& calibration,
                                                   const std::string& implementation,
                                                   OptimizerState state) {
    const auto& rows = calibration.optimizers;
    const auto row = std::find_if(rows.rbegin(), rows.rend(), [&](const OptimizerRow& r) {
        return r.implementation == implementation && r.state == state;
    });
    if (row != rows.rend()) return &*row;
    return models::fail(
        "The calibration has no row for the optimizer '{}' with {} state: add one to "
        "calibration.json.",
        implementation, kOptimizerStateNames[static_cast<std::size_t>(state)]);
}

}  // namespace profiler
