#pragma once

#include "models/training/training.h"
#include "profiler/capture/capture_options.h"
#include "profiler/capture/recorder.h"

#include <chrono>
#include <cstdint>
#include <string_view>

/// Training steps with a recorder and with the callbacks of a capture, on any device.
namespace profiler {

/// Passes progress on. Throws Cancelled when the user has cancelled.
void report(const CaptureCallbacks& callbacks, std::string_view stage, int64_t done, int64_t total);

/// Tells the recorder which storages are parameters, optimizer state and inputs.
void describe_storages(Recorder& recorder, const models::Training& training);

/// Waits until the next step may run (CaptureCallbacks::wait_for_turn). Notes in the trace's run
/// with which other recipes it takes turns. Returns how long it waited.
std::chrono::nanoseconds wait_for_turn(const CaptureCallbacks& callbacks, Trace& trace);

/// Runs steps before the recorded ones, so that optimizer state exists. While fp16's loss scale is
/// too large, the optimizer skips its update: more steps follow until it has run once. `recorder`
/// hears of the phases; it may be null.
void warm_up(models::Training& training, int64_t steps, const CaptureCallbacks& callbacks,
             Recorder* recorder = nullptr);

/// Trains a recorded step and returns its loss. If memory runs out, the recorder ends the step
/// there, stops, and the error goes on.
double train_recorded(models::Training& training, models::StepListener& watch, Recorder& recorder);

/// Notes what was wrong with a recorded step: a loss that is not finite, an optimizer that did not
/// run.
void note_step(Recorder& recorder, const models::Training& training, int64_t step, double loss);

/// Follows a step through its phases: ends it when the user has cancelled, and tells the recorder,
/// where there is one, and `phase_begun`.
class StepWatch final : public models::StepListener {
public:
    explicit StepWatch(const CaptureCallbacks& callbacks, Recorder* recorder = nullptr,
                       const models::Training* training = nullptr)
        : callbacks_(&callbacks), recorder_(recorder), training_(training) {}

    void on_phase_begin(models::TrainingPhase phase) override;
    void on_phase_end(models::TrainingPhase phase) noexcept override;
    /// Names the gradients: they live from here to the end of the optimizer's step.
    void on_gradients() override;

private:
    const CaptureCallbacks* callbacks_;
    Recorder* recorder_;                // null: the step is not recorded
    const models::Training* training_;  // of the recorder
};

}  // namespace profiler
