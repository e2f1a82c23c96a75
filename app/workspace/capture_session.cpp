#include "app/workspace/capture_session.h"

#include "app/prediction/predictor.h"
#include "app/user/workload_jobs.h"
#include "app/workspace/jobs/job_queue.h"
#include "app/workspace/jobs/wake.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/memory_curve.h"
#include "profiler/protocol/messages.h"
#include "profiler/protocol/turn_taking.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/file/write_file.h"
#include "profiler/trace/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <utility>

namespace app {
namespace {

namespace fs = std::filesystem;

models::Result<void> make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (!error) return {};
    return models::fail("The folder {} cannot be created ({}); choose another folder.",
                        folder.string(), error.message());
}

}  // namespace

void LiveCurve::add(double sample_time_ns, double sample_bytes) {
    if (samples_in_last_ == 0 || samples_in_last_ == samples_per_point_) {
        if (time_ns.size() == kMaxPoints) halve();
        time_ns.push_back(sample_time_ns);
        allocated_bytes.push_back(sample_bytes);
        samples_in_last_ = 1;
        return;
    }
    ++samples_in_last_;
    if (sample_bytes < allocated_bytes.back()) return;
    time_ns.back() = sample_time_ns;
    allocated_bytes.back() = sample_bytes;
}

void LiveCurve::halve() {
    const size_t half = time_ns.size() / 2;
    for (size_t i = 0; i < half; ++i) {
        const size_t higher =
            allocated_bytes[2 * i] > allocated_bytes[2 * i + 1] ? 2 * i : 2 * i + 1;
        time_ns[i] = time_ns[higher];
        allocated_bytes[i] = allocated_bytes[higher];
    }
    time_ns.resize(half);
    allocated_bytes.resize(half);
    samples_per_point_ *= 2;
}

CaptureSession::~CaptureSession() { cancel(); }

models::Result<void> CaptureSession::start(const StepForm& form) {
    if (running())
        return models::fail(
            "A capture is running; wait for it or cancel it before you start another one.");
    std::error_code error;
    const fs::path folder = fs::absolute(new_capture_folder(form, std::time(nullptr)), error);
    if (error) return profiler::cannot_write(form.output, error.value());
    auto list = make_jobs(form, folder, predictor_);
    if (!list) return tl::unexpected(list.error());
    if (const auto made = make_folder(folder); !made) return made;
    folder_ = folder;
    if (thread_.joinable()) thread_.join();
    status_ = {.running = true,
               .recipe_count = list->jobs.size(),
               .memory_limit_bytes = list->memory_limit_bytes};
    published_.reset();
    cancelled_ = false;
    thread_ = std::jthread([this, form, list = std::move(*list)] {
        const auto ran = run_guarded("The capture", [&]() -> models::Result<void> {
            list.gpu.empty() ? measure(make_requests(form, list)) : predict(list);
            return {};
        });
        if (!ran) end(profiler::Severity::kError, ran.error().message);
    });
    return {};
}

void CaptureSession::cancel() {
    std::scoped_lock lock(mutex_);
    if (!status_.running) return;
    cancelled_ = true;
    status_.cancelling = true;
    published_.reset();
    if (workers_) workers_->cancel();
}

bool CaptureSession::running() const {
    std::scoped_lock lock(mutex_);
    return status_.running;
}

std::shared_ptr<const CaptureStatus> CaptureSession::status() const {
    std::scoped_lock lock(mutex_);
    if (!published_) {
        auto status = std::make_shared<CaptureStatus>(status_);
        if (workers_) status->log = workers_->log();
        published_ = std::move(status);
    }
    return published_;
}

std::vector<fs::path> CaptureSession::take_finished() {
    std::scoped_lock lock(mutex_);
    return std::exchange(finished_, {});
}

std::optional<CaptureSession::End> CaptureSession::take_end() {
    std::scoped_lock lock(mutex_);
    return std::exchange(end_, std::nullopt);
}

