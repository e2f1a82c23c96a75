#include "app/worker/answers.h"
#include "models/config/validity.h"
#include "models/config/workload.h"
#include "profiler/capture/torch_adapter/out_of_memory.h"
#include "profiler/protocol/virtual_gpu_process.h"
#include "profiler/trace/file/trace_bytes.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/trace.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace app {
namespace {

using namespace profiler;

/// Sends the live memory counters 20 times a second, from its own thread.
class LiveSampler {
public:
    /// `read` is called on the sampler's thread.
    LiveSampler(WorkerServer& server, std::function<LiveMemory()> read)
        : server_(server),
          read_(std::move(read)),
          start_(std::chrono::steady_clock::now()),
          thread_([this](const std::stop_token& stop) { run(stop); }) {}

    void set_phase(int64_t step, PhaseKind phase) {
        step_ = step;
        phase_ = phase;
    }

    /// While it lives, no sample is sent, and the samples' clock stands still.
    class Pause {
    public:
        explicit Pause(LiveSampler& sampler) : sampler_(sampler), lock_(sampler.mutex_) {}
        ~Pause() { sampler_.start_ += std::chrono::steady_clock::now() - begin_; }
        Pause(const Pause&) = delete;
        Pause& operator=(const Pause&) = delete;

    private:
        LiveSampler& sampler_;
        std::unique_lock<std::mutex> lock_;
        std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    };

private:
    static constexpr std::chrono::milliseconds kPeriod{50};

    void run(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (!wake_.wait_for(lock, stop, kPeriod, [] { return false; }) &&
               !stop.stop_requested()) {
            const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start_;
            const int64_t step = step_;
            const LiveMemory memory = read_();
            server_.send(
                Sample{.time_ns = elapsed.count(),
                       .allocated_bytes = memory.allocated_bytes,
                       .peak_bytes = memory.peak_bytes,
                       .step = step,
                       .phase = step < 0 ? "" : std::string(profiler::name_of(phase_.load()))});
        }
    }

    WorkerServer& server_;
    const std::function<LiveMemory()> read_;
    std::chrono::steady_clock::time_point start_;
    std::atomic<int64_t> step_{-1};
    std::atomic<PhaseKind> phase_{PhaseKind::kForward};
    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::jthread thread_;  // last: it stops before the members that it uses are destroyed
};

/// The trace could not be written.
struct FileError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void require(const models::Result<void>& result) {
    if (!result) throw FileError(result.error().message);
}

/// One capture or sweep, from its workload to its finished file.
class Recording {
public:
    Recording(const Request& request, WorkerServer& server, TrainingDevice& device)
        : request_(request),
          server_(server),
          device_(device),
          sampler_(server, [&device] { return device.live_memory(); }) {}

    WorkerOutcome run() {
        auto workload = models::workload_from_json(request_.workload);
        if (!workload) return failure(workload.error());
        if (auto ok = device_.validate(*workload); !ok) return failure(ok.error());
        auto writer = TraceWriter::create(request_.output_path);
        if (!writer) return failure(writer.error());
        writer_.emplace(std::move(*writer));
        WorkerOutcome outcome = run_recording(*workload);
        writer_.reset();
        if (!outcome && !committed_) remove_partial(request_.output_path + ".partial");
        return outcome;
    }

private:
    WorkerOutcome run_recording(const models::Workload& workload) try {
        record(workload);
        require(writer_->finish(trace_));
        return ResultFrame{.path = request_.output_path};
    } catch (const Cancelled&) {
        return cancellation(fmt::format("The {} was cancelled{}{}", work_of(request_.kind),
                                        committed_ ? "." : "; nothing was saved.",
                                        saved_sentence()));
    } catch (const FileError& error) {
        return failure(error.what());
    } catch (const std::bad_alloc&) {
        return failure(
            models::Error{
                fmt::format("Out of memory while recording: the trace itself does not fit this "
                            "machine's memory{}; record fewer steps or fewer layers.",
                            saved_aside()),
                {"steps", "num_layers"}},
            ExitCode::kOutOfMemory);
    } catch (const std::exception& error) {
        if (is_out_of_memory(error)) {
            const models::Error sentence{describe_out_of_memory(workload),
                                         {"batch_size", "recipe"}};
            WorkerOutcome outcome = failure(sentence, ExitCode::kOutOfMemory);
            outcome.error().path = keep_out_of_memory(sentence.message);
            return outcome;
        }
        const bool is_torch = dynamic_cast<const c10::Error*>(&error) != nullptr;
        return failure(fmt::format("{}: {}.{}",
                                   is_torch ? "torch refused the step" : "The capture failed",
                                   first_line(error), saved_sentence()));
    }

