#include "models/training/training.h"

#include "models/observer/observer.h"
#include "models/ops/autocast_scope.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

namespace models {
namespace {

using at::Tensor;

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEps = 1e-8;
constexpr double kWeightDecay = 0.01;

std::vector<Tensor> values_of(const std::vector<Parameter>& parameters) {
    std::vector<Tensor> values;
    for (const Parameter& parameter : parameters) values.push_back(parameter.value.detach());
    return values;
}

class Sgd final : public ParameterOptimizer {
public:
    Sgd(const Workload& workload, const std::vector<Parameter>& parameters)
        : learning_rate_(workload.learning_rate), parameters_(values_of(parameters)) {}

    void step(const std::vector<Tensor>& gradients) override {
        at::_foreach_add_(parameters_, gradients, -learning_rate_);
    }
    std::vector<OptimizerState> state() const override { return {}; }

private:
    double learning_rate_;
    std::vector<Tensor> parameters_;
};

class AdamW final : public ParameterOptimizer {
public:
    AdamW(const Workload& workload, const std::vector<Parameter>& parameters)
        : variant_(workload.recipe.optimizer),
          learning_rate_(workload.learning_rate),
          has_master_(has_master_weights(workload.precision)),
          parameters_(values_of(parameters)) {
        for (const Parameter& parameter : parameters) names_.push_back(parameter.name);
    }

    void step(const std::vector<Tensor>& gradients) override {
        if (exp_avgs_.empty()) make_state();
        ++num_steps_;
        if (!has_master_) {
            update(parameters_, gradients);
            return;
        }
        std::vector<Tensor> fp32_gradients;
        for (const Tensor& gradient : gradients) fp32_gradients.push_back(gradient.to(at::kFloat));
        update(masters_, fp32_gradients);
        at::_foreach_copy_(parameters_, masters_);
    }

    std::vector<OptimizerState> state() const override {
        std::vector<OptimizerState> result;
        for (std::size_t i = 0; i < exp_avgs_.size(); ++i) {
            if (has_master_) result.push_back({names_[i] + ".master", masters_[i]});
            result.push_back({names_[i] + ".exp_avg", exp_avgs_[i]});
            result.push_back({names_[i] + ".exp_avg_sq", exp_avg_sqs_[i]});
            if (!steps_.empty()) result.push_back({names_[i] + ".step", steps_[i]});
        }
        return result;
    }

private:
    /// Creates all state or none, so that a step after an out-of-memory error starts anew.
    void make_state() {
        std::vector<Tensor> masters, exp_avgs, exp_avg_sqs, steps;
        for (const Tensor& parameter : parameters_) {
            if (has_master_) masters.push_back(parameter.to(at::kFloat));
            const Tensor& like = has_master_ ? masters.back() : parameter;
            exp_avgs.push_back(at::zeros_like(like));
            exp_avg_sqs.push_back(at::zeros_like(like));
            if (variant_ == Optimizer::kAdamWFused) {
                steps.push_back(at::zeros({}, like.options().dtype(at::kFloat)));
            }
        }
        masters_ = std::move(masters);
        exp_avgs_ = std::move(exp_avgs);
        exp_avg_sqs_ = std::move(exp_avg_sqs);
        steps_ = std::move(steps);
    }

    void update(const std::vector<Tensor>& weights, const std::vector<Tensor>& gradients) {
        switch (variant_) {
            case Optimizer::kAdamWFused:
                at::_foreach_add_(steps_, 1);
                at::_fused_adamw_(weights, gradients, exp_avgs_, exp_avg_sqs_, {}, steps_,
                                  learning_rate_, kBeta1, kBeta2, kWeightDecay, kEps,
                                  /*amsgrad=*/false, /*maximize=*/false);
                return;
            case Optimizer::kAdamWLoop:
                for (std::size_t i = 0; i < weights.size(); ++i) {
                    update_foreach({weights[i]}, {gradients[i]}, {exp_avgs_[i]}, {exp_avg_sqs_[i]});
                }
                return;
            default:
                update_foreach(weights, gradients, exp_avgs_, exp_avg_sqs_);
        }
    }

    /// torch/optim/adamw.py, _multi_tensor_adamw: the same ops in the same order, which gives the
    /// same temporaries (one fp32 tensor per parameter at a time).
    void update_foreach(const std::vector<Tensor>& weights, const std::vector<Tensor>& gradients,
                        const std::vector<Tensor>& exp_avgs,
                        const std::vector<Tensor>& exp_avg_sqs) const {
        const double correction1 = 1 - std::pow(kBeta1, static_cast<double>(num_steps_));
        const double correction2 = 1 - std::pow(kBeta2, static_cast<double>(num_steps_));
        at::_foreach_mul_(weights, 1 - learning_rate_ * kWeightDecay);
        at::_foreach_lerp_(exp_avgs, gradients, 1 - kBeta1);
        at::_foreach_mul_(exp_avg_sqs, kBeta2);
        at::_foreach_addcmul_(exp_avg_sqs, gradients, gradients, 1 - kBeta2);
        const std::vector<Tensor> denominators = at::_foreach_sqrt(exp_avg_sqs);
        at::_foreach_div_(denominators, std::sqrt(correction2));
        at::_foreach_add_(denominators, kEps);
        at::_foreach_addcdiv_(weights, exp_avgs, denominators, -learning_rate_ / correction1);
    }

    Optimizer variant_;
    double learning_rate_;
    bool has_master_;
    int64_t num_steps_ = 0;
    std::vector<std::string> names_;
    std::vector<Tensor> parameters_;
    std::vector<Tensor> masters_;
    std::vector<Tensor> exp_avgs_;
    std::vector<Tensor> exp_avg_sqs_;
    std::vector<Tensor> steps_;
};

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

std::unique_ptr<ParameterOptimizer> make_optimizer(const Workload& workload,
                                                   const std::vector<Parameter>& parameters) {
    if (workload.recipe.optimizer == Optimizer::kSgd) {
        return std::make_unique<Sgd>(workload, parameters);
    }
    return std::make_unique<AdamW>(workload, parameters);
}

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
