#include "app/commands/jobs.h"

#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/reports/compare_report.h"
#include "app/commands/reports/reports.h"
#include "app/prediction/prediction_target.h"
#include "app/prediction/trace_workers.h"
#include "app/user/settings.h"
#include "app/user/usual_setup.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/planner/data/gpu_support.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/protocol/turn_taking.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/file/write_file.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <vector>

namespace app {
namespace {

using namespace profiler;

/// A job of several that ran out of memory. The others go on.
struct OutOfMemoryJob {
    std::size_t job = 0;     // its place in the list
    std::string sentence;    // why, and what to do
    bool has_trace = false;  // its file shows what filled the memory
};
using OutOfMemoryJobs = std::vector<OutOfMemoryJob>;

// ---- measured --------------------------------------------------------------------------------

double fraction_of(const profiler::Progress& progress) {
    return static_cast<double>(progress.done) / static_cast<double>(progress.total);
}

/// "tempo (2 of 3): step 1 of 3, 1.20 GiB now, 1.44 GiB at most". The bar shows all recipes.
class MeasureProgress {
public:
    explicit MeasureProgress(const std::vector<Job>& jobs)
        : jobs_(jobs), step_fractions_(jobs.size(), 0) {}

    void show(std::size_t index, const profiler::Progress& progress) {
        index_ = index;
        progress_ = progress;
        if (progress.stage == "step" && progress.total > 0) {
            step_fractions_[index] = fraction_of(progress);
        }
        draw();
    }
    void show(std::size_t index, const Sample& sample) {
        index_ = index;
        memory_ = fmt::format(", {} now, {} at most", format_bytes(sample.allocated_bytes),
                              format_bytes(sample.peak_bytes));
        if (bar_.is_terminal()) draw();  // the lines of a log show stages, not each sample
    }

private:
    void draw() {
        const bool counted = progress_.total > 0;
        const std::string position =
            jobs_.size() > 1 ? fmt::format(" ({} of {})", index_ + 1, jobs_.size()) : "";
        const std::string count =
            counted ? fmt::format(" {} of {}", progress_.done, progress_.total) : std::string();
        bar_.update(
            counted ? fraction() : -1,
            fmt::format("{}{}: {}{}{}", jobs_[index_].workload.recipe_name, position,
                        progress_.stage, count, bar_.is_terminal() ? memory_ : std::string()));
    }
    /// Of all recipes; of one recipe alone also its warm-up.
    double fraction() const {
        if (jobs_.size() == 1) return fraction_of(progress_);
        return std::accumulate(step_fractions_.begin(), step_fractions_.end(), 0.0) /
               static_cast<double>(step_fractions_.size());
    }