    void record(const models::Workload& workload) {
        CaptureOptions options{.warmup_steps = request_.warmup_steps,
                               .steps = request_.steps,
                               .memory_limit_bytes = request_.memory_limit_bytes,
                               .num_threads = static_cast<int>(request_.num_threads)};
        const bool sweeps = request_.kind == RequestKind::kSweep;
        try {
            device_.capture(workload, options, callbacks(), trace_);
        } catch (const std::exception& error) {
            const bool is_first = is_out_of_memory(error) && !committed_;
            if (!is_first) throw;
            const bool has_step = !trace_.steps.empty();
            if (has_step && !sweeps) throw;
            trace_ = Trace{};
            // A sweep finds the limit without a recorded step. A capture shows what filled the
            // memory: it records the warm-up, in which the memory ran out. A second try in this
            // process may fit where the first did not; that shows nothing.
            if (!sweeps) {
                record_warm_up(workload, options);
                trace_ = Trace{};
                throw;
            }
        }
        if (!sweeps) return;
        const SweepOptions sweep{.batch_sizes = request_.batch_sizes,
                                 .warmup_steps = request_.warmup_steps,
                                 .steps = request_.steps};
        device_.sweep(workload, options, sweep, callbacks(), trace_);
    }

    void record_warm_up(const models::Workload& workload, CaptureOptions options) {
        options.steps += std::exchange(options.warmup_steps, 0);
        CaptureCallbacks alone = callbacks();
        alone.wait_for_turn = nullptr;
        device_.capture(workload, options, alone, trace_);
    }

    /// A step that ran out of memory is a result: the trace shows what filled the memory.
    /// Returns the file; empty if nothing was recorded.
    std::string keep_out_of_memory(const std::string& sentence) {
        if (trace_.steps.empty() || request_.kind == RequestKind::kSweep) return {};
        add_diagnostic(
            trace_,
            {.code = kRanOutOfMemory, .severity = Severity::kError, .explanation = sentence});
        require(writer_->finish(trace_));
        committed_ = true;
        return request_.output_path;
    }

    CaptureCallbacks callbacks() {
        CaptureCallbacks callbacks = callbacks_to(server_);
        callbacks.phase_begun = [this](int64_t step, PhaseKind phase) {
            sampler_.set_phase(step, phase);
        };
        if (request_.takes_turns && device_.can_take_turns()) {
            callbacks.wait_for_turn = [this] { return wait_for_turn(); };
        }
        callbacks.step_done = [this] {
            require(writer_->commit(trace_));
            committed_ = true;
        };
        return callbacks;
    }

    Turn wait_for_turn() {
        const LiveSampler::Pause pause(sampler_);
        return app::wait_for_turn(server_);
    }

    std::string describe_out_of_memory(const models::Workload& workload) const {
        const auto failed = device_.last_out_of_memory();
        const std::string where =
            request_.memory_limit_bytes >= 0
                ? fmt::format("the limit of {}", format_bytes(request_.memory_limit_bytes))
                : device_.memory_name();
        std::string asked;
        if (failed.requested_bytes >= 0 && failed.free_bytes >= 0) {
            asked =
                fmt::format(": {} were asked for with {} free",
                            format_bytes(failed.requested_bytes), format_bytes(failed.free_bytes));
        }
        return fmt::format(
            "Out of memory: batch {} of {} with the recipe '{}' does not fit {}{}; choose a "
            "smaller batch or another recipe.",
            workload.batch_size, workload.model.name, workload.recipe_name, where, asked);
    }

