#include "app/prediction/prediction_target.h"

#include "app/prediction/trace_workers.h"
#include "app/user/settings.h"
#include "app/user/usual_setup.h"
#include "profiler/planner/placement/program_times.h"
#include "profiler/planner/step/step_time.h"
#include "profiler/trace/file/trace_file.h"

namespace app {

using namespace profiler;

namespace {

/// The GPU as it is, for a program that runs on it. Errors: it is not CUDA's.
models::Result<VirtualCard> real_size_card(const PredictionTarget& target) {
    const Gpu& gpu = *target.gpu;
    if (!gpu.compute_capability) {
        return models::fail("{} does not run CUDA: choose a GPU of NVIDIA.", gpu.name);
    }
    VirtualCard card = virtual_card(gpu);
    card.total_bytes = static_cast<int64_t>(gpu.usable_memory_bytes.value);
    card.context_bytes = static_cast<int64_t>(target.environment->context_bytes(gpu.id).value);
    card.nccl_bytes = static_cast<int64_t>(target.environment->nccl_bytes.value);
    return card;
}

}  // namespace

models::Result<PredictionTarget> find_target(const PlannerData& data, const std::string& gpu_id,
                                             const std::string& setup_id) {
    const auto gpu = find_gpu(data.gpus, gpu_id);
    if (!gpu) return tl::unexpected(gpu.error());
    const auto wanted = find_environment(data.environments, setup_id);
    if (!wanted) return tl::unexpected(wanted.error());
    const auto environment = environment_for(data.environments, **wanted, **gpu);
    if (!environment) return tl::unexpected(environment.error());
    return PredictionTarget{.gpu = *gpu, .environment = *environment};
}

models::Result<Trace> predict_trace(const models::Workload& workload,
                                    const PredictionTarget& target, const PlannerData& data,
                                    const StepSource& source) {
    const auto step =
        source({.workload = traced_workload(workload, *target.environment, data.calibration),
                .gpu = target.gpu->id});
    if (!step) return tl::unexpected(step.error());
    return place_and_schedule(**step, *target.gpu, target.allocator, data.calibration,
                              *target.environment);
}

models::Result<ProgramTarget> ProgramTarget::find(const std::string& gpu) {
    auto data = load_planner_data(settings_folder());
    if (!data) return tl::unexpected(data.error());
    const auto target = find_target(*data, gpu, usual_setup());
    if (!target) return tl::unexpected(target.error());
    auto card = real_size_card(*target);
    if (!card) return tl::unexpected(card.error());
    ProgramTarget found;
    found.data_ = std::move(*data);
    found.gpu_ = gpu;
    found.card_ = std::move(*card);
    return found;
}

VirtualCard ProgramTarget::endless_card() const {
    VirtualCard card = card_;
    card.total_bytes = kEndlessBytes;
    return card;
}

void ProgramTarget::set_link(double bus_bytes_per_s) {
    data_.calibration.links.push_back(
        {.name = "given", .gpus = {gpu_}, .bus_bytes_per_s = {bus_bytes_per_s, "the user"}});
}

models::Result<void> ProgramTarget::model_times(Trace& trace) const {
    const auto target = find_target(data_, gpu_, usual_setup());
    if (!target) return tl::unexpected(target.error());
    return profiler::model_times(trace, *target->gpu, data_.calibration, *target->environment);
}

models::Result<void> ProgramTarget::model_times(const std::string& file) const {
    auto trace = read_trace(file);
    if (!trace) return tl::unexpected(trace.error());
    const auto ok = model_times(*trace);
    return ok ? write_trace(*trace, file) : ok;
}

}  // namespace app
