#include "models/training/optimizer.h"

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
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
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

}  // namespace models
