#include "app/commands/worker/predicted_capture.h"

#include "app/commands/console/interrupt.h"
#include "app/commands/worker/step_traces.h"
#include "app/commands/worker/virtual_cards.h"
#include "app/user/settings.h"
#include "profiler/planner/data/gpu_support.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/placement/place_and_schedule.h"
#include "profiler/planner/step/step_time.h"
#include "profiler/trace/trace_file.h"

namespace app {
namespace {

using namespace profiler;

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

/// The explanation of the diagnostic that the step does not fit on the GPU; empty: it fits.
std::string why_too_large(const Trace& trace) {
    for (std::size_t i = 0; i < trace.diagnostics.size(); ++i) {
        const Diagnostic diagnostic = trace.diagnostics[Id<Diagnostic>(i)];
        if (trace.text(diagnostic.code) == kDoesNotFitCode) {
            return std::string(trace.text(diagnostic.explanation));
        }
    }
    return {};
}

tl::expected<void, Failure> predict(const Job& job, const PredictionTarget& target,
                                    const PlannerData& data, const StepSource& source) {
    const auto trace = predict_trace(job.workload, target, data, source);
    if (!trace) return failed(trace.error());
    // As on the GPU itself, a step that runs out of memory leaves no trace.
    if (const std::string why = why_too_large(*trace); !why.empty()) {
        return fail_with(ExitCode::kOutOfMemory,
                         "{}: {} Ask temposcope plan which batch and recipe fit.",
                         job.workload.recipe_name, why);
    }
    if (const auto written = write_trace(*trace, job.path); !written) {
        return failed(written.error());
    }
    return {};
}

}  // namespace

models::Result<Trace> predict_trace(const models::Workload& workload,
                                    const PredictionTarget& target, const PlannerData& data,
                                    const StepSource& source) {
    const auto step =
        source({.workload = traced_workload(workload, *target.environment, data.calibration),
                .gpu = target.gpu});
    if (!step) return tl::unexpected(step.error());
    return place_and_schedule(**step, *target.gpu, target.allocator, data.calibration,
                              *target.environment);
}

tl::expected<void, Failure> check_predicted(JobList& list, const std::string& environment) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto target = find_target(*data, list.gpu, environment);
    if (!target) return wrong_usage(target.error());
    const auto ok = leave_out(
        list, [&](const Job& job) { return check_gpu_support(job.workload, *target->gpu); });
    if (!ok) return wrong_usage(ok.error());
    return {};
}

tl::expected<void, Failure> capture_predicted(const JobList& list, const std::string& environment) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto target = find_target(*data, list.gpu, environment);
    if (!target) return wrong_usage(target.error());
    TraceWorkers workers({target->gpu}, TraceDetail::kForCapture);
    const CancelOnInterrupt cancel(workers);
    const StepSource source = workers.source();
    for (const Job& job : list.jobs) {
        if (const auto done = predict(job, *target, *data, source); !done) return done;
    }
    return {};
}

}  // namespace app
