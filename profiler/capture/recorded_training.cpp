#include "profiler/capture/recorded_training.h"

#include "profiler/capture/run_description.h"
#include "profiler/capture/torch_adapter/out_of_memory.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace profiler {

void report(const CaptureCallbacks& callbacks, std::string_view stage, int64_t done,
            int64_t total) {
    callbacks.check_cancelled();
    if (callbacks.progress) callbacks.progress(stage, done, total);
}

void describe_storages(Recorder& recorder, const models::Training& training) {
    for (const models::Parameter& parameter : training.model().parameters()) {
        recorder.describe(parameter.value, parameter.name, Category::kParameter);
    }
    for (const models::OptimizerState& state : training.optimizer().state()) {
        recorder.describe(state.value, state.name, Category::kOptimizerState);
    }
    for (const auto& [name, tensor] : training.batch().named()) {
        recorder.describe(tensor, name, Category::kInput);
    }
}

std::chrono::nanoseconds wait_for_turn(const CaptureCallbacks& callbacks, Trace& trace) {
    if (!callbacks.wait_for_turn) return std::chrono::nanoseconds(0);
    const auto start = std::chrono::steady_clock::now();
    note_turn(callbacks.wait_for_turn(), trace);
    return std::chrono::steady_clock::now() - start;
}

void warm_up(models::Training& training, int64_t steps, const CaptureCallbacks& callbacks,
             Recorder* recorder) {
    constexpr int64_t kMostSearchSteps = 16;  // from 2^16 to 1
    StepWatch watch(callbacks, recorder, &training);
    for (int64_t i = 0; i < steps; ++i) {
        report(callbacks, "warm-up", i, steps);
        training.step(&watch);
    }
    for (int64_t i = 0; steps > 0 && training.skipped_update() && i < kMostSearchSteps; ++i) {
        report(callbacks, "warm-up: searching the loss scale", i, kMostSearchSteps);
        training.step(&watch);
    }
}

double train_recorded(models::Training& training, models::StepListener& watch, Recorder& recorder) {
    recorder.begin_step();
    try {
        return training.step(&watch);
    } catch (const std::exception& error) {
        if (is_out_of_memory(error)) {
            recorder.end_step(0, StepKind::kBroken);
            recorder.stop();
        }
        throw;
    }
}

void note_step(Recorder& recorder, const models::Training& training, int64_t step, double loss) {
    if (!std::isfinite(loss)) {
        recorder.add_note(
            "loss_not_finite", Severity::kWarning,
            fmt::format("The loss of step {} is {}. Memory and time are still right, but the "
                        "training diverges; try a smaller learning rate or fp32.",
                        step, loss));
    }
    if (training.skipped_update()) {
        recorder.add_note(
            "update_skipped", Severity::kWarning,
            fmt::format("The optimizer did not run in step {}, because a gradient overflowed in 16 "
                        "bits: its memory and time are missing; record later steps, after a longer "
                        "warm-up.",
                        step));
    }
}

void StepWatch::on_phase_begin(models::TrainingPhase phase) {
    callbacks_->check_cancelled();
    if (!recorder_) return;
    if (callbacks_->phase_begun) {
        callbacks_->phase_begun(training_->num_steps(), phase_kind(phase));
    }
    recorder_->on_phase_begin(phase);
}

void StepWatch::on_phase_end(models::TrainingPhase phase) noexcept {
    if (recorder_) recorder_->on_phase_end(phase);
}

void StepWatch::on_gradients() {
    if (!recorder_) return;
    for (const models::Parameter& parameter : training_->model().parameters()) {
        recorder_->describe(parameter.value.grad(), parameter.name + ".grad", Category::kGradient);
    }
    const models::Batch& batch = training_->batch();
    for (const auto& [name, input] : {std::pair("input.grad", batch.input),
                                      std::pair("encoder_states.grad", batch.encoder_states)}) {
        if (input.defined()) recorder_->describe(input.grad(), name, Category::kGradient);
    }
}

}  // namespace profiler