    const std::vector<Job>& jobs_;
    std::vector<double> step_fractions_;  // of the recorded steps, by job
    Progress bar_;
    std::size_t index_ = 0;  // of the job that runs now
    std::string memory_;
    profiler::Progress progress_{.stage = "starting"};
};

/// Runs each job in a fresh worker, which writes its trace, and shows the progress. On the CPU the
/// workers take turns, step by step. Ctrl-C cancels all of them; a second Ctrl-C ends the program
/// at once, and the workers with it.
tl::expected<OutOfMemoryJobs, Failure> measure(const JobList& list, MeasureKind kind,
                                               const StepForm& options) {
    const bool sweeps = kind == MeasureKind::kSweep;
    std::vector<Request> requests;
    for (const Job& job : list.jobs) {
        requests.push_back({.kind = sweeps ? RequestKind::kSweep : RequestKind::kCapture,
                            .workload = models::to_json(job.workload),
                            .device = list.device,
                            // The worker may run in another folder.
                            .output_path = std::filesystem::absolute(job.path).string(),
                            .memory_limit_bytes = list.memory_limit_bytes,
                            .warmup_steps = options.warmup_steps,
                            .steps = options.steps});
    }
    TurnTaking workers(std::move(requests));
    const CancelOnInterrupt cancel(workers);
    MeasureProgress progress(list.jobs);
    OutOfMemoryJobs out_of_memory;
    const auto done = workers.run(
        {.progress = [&](std::size_t index, const auto& stage) { progress.show(index, stage); },
         .sample = [&](std::size_t index, const auto& sample) { progress.show(index, sample); },
         .ended =
             [&](std::size_t index, const WorkerOutcome& outcome) {
                 if (outcome || !outcome.error().out_of_memory()) return;
                 const models::Error error = to_error(outcome.error());
                 out_of_memory.push_back({.job = index,
                                          .sentence = with_options(error.message, error.fields),
                                          .has_trace = !outcome.error().path.empty()});
             },
         .split = &print_error});
    if (!done) return failed(to_error(done.error()));
    return out_of_memory;
}

// ---- predicted -------------------------------------------------------------------------------

/// Writes the trace of a job. Returns why the step does not fit on the GPU; empty: it does.
tl::expected<std::string, Failure> predict(const Job& job, const PredictionTarget& target,
                                           const PlannerData& data, const StepSource& source) {
    const auto trace = predict_trace(job.workload, target, data, source);
    if (!trace) return failed(trace.error());
    if (const auto written = write_trace(*trace, job.path); !written) {
        return failed(written.error());
    }
    const std::string why = why_out_of_memory(*trace);
    if (why.empty()) return std::string();
    return fmt::format("{}: {} Ask temposcope plan which batch and recipe fit.",
                       job.workload.recipe_name, why);
}

/// Writes the predicted trace of each job on the GPU of the list under `environment`, a software
/// environment. A step that does not fit is written as on a larger GPU. Errors: an unknown GPU or
/// environment, errors of the worker.
tl::expected<OutOfMemoryJobs, Failure> capture_predicted(const JobList& list,
                                                         const std::string& environment) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto target = find_target(*data, list.gpu, environment);
    if (!target) return wrong_usage(target.error());
    TraceWorkers workers({target->gpu}, TraceDetail::kForCapture, torch_for(*target->environment));
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

// ---- shown -----------------------------------------------------------------------------------

void say_what_is_left_out(const JobList& list) {
    for (const LeftOut& one : list.left_out) {
        print_error(fmt::format("{} is left out: {}", one.recipe,
                                with_options(one.why.message, one.why.fields)));
    }
}

void warn_about_losses(const std::vector<NamedTrace>& traces) {
    for (const NamedTrace& named : traces) {
        const auto losses = named.trace->steps.column<&Step::loss>();
        for (std::size_t i = 0; i < losses.size(); ++i) {
            if (std::isfinite(losses[i])) continue;
            print_error(fmt::format(
                "The loss in {} is not a finite number from step {} on. Memory is right, "
                "but the training diverges; try another precision or seed.",
                named.file, i + 1));
            break;
        }
    }
}

void warn_about_busy_machine(const std::vector<NamedTrace>& traces) {
    for (const NamedTrace& named : traces) {
        const Trace& trace = *named.trace;
        for (std::size_t i = 0; i < trace.diagnostics.size(); ++i) {
            const auto note = trace.diagnostics[Id<Diagnostic>(i)];
            if (trace.text(note.code) != kMachineBusy) continue;
            print_error(fmt::format("{}: {}", named.file, trace.text(note.explanation)));
        }
    }
}

bool has_trace(const OutOfMemoryJobs& out_of_memory, std::size_t job) {
    return std::ranges::none_of(out_of_memory,
                                [&](const auto& one) { return one.job == job && !one.has_trace; });
}

/// What shows more than the table of a capture: the peak of one trace, or where several differ.
std::string next_command(const JobList& list, const std::vector<NamedTrace>& traces) {
    if (traces.size() == 1) return fmt::format("info {} --peak", shell_word(traces.front().file));
    return fmt::format("compare {} --by layer", shell_word(list.folder));
}

nlohmann::json results_json(const std::vector<NamedTrace>& traces) {
    nlohmann::json rows = nlohmann::json::array();
    for (const NamedTrace& named : traces) {
        nlohmann::json row = overview_json(named);
        row.erase("rows");
        rows.push_back(std::move(row));
    }
    return {{"rows", std::move(rows)}};
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

Outcome run_jobs(const StepForm& workload, MeasureKind kind, Output& output) {
    auto list = make_jobs(workload);
    if (!list) return wrong_usage(list.error());
    if (kind == MeasureKind::kSweep && !list->gpu.empty()) {
        return fail_with(ExitCode::kUsage,
                         "A sweep measures. To predict what fits on {}, run temposcope plan.",
                         list->gpu);
    }
    if (!list->gpu.empty()) {
        const auto ok = check_predicted(*list, workload.setup);
        if (!ok) return tl::unexpected(ok.error());
    }
    say_what_is_left_out(*list);
    const auto folder = MadeFolder::make(list->folder);
    if (!folder) return failed(folder.error());
    if (kind == MeasureKind::kSweep && list->device == "cpu" && list->memory_limit_bytes < 0) {
        print_error(
            "Without --memory-limit the sweep goes on until this machine's memory is full. That "
            "takes long, and recipes cannot run alternately. --memory-limit 4GiB emulates a GPU of "
            "that size.");
    }

    const auto done = list->gpu.empty() ? measure(*list, kind, workload)
                                        : capture_predicted(*list, workload.setup);
    if (!done) return tl::unexpected(done.error());
    const ExitCode code = done->empty() ? ExitCode::kOk : ExitCode::kOutOfMemory;
    for (const OutOfMemoryJob& job : *done) print_error(job.sentence);
    std::vector<NamedTrace> traces;
    for (std::size_t i = 0; i < list->jobs.size(); ++i) {
        if (!has_trace(*done, i)) continue;
        auto trace = open_trace(list->jobs[i].path);
        if (!trace) return failed(trace.error());
        traces.push_back(std::move(*trace));
    }
    if (traces.empty()) return code;
    warn_about_losses(traces);
    warn_about_busy_machine(traces);
    const auto comparison = compare(traces);
    if (!comparison) return failed(comparison.error());
    const auto print = [&](Output& text) {
        print_comparison(text, *comparison, std::nullopt, {});
        text.line();
        for (const NamedTrace& named : traces) text.line("wrote " + named.file);
        text.line(text.styled(next_line(next_command(*list, traces)), Style::kDim));
    };
    const auto shown = emit(output, {.json = [&] { return results_json(traces); }, .text = print});
    return shown ? code : shown;
}

}  // namespace app
