#pragma once

#include "app/workspace/capture_form.h"
#include "app/workspace/rate_limit.h"
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

// Not messages.h: every panel sees this header, and none of them needs a JSON library.
namespace profiler {
struct Progress;
struct Request;
struct Sample;
class WorkerClient;
}  // namespace profiler

/// Captures started from the window: one worker after the other, a recipe each, on a thread of
/// their own. Everything a panel shows of them is in CaptureStatus.
namespace app {

/// The live curve of one recipe. However long the capture, it has at most kMaxPoints: beyond that
/// neighbours become one, the higher of the two, so that a peak never goes.
struct LiveCurve {
    static constexpr size_t kMaxPoints = 2000;

    std::string recipe;
    std::vector<double> time_ns;
    std::vector<double> allocated_bytes;
    int64_t peak_bytes = 0;
    bool finished = false;

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
    std::vector<LiveCurve> curves;  // one per recipe begun; the last one is live
    std::string stage;              // "step 2 of 3"
    std::string phase;              // "backward"
    double share = 0;               // of everything, in [0, 1]
    std::string error;              // of the last capture; empty when it went well
    std::string log;                // what the workers wrote, the one at work too
};

class CaptureSession {
public:
    ~CaptureSession();

    /// Errors: as make_requests; a capture already runs.
    models::Result<void> start(const CaptureForm& form);
    void cancel();

    bool running() const;
    /// As it is now; the same object until something changes.
    std::shared_ptr<const CaptureStatus> status() const;
    /// Traces that were finished since the last call.
    std::vector<std::filesystem::path> take_finished();
    /// The sentence with which the last capture ended, once.
    struct End {
        profiler::Severity severity = profiler::Severity::kInfo;
        std::string text;
    };
    std::optional<End> take_end();

private:
    void run(const std::vector<profiler::Request>& requests);
    /// False when it failed or was cancelled.
    bool run_one(const profiler::Request& request, size_t index);
    void on_progress(const profiler::Progress& progress, size_t index);
    void on_sample(const profiler::Sample& sample);
    void end(profiler::Severity severity, std::string text);

    mutable std::mutex mutex_;
    CaptureStatus status_;                                    // but for the log of worker_
    mutable std::shared_ptr<const CaptureStatus> published_;  // null: status_ has changed since
    RateLimit redraws_{std::chrono::milliseconds(200)};
    std::vector<std::filesystem::path> finished_;
    std::optional<End> end_;
    profiler::WorkerClient* worker_ = nullptr;  // the one at work; borrowed from run_one
    bool cancelled_ = false;
    std::jthread thread_;  // last: it stops before the rest goes
};

}  // namespace app
