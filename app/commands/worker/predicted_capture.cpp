#include "app/commands/worker/predicted_capture.h"

#include "app/commands/worker/meta_traces.h"
#include "app/user/settings.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/data/support.h"
#include "profiler/planner/placement/place_and_schedule.h"
#include "profiler/planner/step/step_time.h"
#include "profiler/trace/trace_file.h"

namespace app {
namespace {

using namespace profiler;

/// A GPU and what is assumed around it.
struct Target {
    const Gpu* gpu = nullptr;
    const SoftwareEnvironment* setup = nullptr;
};

models::Result<Target> find_target(const PlannerData& data, const std::string& gpu_id,
                                   const std::string& setup_id) {
    const auto gpu = find_gpu(data.gpus, gpu_id);
    if (!gpu) return tl::unexpected(gpu.error());
    const auto wanted = find_setup(data.setups, setup_id);
    if (!wanted) return tl::unexpected(wanted.error());
    const auto setup = setup_for(data.setups, **wanted, **gpu);
    if (!setup) return tl::unexpected(setup.error());
    return Target{*gpu, *setup};
}

/// The sentence of the health note that a step was too large for the GPU; empty: it fits.
std::string why_too_large(const Trace& trace) {
    for (std::size_t i = 0; i < trace.diagnostics.size(); ++i) {
        const Diagnostic note = trace.diagnostics[Id<Diagnostic>(i)];
        if (trace.text(note.code) == kDoesNotFitCode)
            return std::string(trace.text(note.explanation));
    }
    return {};
}

tl::expected<void, Failure> predict(const Job& job, const Target& target, const PlannerData& data,
                                    const MetaTraceSource& source) {
    const auto meta = source(traced_workload(job.workload, *target.setup, data.calibration),
                             target.gpu->compute_capability.value_or(kTracedCapability));
    if (!meta) return failed(meta.error());
    const auto trace =
        lower(**meta, *target.gpu, AllocatorSettings(), data.calibration, *target.setup);
    if (!trace) return failed(trace.error());
    // As on the GPU itself: no trace of a step that could not be.
    if (const std::string why = why_too_large(*trace); !why.empty()) {
        return fail_with(ExitCode::kOutOfMemory,
                         "{}: {} temposcope plan says which batch and recipe fit.",
                         job.workload.recipe_name, why);
    }
    if (const auto written = write_trace(*trace, job.path); !written) {
        return failed(written.error());
    }
    return {};
}

}  // namespace

tl::expected<void, Failure> capture_predicted(const std::vector<Job>& jobs, const std::string& gpu,
                                              const std::string& setup) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto target = find_target(*data, gpu, setup);
    if (!target) return wrong_usage(target.error());
    for (const Job& job : jobs) {
        if (const auto reason = why_not_supported(job.workload, *target->gpu)) {
            return fail_with(ExitCode::kFailed, "{}", *reason);
        }
    }
    bool cancelled = false;
    const MetaTraceSource source = meta_trace_source(cancelled);
    for (const Job& job : jobs) {
        if (const auto done = predict(job, *target, *data, source); !done) return done;
    }
    return {};
}

}  // namespace app
