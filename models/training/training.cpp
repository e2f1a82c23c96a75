#include "models/training/training.h"

#include "models/observer/observer.h"
#include "models/ops/autocast_scope.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>

#include <mutex>
#include <optional>
#include <utility>

namespace models {
namespace {

using at::Tensor;

/// Reports a phase to the listener: its start when created, its end when destroyed.
class PhaseScope {
public:
    PhaseScope(StepListener* listener, TrainingPhase phase) : listener_(listener), phase_(phase) {
        if (listener_) listener_->on_phase_begin(phase_);
    }
    ~PhaseScope() {
        if (listener_) listener_->on_phase_end(phase_);
    }
    PhaseScope(const PhaseScope&) = delete;
    PhaseScope& operator=(const PhaseScope&) = delete;

private:
    StepListener* listener_;
    TrainingPhase phase_;
};

/// The dtype of autocast in forward and loss; nullopt if the precision is uniform.
std::optional<at::ScalarType> autocast_dtype(Precision precision) {
    if (!is_autocast(precision)) return std::nullopt;
    return autocast_type(precision);
}

/// Seeds the generator that torch's own ops draw from, for dropout=stock.
void seed_stock_generator(int64_t seed) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(static_cast<uint64_t>(seed));
}

bool needs_loss_scaling(Precision precision) {
    return precision == Precision::kFp16 || precision == Precision::kAmpFp16 ||
           precision == Precision::kPureFp16;
}

}  // namespace

bool LossScaler::unscale(std::vector<Tensor>& gradients) {
    if (!enabled_) return true;
    constexpr int64_t kGrowthInterval = 2000;
    const at::TensorOptions fp32 = gradients.at(0).options().dtype(at::kFloat);
    Tensor found_inf = at::zeros({1}, fp32);
    const Tensor inverse_scale = at::full({1}, 1.0 / scale_, fp32);
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, inverse_scale);
    if (found_inf.item<float>() != 0) {
        scale_ /= 2;
        good_steps_ = 0;
        return false;
    }
    if (++good_steps_ % kGrowthInterval == 0) scale_ *= 2;
    return true;
}

Training::Training(const Workload& workload, at::Device device, Values values)
    : workload_(workload),
      device_(device),
      values_(values),
      model_(workload, device, values),
      optimizer_(make_optimizer(workload, model_.parameters())),
      scaler_(needs_loss_scaling(workload.precision)),
      batch_(make_batch(workload, device, values)) {
    seed_stock_generator(workload.seed);
}

void Training::set_batch_size(int64_t batch_size) {
    workload_.batch_size = batch_size;
    batch_ = Batch{};  // free the old batch first: both at once would raise the peak
    batch_ = make_batch(workload_, device_, values_);
}

double Training::step(StepListener* listener) {
    try {
        const double loss = run_step(listener);
        ++num_steps_;
        return loss;
    } catch (...) {
        release_gradients();
        throw;
    }
}

double Training::run_step(StepListener* listener) {
    Tensor loss = run_micro_batch(0, listener);
    for (int64_t i = 1; i < workload_.gradient_accumulation_steps; ++i) {
        loss = loss.detach();  // and free its graph
        loss = at::add(loss, run_micro_batch(i, listener).detach());
    }
    {
        const PhaseScope phase(listener, TrainingPhase::kOptimizer);
        update_parameters();
    }
    return loss.item<double>();
}

Tensor Training::run_micro_batch(int64_t number, StepListener* listener) {
    Tensor loss = loss_of_micro_batch(number, listener);
    {
        const PhaseScope phase(listener, TrainingPhase::kBackward);
        (scaler_.scale() == 1 ? loss : at::mul(loss, scaler_.scale())).backward();
    }
    if (listener) listener->on_gradients();
    return loss;
}

/// Its share of the step's loss: divided by the number of micro-batches, so that the gradients add
/// up to those of one batch of all their sequences.
Tensor Training::loss_of_micro_batch(int64_t number, StepListener* listener) {
    const int64_t count = workload_.gradient_accumulation_steps;
    const AutocastScope autocast(device_.type(), autocast_dtype(workload_.precision));
    Tensor hidden;
    {
        const PhaseScope phase(listener, TrainingPhase::kForward);
        hidden = model_.forward(batch_, num_steps_ * count + number);
    }
    const PhaseScope phase(listener, TrainingPhase::kLoss);
    Tensor loss = model_.loss(hidden, batch_);
    return count == 1 ? loss : at::div(loss, count);
}

void Training::update_parameters() {
    const at::NoGradGuard no_grad;
    const ModuleScope module_path("optimizer");
    std::vector<Tensor> gradients;
    for (const Parameter& parameter : model_.parameters()) {
        gradients.push_back(parameter.value.grad());
        TORCH_CHECK(gradients.back().defined(), parameter.name, " has no gradient");
    }
    skipped_update_ = !scaler_.unscale(gradients);
    if (!skipped_update_) optimizer_->step(gradients);
    gradients.clear();
    release_gradients();
    model_.refresh();
}

void Training::release_gradients() {
    for (const Parameter& parameter : model_.parameters()) parameter.value.mutable_grad().reset();
    for (const Tensor& input : {batch_.input, batch_.encoder_states}) {
        if (input.defined()) input.mutable_grad().reset();
    }
}

}  // namespace models
