#include "app/commands/worker/worker_run.h"

#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/terminal.h"
#include "profiler/protocol/turn_taking.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <numeric>

namespace app {
namespace {

profiler::Request make_request(const Job& job, const MeasureOptions& options) {
    const bool sweeps = options.kind == MeasureKind::kSweep;
    return {.kind = sweeps ? profiler::RequestKind::kSweep : profiler::RequestKind::kCapture,
            .workload = models::to_json(job.workload),
            .device = options.device,
            // The worker may run in another folder.
            .output_path = std::filesystem::absolute(job.path).string(),
            .memory_limit_bytes = options.memory_limit_bytes,
            .warmup_steps = options.warmup_steps,
            .steps = options.steps};
}

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
    void show(std::size_t index, const profiler::Sample& sample) {
        index_ = index;
        memory_ =
            fmt::format(", {} now, {} at most", profiler::format_bytes(sample.allocated_bytes),
                        profiler::format_bytes(sample.peak_bytes));
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

}  // namespace

tl::expected<OutOfMemoryJobs, Failure> measure(const std::vector<Job>& jobs,
                                               const MeasureOptions& options) {
    std::vector<profiler::Request> requests;
    for (const Job& job : jobs) requests.push_back(make_request(job, options));
    profiler::TurnTaking workers(std::move(requests));
    const CancelOnInterrupt cancel(workers);
    MeasureProgress progress(jobs);
    OutOfMemoryJobs out_of_memory;
    const auto done = workers.run(
        {.started = {},
         .progress = [&](std::size_t index, const auto& stage) { progress.show(index, stage); },
         .sample = [&](std::size_t index, const auto& sample) { progress.show(index, sample); },
         .ended =
             [&](std::size_t index, const profiler::WorkerOutcome& outcome) {
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

}  // namespace app
