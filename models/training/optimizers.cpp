#include "models/training/training.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_reciprocal.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/div.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
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

/// The moments of gradients (Kingma and Ba 2014), with fp32 master weights if the precision asks
/// for them. `update` is the rule.
class MomentOptimizer : public ParameterOptimizer {
public:
    MomentOptimizer(const Workload& workload, const std::vector<Parameter>& parameters,
                    bool counts_steps_on_device)
        : learning_rate_(workload.learning_rate),
          has_master_(has_master_weights(workload.precision)),
          counts_steps_on_device_(counts_steps_on_device),
          parameters_(values_of(parameters)) {
        for (const Parameter& parameter : parameters) names_.push_back(parameter.name);
    }

    void step(const std::vector<Tensor>& gradients) final {
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

    std::vector<OptimizerState> state() const final {
        std::vector<OptimizerState> result;
        for (std::size_t i = 0; i < exp_avgs_.size(); ++i) {
            if (has_master_) result.push_back({names_[i] + ".master", masters_[i]});
            result.push_back({names_[i] + ".exp_avg", exp_avgs_[i]});
            result.push_back({names_[i] + ".exp_avg_sq", exp_avg_sqs_[i]});
            if (!steps_.empty()) result.push_back({names_[i] + ".step", steps_[i]});
        }
        return result;
    }

protected:
    virtual void update(const std::vector<Tensor>& weights,
                        const std::vector<Tensor>& gradients) = 0;

    /// 1 - beta^t, by which a moment that began as zero is too small.
    double correction(double beta) const {
        return 1 - std::pow(beta, static_cast<double>(num_steps_));
    }

    double learning_rate_;
    std::vector<Tensor> exp_avgs_;
    std::vector<Tensor> exp_avg_sqs_;
    std::vector<Tensor> steps_;  // one number for each parameter; empty: counted on the host

private:
    /// Creates all state or none, so that a step after an out-of-memory error starts anew.
    void make_state() {
        std::vector<Tensor> masters, exp_avgs, exp_avg_sqs, steps;
        for (const Tensor& parameter : parameters_) {
            if (has_master_) masters.push_back(parameter.to(at::kFloat));
            const Tensor& like = has_master_ ? masters.back() : parameter;
            exp_avgs.push_back(at::zeros_like(like));
            exp_avg_sqs.push_back(at::zeros_like(like));
            if (counts_steps_on_device_) {
                steps.push_back(at::zeros({}, like.options().dtype(at::kFloat)));
            }
        }
        masters_ = std::move(masters);
        exp_avgs_ = std::move(exp_avgs);
        exp_avg_sqs_ = std::move(exp_avg_sqs);
        steps_ = std::move(steps);
    }

    bool has_master_;
    bool counts_steps_on_device_;
    int64_t num_steps_ = 0;
    std::vector<std::string> names_;
    std::vector<Tensor> parameters_;
    std::vector<Tensor> masters_;
};

class AdamW final : public MomentOptimizer {
public:
    AdamW(const Workload& workload, const std::vector<Parameter>& parameters)
        : MomentOptimizer(workload, parameters, is_fused(workload)),
          variant_(workload.recipe.optimizer) {}

private:
    static bool is_fused(const Workload& workload) {
        return workload.recipe.optimizer == Optimizer::kAdamWFused;
    }

    void update(const std::vector<Tensor>& weights, const std::vector<Tensor>& gradients) override {
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
        at::_foreach_mul_(weights, 1 - learning_rate_ * kWeightDecay);
        at::_foreach_lerp_(exp_avgs, gradients, 1 - kBeta1);
        at::_foreach_mul_(exp_avg_sqs, kBeta2);
        at::_foreach_addcmul_(exp_avg_sqs, gradients, gradients, 1 - kBeta2);
        const std::vector<Tensor> denominators = at::_foreach_sqrt(exp_avg_sqs);
        at::_foreach_div_(denominators, std::sqrt(correction(kBeta2)));
        at::_foreach_add_(denominators, kEps);
        at::_foreach_addcdiv_(weights, exp_avgs, denominators,
                              -learning_rate_ / correction(kBeta1));
    }

    Optimizer variant_;
};

/// LAMB (You et al., arXiv 1904.00962, algorithm 2), with phi(z) = z: AdamW's direction d, as long
/// as its tensor's weights,
///
///     d = m̂ / (sqrt(v̂) + eps) + decay · w        w -= rate · |w| / |d| · d
///
/// where |w| and |d| are 1 if one of them is 0. One tensor of temporaries for each parameter: d.
class Lamb final : public MomentOptimizer {
public:
    Lamb(const Workload& workload, const std::vector<Parameter>& parameters)
        : MomentOptimizer(workload, parameters, false) {}

private:
    static constexpr double kLambEps = 1e-6;

    void update(const std::vector<Tensor>& weights, const std::vector<Tensor>& gradients) override {
        at::_foreach_lerp_(exp_avgs_, gradients, 1 - kBeta1);
        at::_foreach_mul_(exp_avg_sqs_, kBeta2);
        at::_foreach_addcmul_(exp_avg_sqs_, gradients, gradients, 1 - kBeta2);
        // 1 / (c1 (sqrt(v̂) + eps)), since m̂ = m / c1.
        const double of_mean = correction(kBeta1);
        const std::vector<Tensor> directions = at::_foreach_sqrt(exp_avg_sqs_);
        at::_foreach_mul_(directions, of_mean / std::sqrt(correction(kBeta2)));
        at::_foreach_add_(directions, of_mean * kLambEps);
        at::_foreach_reciprocal_(directions);
        at::_foreach_mul_(directions, exp_avgs_);
        at::_foreach_add_(directions, weights, kWeightDecay);
        const Tensor of_weights = at::stack(at::_foreach_norm(weights));
        const Tensor of_directions = at::stack(at::_foreach_norm(directions));
        const Tensor ratios =
            at::where(of_weights.gt(0).logical_and(of_directions.gt(0)),
                      at::div(of_weights, of_directions), at::ones_like(of_weights));
        at::_foreach_mul_(directions, ratios.unbind());
        at::_foreach_add_(weights, directions, -learning_rate_);
    }
};

}  // namespace

std::unique_ptr<ParameterOptimizer> make_optimizer(const Workload& workload,
                                                   const std::vector<Parameter>& parameters) {
    switch (workload.recipe.optimizer) {
        case Optimizer::kSgd:
            return std::make_unique<Sgd>(workload, parameters);
        case Optimizer::kLamb:
            return std::make_unique<Lamb>(workload, parameters);
        default:
            return std::make_unique<AdamW>(workload, parameters);
    }
}

}  // namespace models