namespace {
/// Calls a function at the end of a scope, also after an exception.
template <typename Function>
class AtExit {
public:
    explicit AtExit(Function function) : function_(std::move(function)) {}
    ~AtExit() { function_(); }
    AtExit(const AtExit&) = delete;
    AtExit& operator=(const AtExit&) = delete;

private:
    Function function_;
};
}  // namespace

void CaptureSession::measure(const std::vector<profiler::Request>& requests) {
    std::string text = requests.size() == 1 ? std::string("Captured one trace.")
                                            : fmt::format("Captured {} traces.", requests.size());
    profiler::TurnTaking workers(requests);
    {
        std::scoped_lock lock(mutex_);
        workers_ = &workers;
        if (cancelled_) workers.cancel();
    }
    const auto done = [&] {
        const AtExit forget_workers([&] {
            std::scoped_lock lock(mutex_);
            workers_ = nullptr;
            status_.log = workers.log();
            published_.reset();
        });
        return workers.run(
            {.started =
                 [&](size_t i) { on_started(i, requests[i].workload.value("recipe_name", "")); },
             .progress = [this](size_t i, const auto& progress) { on_progress(i, progress); },
             .sample = [this](size_t i, const auto& sample) { on_sample(i, sample); },
             .ended = [this](size_t i, const auto& outcome) { on_ended(i, outcome); },
             .split = [&](const std::string& sentence) { text += " " + sentence; }});
    }();
    if (done) {
        end_with_results(std::move(text));
    } else {
        end(done.error().cancelled ? profiler::Severity::kWarning : profiler::Severity::kError,
            done.error().message);
    }
}

/// One recipe after the other: the workers behind the predictor run side by side anyway.
void CaptureSession::predict(const JobList& list) {
    for (size_t i = 0; i < list.jobs.size(); ++i) {
        if (is_cancelled()) return end(profiler::Severity::kWarning, "The capture was cancelled.");
        on_started(i, list.jobs[i].workload.recipe_name);
        on_progress(i, {.stage = "predicting the step"});
        const auto outcome = predict_job(i, list);
        if (!outcome) {
            return end(is_cancelled() ? profiler::Severity::kWarning : profiler::Severity::kError,
                       outcome.error().message);
        }
        on_ended(i, *outcome);
    }
    end_with_results(list.jobs.size() == 1 ? std::string("Predicted one trace.")
                                           : fmt::format("Predicted {} traces.", list.jobs.size()));
}

models::Result<profiler::WorkerOutcome> CaptureSession::predict_job(size_t index,
                                                                    const JobList& list) {
    const Job& job = list.jobs[index];
    const auto trace = predictor_.predict({job.workload, list.gpu});
    if (!trace) return tl::unexpected(trace.error());
    if (is_cancelled()) return models::fail("The capture was cancelled.");
    if (const auto written = profiler::write_trace(*trace, job.path); !written) {
        return tl::unexpected(written.error());
    }
    show_curve(index, *trace);
    const std::string why = profiler::why_out_of_memory(*trace);
    if (why.empty()) return profiler::WorkerOutcome(profiler::ResultFrame{.path = job.path});
    return profiler::WorkerOutcome(
        tl::unexpect, profiler::ErrorFrame{
                          .message = why,
                          .exit_code = static_cast<int>(profiler::ExitCode::kOutOfMemory),
                          .path = job.path,
                      });
}

void CaptureSession::show_curve(size_t index, const profiler::Trace& trace) {
    const profiler::MemoryCurve memory(trace);
    const auto bins = memory.sample(memory.start_ns(), memory.end_ns(), LiveCurve::kMaxPoints);
    std::scoped_lock lock(mutex_);
    LiveCurve& curve = status_.curves[index];
    for (const profiler::CurveBin& bin : bins) {
        curve.add(static_cast<double>(bin.time_ns - memory.start_ns()),
                  static_cast<double>(bin.allocated_bytes));
        curve.peak_bytes = std::max(curve.peak_bytes, bin.allocated_bytes);
    }
    published_.reset();
}

bool CaptureSession::is_cancelled() const {
    std::scoped_lock lock(mutex_);
    return cancelled_;
}