    /// Says where the steps are that were committed before a failure or a cancel.
    std::string saved_sentence() const {
        if (!committed_) return {};
        return fmt::format(" What was recorded before is in {}.partial.", request_.output_path);
    }
    /// The same inside a sentence that ends with the remedy.
    std::string saved_aside() const {
        if (!committed_) return {};
        return fmt::format(" (what was recorded before is in {}.partial)", request_.output_path);
    }

    const Request& request_;
    WorkerServer& server_;
    TrainingDevice& device_;
    LiveSampler sampler_;
    Trace trace_;
    std::optional<TraceWriter> writer_;
    bool committed_ = false;  // at least one step or sweep point is in the file
};

WorkerOutcome train(const Request& request, WorkerServer& server) {
    const auto device = find_training_device(request.device);
    if (!device) return failure(device.error());
    return Recording(request, server, **device).run();
}

// ---- predictions -------------------------------------------------------------------------------

/// Traces a step on this process's virtual GPU; the result's payload is the trace.
WorkerOutcome predict_step(const models::Workload& workload, const PredictedStepOptions& options,
                           WorkerServer& server) try {
    if (std::getenv(kVirtualGpuVariable) == nullptr) {
        return failure("Steps are predicted on a simulated GPU, and this worker has none.");
    }
    const auto cuda = find_cuda();
    if (!cuda) return failure(cuda.error());
    Trace trace;
    (*cuda)->predict_step(workload, options, callbacks_to(server), trace);
    return ResultFrame{.path = {}, .summary = {}, .payload = to_bytes(trace)};
} catch (const Cancelled&) {
    return cancellation("The prediction was cancelled.");
} catch (const std::bad_alloc&) {
    return failure(
        "There is not enough memory on this machine to predict the step: choose fewer layers, "
        "close other programs, or raise the limit on memory (ulimit -v).",
        ExitCode::kOutOfMemory);
} catch (const c10::OutOfMemoryError&) {
    return failure(
        models::Error{.message = "The step needs more memory than any GPU has: choose a smaller "
                                 "batch, fewer layers or a shorter sequence.",
                      .fields = {"batch_size"}},
        ExitCode::kOutOfMemory);
} catch (const c10::Error& error) {
    return failure("torch refused the step: " + first_line(error) + ".");
} catch (const std::exception& error) {
    return failure("The prediction failed: " + first_line(error) + ".");
}

WorkerOutcome answer_predict_step(const Request& request, WorkerServer& server) {
    const auto workload = models::workload_from_json(request.workload);
    if (!workload) return failure(workload.error());
    const auto capability = models::parse_compute_capability(request.compute_capability);
    if (!capability) return failure(capability.error());
    if (auto ok = models::validate_for_prediction(*workload, *capability); !ok) {
        return failure(ok.error());
    }
    return predict_step(*workload,
                        {.gpu_index = request.gpu_index,
                         .warmup_steps = request.warmup_steps,
                         .records_kernels = request.records_kernels},
                        server);
}

}  // namespace

WorkerOutcome answer_request(const Request& request, WorkerServer& server) {
    switch (request.kind) {
        case RequestKind::kCapture:
        case RequestKind::kSweep:
            return train(request, server);
        case RequestKind::kDoctor:
            return ResultFrame{.path = {}, .summary = describe_machine()};
        case RequestKind::kPredictStep:
            return answer_predict_step(request, server);
        case RequestKind::kCalibrate:
            return run_calibrate(request, server);
        case RequestKind::kTryBatches:
            return run_try_batches(request, server);
        case RequestKind::kMeasureLayouts:
        case RequestKind::kTimeLayoutRuns:
            return run_measure_layouts(request, server);
        case RequestKind::kBenchmark:
            return run_benchmark(request, server);
    }
    return failure("This worker does not know that request.");
}

}  // namespace app
