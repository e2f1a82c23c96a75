#pragma once

#include "models/config/workload.h"
#include "models/training/batch.h"
#include "models/training/model.h"
#include "models/training/optimizer.h"

#include <memory>
#include <string_view>

namespace models {

enum class TrainingPhase : uint8_t { kForward, kLoss, kBackward, kOptimizer };

/// Hears of the parts of a training step as they begin and end.
class StepListener {
public:
    virtual ~StepListener() = default;
    virtual void on_phase_begin(TrainingPhase phase) = 0;
    virtual void on_phase_end(TrainingPhase phase) noexcept = 0;
    /// Between backward and the optimizer: the parameters have their gradients.
    virtual void on_gradients() {}
};

/// A model, its optimizer and one batch, trained step by step.
class Training {
public:
    explicit Training(const Workload& workload, at::Device device = at::kCPU);

    /// Forward, loss, backward, optimizer; gradients are set to none at the end. Returns the loss;
    /// 0 on Meta, which has shapes but no values.
    /// Throws c10::OutOfMemoryError when an allocation fails: gradients are released, and a next
    /// step may follow.
    double step(StepListener* listener = nullptr);

    /// Another batch size for the same model: what a sweep does.
    void set_batch_size(int64_t batch_size);

    const Workload& workload() const { return workload_; }
    const Model& model() const { return model_; }
    const Batch& batch() const { return batch_; }
    const ParameterOptimizer& optimizer() const { return *optimizer_; }
    /// How many steps were run.
    int64_t num_steps() const { return num_steps_; }
    /// Whether the last step left the parameters alone, because a gradient overflowed in 16 bits.
    bool skipped_update() const { return skipped_update_; }

private:
    double run_step(StepListener* listener);
    void update_parameters();
    void release_gradients();

    Workload workload_;
    at::Device device_;
    Model model_;
    std::unique_ptr<ParameterOptimizer> optimizer_;
    LossScaler scaler_;
    Batch batch_;
    int64_t num_steps_ = 0;
    bool skipped_update_ = false;
};

}  // namespace models
