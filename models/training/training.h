#pragma once

#include "models/config/workload.h"
#include "models/training/batch.h"
#include "models/training/model.h"
#include "models/training/optimizer.h"

#include <memory>
#include <string_view>

namespace models {

enum class TrainingPhase : uint8_t { kForward, kLoss, kBackward, kOptimizer };

/// Listens to the beginning and end of the phases of a training step.
class StepListener {
public:
    virtual ~StepListener() = default;
    virtual void on_phase_begin(TrainingPhase phase) = 0;
    virtual void on_phase_end(TrainingPhase phase) noexcept = 0;
    /// At the end of each backward: the parameters have gradients, and so may the input.
    virtual void on_gradients() {}
};

/// A model, its optimizer and one batch, trained step by step.
class Training {
public:
    explicit Training(const Workload& workload, at::Device device = at::kCPU,
                      Values values = Values::kDrawn);

    /// Runs forward, loss and backward of each micro-batch, then the optimizer, and sets gradients
    /// to none. The first micro-batch makes the gradients, the others add to them. All train on the
    /// same data, with dropout masks of their own. Returns the mean of their losses.
    /// Throws c10::OutOfMemoryError if an allocation fails; the gradients are then released and
    /// another step may follow.
    double step(StepListener* listener = nullptr);

    /// Changes the batch size and keeps the model, as a sweep does.
    void set_batch_size(int64_t batch_size);

    const Workload& workload() const { return workload_; }
    const Model& model() const { return model_; }
    const Batch& batch() const { return batch_; }
    const ParameterOptimizer& optimizer() const { return *optimizer_; }
    /// Number of steps run.
    int64_t num_steps() const { return num_steps_; }
    /// True if the last step was skipped, because a gradient overflowed in 16 bits.
    bool skipped_update() const { return skipped_update_; }

private:
    double run_step(StepListener* listener);
    Tensor run_micro_batch(int64_t number, StepListener* listener);
    Tensor loss_of_micro_batch(int64_t number, StepListener* listener);
    void update_parameters();
    void release_gradients();

    Workload workload_;
    at::Device device_;
    Values values_;
    Model model_;
    std::unique_ptr<ParameterOptimizer> optimizer_;
    LossScaler scaler_;
    Batch batch_;
    int64_t num_steps_ = 0;
    bool skipped_update_ = false;
};

}  // namespace models
