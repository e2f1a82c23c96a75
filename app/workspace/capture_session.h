#pragma once

#include "app/workspace/capture_form.h"
#include "app/workspace/jobs/rate_limit.h"
#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

// Instead of messages.h: every panel includes this header, and no panel needs its JSON library.
namespace profiler {
struct ErrorFrame;
struct Progress;
struct Request;
struct ResultFrame;
struct Sample;
class TurnTaking;
using WorkerOutcome = tl::expected<ResultFrame, ErrorFrame>;
}  // namespace profiler

/// Captures that were started in the window. A background thread runs one worker per recipe, and
/// the workers take turns, step by step; or it predicts one recipe after the other. CaptureStatus
/// holds all that a panel shows.
namespace app {

class Predictor;

/// The live memory curve of one recipe. It has at most kMaxPoints points: in a long capture
/// neighbours are merged into the higher of the two, so that the peak stays.
struct LiveCurve {
    static constexpr size_t kMaxPoints = 2000;

    std::string recipe;
    std::vector<double> time_ns;
    std::vector<double> allocated_bytes;
    int64_t peak_bytes = 0;
    std::string stage;  // "step 2 of 3"
    double share = 0;   // how many of its steps are done, in [0, 1]
    bool finished = false;
    std::string out_of_memory;  // why it did not fit; empty: it did, so far

    void add(double sample_time_ns, double sample_bytes);

private:
    void halve();

    int64_t samples_per_point_ = 1;
    int64_t samples_in_last_ = 0;
};

struct CaptureStatus {
    bool running = false;
    bool cancelling = false;
    size_t recipe_count = 0;
    int64_t memory_limit_bytes = -1;  // -1: none
    std::vector<LiveCurve> curves;    // one per recipe that has begun
    size_t live = 0;                  // index of the curve whose worker runs; the others wait
    std::string phase;                // of the live worker: "backward"
    double share = 0;                 // how much of all recipes is done, in [0, 1]
    std::string error;                // why the last capture failed; empty if it did not
    std::string log;                  // output of all workers, including the running one
};

class CaptureSession {
public:
    explicit CaptureSession(Predictor& predictor) : predictor_(predictor) {}
    ~CaptureSession();

    /// Errors: those of make_jobs; a capture is running already.
    models::Result<void> start(const StepForm& form);
    void cancel();

    bool running() const;
    /// Of the last capture that was started; empty before the first.
    const std::filesystem::path& folder() const { return folder_; }
    /// The current status; the same object until something changes.
    std::shared_ptr<const CaptureStatus> status() const;
    /// Traces that have finished since the last call.
    std::vector<std::filesystem::path> take_finished();
    /// How the last capture ended; returned once.
    struct End {
        profiler::Severity severity = profiler::Severity::kInfo;
        std::string text;
    };
    std::optional<End> take_end();

private:
    void measure(const std::vector<profiler::Request>& requests);
    void predict(const JobList& list);
    models::Result<profiler::WorkerOutcome> predict_job(size_t index, const JobList& list);
    void on_started(size_t index, const std::string& recipe);
    void on_progress(size_t index, const profiler::Progress& progress);
    void on_sample(size_t index, const profiler::Sample& sample);
    void on_ended(size_t index, const profiler::WorkerOutcome& outcome);
    void end_with_results(std::string text);
    void end(profiler::Severity severity, std::string text);

    void show_curve(size_t index, const profiler::Trace& trace);
    bool is_cancelled() const;
    void update_share();

    Predictor& predictor_;
    std::filesystem::path folder_;  // changes only while no capture runs
    mutable std::mutex mutex_;
    CaptureStatus status_;  // without the log of workers_
    mutable std::shared_ptr<const CaptureStatus>
        published_;  // copy of status_; null after a change
    RateLimit redraws_{std::chrono::milliseconds(200)};
    std::vector<std::filesystem::path> finished_;
    std::optional<End> end_;
    profiler::TurnTaking* workers_ = nullptr;  // the running workers; run() owns them
    bool cancelled_ = false;
    std::jthread thread_;  // declared last: it stops before the other members are destroyed
};

}  // namespace app
