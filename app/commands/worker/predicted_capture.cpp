#include "app/commands/worker/predicted_capture.h"

#include "app/commands/console/interrupt.h"
#include "app/prediction/predict_trace.h"
#include "app/prediction/trace_workers.h"
#include "app/user/settings.h"
#include "profiler/analysis/diagnostics.h"
#include "profiler/planner/data/gpu_support.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/trace/trace_file.h"

namespace app {
namespace {

using namespace profiler;

/// Writes the trace of a job. Returns why the step does not fit on the GPU; empty: it does.
tl::expected<std::string, Failure> predict(const Job& job, const PredictionTarget& target,
                                           const PlannerData& data, const StepSource& source) {
    const auto trace = predict_trace(job.workload, target, data, source);
    if (!trace) return failed(trace.error());
    if (const auto written = write_trace(*trace, job.path); !written) {
        return failed(written.error());
    }
    const std::string_view why = why_out_of_memory(*trace);
    if (why.empty()) return std::string();
    return fmt::format("{}: {} Ask temposcope plan which batch and recipe fit.",
                       job.workload.recipe_name, why);
}

}  // namespace

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

tl::expected<OutOfMemoryJobs, Failure> capture_predicted(const JobList& list,
                                                         const std::string& environment) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto target = find_target(*data, list.gpu, environment);
    if (!target) return wrong_usage(target.error());
    TraceWorkers workers({target->gpu}, TraceDetail::kForCapture);
    const CancelOnInterrupt cancel(workers);
    const StepSource source = workers.source();
    OutOfMemoryJobs out_of_memory;
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
        auto why = predict(list.jobs[i], *target, *data, source);
        if (!why) return tl::unexpected(std::move(why.error()));
        if (!why->empty()) out_of_memory.push_back({i, std::move(*why), true});
    }
    return out_of_memory;
}

}  // namespace app
