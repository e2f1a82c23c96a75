#pragma once

#include "models/training/training.h"
#include "profiler/capture/capture_callbacks.h"
#include "profiler/capture/recorder.h"

#include <cstdint>
#include <string_view>

/// A training step as a recorder and whoever watches hear of it, on any device.
namespace profiler {

/// Passes progress on; throws Cancelled when the user has cancelled.
void report(const CaptureCallbacks& callbacks, std::string_view stage, int64_t done, int64_t total);

/// Tells the recorder which storages are parameters, optimizer state and inputs.
void describe_storages(Recorder& recorder, const models::Training& training);

/// Steps before those that are recorded, so that optimizer state exists; their phases go to
/// `listener` (null: to nobody). Where the loss scale of fp16 is still searching for its value, the
/// optimizer has not run: more steps, until it has.
void warm_up(models::Training& training, int64_t steps, models::StepListener* listener,
             const CaptureCallbacks& callbacks);

/// Notes what was wrong with a recorded step: a loss that is not finite, an optimizer that did not
/// run.
void note_step(Recorder& recorder, const models::Training& training, int64_t step, double loss);

/// Passes phases on to `next` (null: to nobody), and ends the step when the user has cancelled.
class CancellableListener final : public models::StepListener {
public:
    CancellableListener(models::StepListener* next, const CaptureCallbacks& callbacks)
        : next_(next), callbacks_(&callbacks) {}

    void on_phase_begin(models::TrainingPhase phase) override;
    void on_phase_end(models::TrainingPhase phase) noexcept override;
    void on_gradients() override;

private:
    models::StepListener* next_;
    const CaptureCallbacks* callbacks_;
};

/// Tells the recorder and whoever watches of a step's parts.
class RecordedStep final : public models::StepListener {
public:
    RecordedStep(Recorder& recorder, const models::Training& training,
                 const CaptureCallbacks& callbacks)
        : recorder_(&recorder), training_(&training), callbacks_(&callbacks) {}

    void on_phase_begin(models::TrainingPhase phase) override;
    void on_phase_end(models::TrainingPhase phase) noexcept override;
    /// Gradients live from here to the end of the optimizer: they are named in between.
    void on_gradients() override;

private:
    Recorder* recorder_;
    const models::Training* training_;
    const CaptureCallbacks* callbacks_;
};

}  // namespace profiler
