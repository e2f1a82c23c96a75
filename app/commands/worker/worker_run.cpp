#include "app/commands/worker/worker_run.h"

#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "profiler/protocol/worker_client.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace app {
namespace {

profiler::Request make_request(const Job& job, const JobOptions& options) {
    const bool sweeps = options.kind == JobKind::kSweep;
    return {.kind = sweeps ? profiler::RequestKind::kSweep : profiler::RequestKind::kCapture,
            .workload = models::to_json(job.workload),
            .device = options.device,
            // The worker has its own idea of the current folder.
            .output_path = std::filesystem::absolute(job.path).string(),
            .memory_limit_bytes = options.memory_limit_bytes,
            .warmup_steps = options.warmup_steps,
            .steps = options.steps};
}

/// "tempo (2 of 3): step 1 of 3, 1.20 GiB now, 1.44 GiB at most".
class JobProgress {
public:
    explicit JobProgress(std::string label) : label_(std::move(label)) {}

    void show(const profiler::Progress& progress) {
        progress_ = progress;
        draw();
    }
    void show(const profiler::Sample& sample) {
        memory_ =
            fmt::format(", {} now, {} at most", profiler::format_bytes(sample.allocated_bytes),
                        profiler::format_bytes(sample.peak_bytes));
        if (bar_.is_terminal()) draw();  // lines of a log say which stage, not each sample
    }

private:
    void draw() {
        const bool counted = progress_.total > 0;
        const double fraction =
            counted ? static_cast<double>(progress_.done) / static_cast<double>(progress_.total)
                    : -1;
        const std::string count =
            counted ? fmt::format(" {} of {}", progress_.done, progress_.total) : std::string();
        bar_.update(fraction, fmt::format("{}: {}{}{}", label_, progress_.stage, count,
                                          bar_.is_terminal() ? memory_ : std::string()));
    }

    Progress bar_;
    std::string label_;
    std::string memory_;
    profiler::Progress progress_{.stage = "starting"};
};

Failure make_failure(const profiler::ErrorFrame& error) {
    const bool out_of_memory = error.exit_code == static_cast<int>(ExitCode::kOutOfMemory);
    return {out_of_memory ? ExitCode::kOutOfMemory : ExitCode::kFailed, error.message};
}

}  // namespace

tl::expected<void, Failure> run_in_worker(const Job& job, const JobOptions& options) {
    auto worker = profiler::WorkerClient::start();
    if (!worker) return failed(worker.error());
    const CancelOnInterrupt cancel(*worker);
    JobProgress progress(options.label);
    const auto outcome =
        worker->run(make_request(job, options),
                    {.progress = [&](const profiler::Progress& stage) { progress.show(stage); },
                     .sample = [&](const profiler::Sample& sample) { progress.show(sample); }});
    if (!outcome) return tl::unexpected(make_failure(outcome.error()));
    return {};
}

}  // namespace app
