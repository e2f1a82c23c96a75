#pragma once

#include "models/config/workload.h"
#include "models/layers/parameters.h"
#include "models/training/batch.h"
#include "models/training/model.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace models {

/// Optimizer state: a tensor that lives between steps, "….exp_avg", "….master".
struct OptimizerState {
    std::string name;
    at::Tensor value;
};

/// Updates the parameters from their gradients.
class ParameterOptimizer {
public:
    virtual ~ParameterOptimizer() = default;
    /// `gradients` are in the order of `parameters`, already multiplied by 1 / loss_scale.
    virtual void step(const std::vector<at::Tensor>& gradients) = 0;
    virtual std::vector<OptimizerState> state() const = 0;
};

/// AdamW (Loshchilov and Hutter 2017), LAMB (You et al. 2019) or SGD, as the recipe says, with fp32
/// master weights if the precision asks for them. The first step creates the state, as in torch.
std::unique_ptr<ParameterOptimizer> make_optimizer(const Workload& workload,
                                                   const std::vector<Parameter>& parameters);

/// Dynamic loss scaling for fp16 (Micikevicius et al. 2017): the scale doubles after 2000 good
/// steps, and halves after an overflow, which skips the step.
class LossScaler {
public:
    explicit LossScaler(bool enabled) : enabled_(enabled) {}
    double scale() const { return enabled_ ? scale_ : 1.0; }
    /// Divides the gradients by the scale. False if a gradient is not finite: the step is skipped.
    bool unscale(std::vector<at::Tensor>& gradients);

private:
    bool enabled_;
    double scale_ = 65536;
    int64_t good_steps_ = 0;
};

/// Inference: forward without gradients, of a program's validation or of its frozen models.
enum class TrainingPhase : uint8_t { kForward, kLoss, kBackward, kOptimizer, kInference };

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