/// Under the lock.
void CaptureSession::update_share() {
    status_.share = 0;
    for (const LiveCurve& each : status_.curves) {
        status_.share += each.share / static_cast<double>(status_.recipe_count);
    }
}

void CaptureSession::on_started(size_t index, const std::string& recipe) {
    {
        std::scoped_lock lock(mutex_);
        status_.curves.resize(std::max(status_.curves.size(), index + 1));
        status_.curves[index] = {};  // a worker that ran out of memory starts again
        status_.curves[index].recipe = recipe;
        status_.curves[index].stage = "starting the worker";
        status_.live = index;
        published_.reset();
    }
    wake_window();
}

void CaptureSession::on_progress(size_t index, const profiler::Progress& progress) {
    bool redraw = false;
    {
        std::scoped_lock lock(mutex_);
        LiveCurve& curve = status_.curves[index];
        std::string stage = progress.total > 0 ? fmt::format("{} {} of {}", progress.stage,
                                                             progress.done, progress.total)
                                               : progress.stage;
        redraw = stage != curve.stage || redraws_.passes(RateLimit::Clock::now());
        curve.stage = std::move(stage);
        if (progress.stage == "step" && progress.total > 0) {
            curve.share = static_cast<double>(progress.done) / static_cast<double>(progress.total);
        }
        if (status_.live != index) status_.phase.clear();
        status_.live = index;
        update_share();
        published_.reset();
    }
    if (redraw) wake_window();
}

void CaptureSession::on_sample(size_t index, const profiler::Sample& sample) {
    bool redraw = false;
    {
        std::scoped_lock lock(mutex_);
        LiveCurve& curve = status_.curves[index];
        curve.add(static_cast<double>(sample.time_ns), static_cast<double>(sample.allocated_bytes));
        curve.peak_bytes = std::max(curve.peak_bytes, sample.peak_bytes);
        status_.live = index;
        status_.phase = sample.phase;
        published_.reset();
        redraw = redraws_.passes(RateLimit::Clock::now());
    }
    if (redraw) wake_window();
}

/// A recipe that ran out of memory is a result too: its trace shows what filled the memory.
void CaptureSession::on_ended(size_t index, const profiler::WorkerOutcome& outcome) {
    {
        std::scoped_lock lock(mutex_);
        LiveCurve& curve = status_.curves[index];
        curve.finished = outcome || outcome.error().out_of_memory();
        if (curve.finished) curve.share = 1;
        update_share();
        if (!outcome && outcome.error().out_of_memory()) {
            curve.out_of_memory = outcome.error().message;
        }
        const std::string path = outcome ? outcome->path : outcome.error().path;
        if (!path.empty()) finished_.emplace_back(path);
        published_.reset();
    }
    wake_window();
}

void CaptureSession::end_with_results(std::string text) {
    std::vector<std::string> too_large;
    {
        std::scoped_lock lock(mutex_);
        for (const LiveCurve& curve : status_.curves) {
            if (!curve.out_of_memory.empty()) too_large.push_back(curve.recipe);
        }
    }
    if (too_large.empty()) return end(profiler::Severity::kInfo, std::move(text));
    const bool others_fit = too_large.size() < status_.recipe_count;
    end(profiler::Severity::kWarning,
        fmt::format("{} ran out of memory{}.", profiler::join_with_and(too_large),
                    others_fit ? "; the other recipes fit" : ""));
}

void CaptureSession::end(profiler::Severity severity, std::string text) {
    std::error_code keeps_traces;
    fs::remove(folder_, keeps_traces);  // only if nothing was written into it
    {
        std::scoped_lock lock(mutex_);
        status_.running = status_.cancelling = false;
        status_.phase.clear();
        const bool all_finished = std::all_of(status_.curves.begin(), status_.curves.end(),
                                              [](const auto& curve) { return curve.finished; });
        if (all_finished && status_.curves.size() == status_.recipe_count) status_.share = 1;
        status_.error = severity == profiler::Severity::kInfo ? "" : text;
        end_ = End{severity, std::move(text)};
        published_.reset();
    }
    wake_window();
}

}  // namespace app
