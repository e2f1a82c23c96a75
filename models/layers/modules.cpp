#include "models/layers/modules.h"

#include "models/observer/observer.h"

#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/tanh.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>

namespace models {

Linear::Linear(ParameterStore& store, const std::string& prefix, std::string_view module_path,
               int64_t in_features, int64_t out_features, const Form& form)
    : module_path_(module_path),
      weight_(store.add_normal(prefix + module_path_ + ".weight", {out_features, in_features},
                               form.num_parts)),
      bias_(form.has_bias ? store.add_constant(prefix + module_path_ + ".bias", {out_features}, 0)
                          : Tensor()) {}

Tensor Linear::operator()(const Tensor& x) const {
    const ModuleScope module_path(module_path_);
    if (!bias_.defined()) return at::linear(x, weight_);
    return at::linear(x, weight_, bias_);
}

Tensor Linear::without_bias(const Tensor& x) const {
    const ModuleScope module_path(module_path_);
    return at::linear(x, weight_);
}

NormModule::NormModule(ParameterStore& store, const std::string& prefix,
                       std::string_view module_path, const Workload& workload)
    : module_path_(module_path),
      name_(prefix + module_path_),
      norm_(workload.model.traits().norm),
      variant_(workload.recipe.layer_norm),
      eps_(workload.model.layer_norm_eps),
      gamma_(store.add_constant(name_ + ".weight", {workload.model.hidden_size}, 1)),
      beta_(norm_ == Norm::kLayerNorm
                ? store.add_constant(name_ + ".bias", {workload.model.hidden_size}, 0)
                : Tensor()) {}

Tensor NormModule::operator()(const Tensor& x) const {
    const ModuleScope module_path(module_path_);
    return norm_ == Norm::kRmsNorm ? rms_norm(x) : layer_norm(x);
}

Tensor NormModule::layer_norm(const Tensor& x) const {
    if (variant_ == LayerNorm::kFromOutput) {
        return ops::inplace_layer_norm(x, gamma_, beta_, eps_, save_);
    }
    auto [y, mean, rstd] = at::native_layer_norm(x, {x.size(-1)}, gamma_, beta_, eps_);
    name_tensor(mean, "mean");
    name_tensor(rstd, "rstd");
    return y;
}

/// Root mean square normalization (T5LayerNorm): y = gamma · x / sqrt(mean(x²) + eps), in fp32 for
/// 16-bit inputs. Backward needs x, in fp32 and as it is, 1/rms and the normalized value.
Tensor NormModule::rms_norm(const Tensor& x) const {
    const Tensor wide = x.to(wide_type(x.scalar_type()));
    if (wide.scalar_type() != x.scalar_type()) name_tensor(wide, "norm_input");
    const Tensor variance = at::mean(at::pow(wide, 2), at::IntArrayRef{-1}, /*keepdim=*/true);
    const Tensor rstd = at::rsqrt(at::add(variance, eps_));  // [B, S, 1]
    name_tensor(rstd, "rstd");
    const Tensor normalized = at::mul(x, rstd).to(gamma_.scalar_type());  // [B, S, H]
    name_tensor(normalized, "normalized");
    return at::mul(gamma_, normalized);
}

ops::ResidualLayerNorm NormModule::of_residual(const Tensor& x, const Tensor& residual,
                                               const ops::DropoutSpec& dropout,
                                               bool with_sum) const {
    const ModuleScope module_path(module_path_);
    return ops::residual_layer_norm(
        x, residual, gamma_, beta_,
        {.eps = eps_, .save = save_, .dropout = dropout, .with_sum = with_sum});
}

void refresh_norms(const std::vector<NormModule*>& norms) {
    struct Copies {
        NormModule* norm;
        Tensor gamma, beta;
    };
    std::vector<Copies> all;
    for (NormModule* const norm : norms) {
        if (norm->variant_ == LayerNorm::kOriginal) continue;
        const auto copy = [](const Tensor& parameter) {
            return parameter.detach().to(at::kCPU, parameter.scalar_type(), /*non_blocking=*/true);
        };
        all.push_back({norm, copy(norm->gamma_), copy(norm->beta_)});
    }
    if (all.empty()) return;
    const at::Device device = all[0].norm->gamma_.device();
    if (!device.is_cpu()) {
        c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
    }
    for (const Copies& one : all) one.norm->choose_save(one.gamma, one.beta);
}

void NormModule::choose_save(const Tensor& gamma, const Tensor& beta) {
    const Tensor g = gamma.to(at::kFloat), b = beta.to(at::kFloat);
    const bool normalized =
        kernels::needs_normalized(g.const_data_ptr<float>(), b.const_data_ptr<float>(), g.numel());
    const auto save =
        normalized ? kernels::LayerNormSave::kNormalized : kernels::LayerNormSave::kOutput;
    if (save != save_ && normalized) {
        note("layer_norm_keeps_normalized",
             name_ +
                 " keeps its normalized value beside its output, because some |gamma| is too "
                 "small to divide by.");
    }
    save_ = save;
}

DropoutModule::DropoutModule(std::string_view module_path, const Workload& workload, double p,
                             int64_t layer, DropoutSite site)
    : module_path_(module_path),
      p_(p),
      variant_(workload.recipe.dropout),
      mask_kind_(mask_kind(workload.recipe.masks)),
      seed_(workload.seed),
      layer_(layer),
      site_(site) {}

Tensor DropoutModule::operator()(const Tensor& x, const ForwardContext& context) const {
    if (p_ == 0) return x;
    const ModuleScope module_path(module_path_);
    if (variant_ == Dropout::kTempo) return ops::dropout(x, spec(context));
    auto [y, keep_mask] = at::native_dropout(x, p_, true);
    name_tensor(keep_mask, "keep_mask");
    return y;
}

ops::DropoutSpec DropoutModule::spec(const ForwardContext& context) const {
    return {.p = p_,
            .mask_kind = mask_kind_,
            .key = {.seed = static_cast<uint64_t>(seed_),
                    .step = static_cast<uint32_t>(context.step),
                    .layer = static_cast<uint32_t>(layer_),
                    .site = static_cast<uint32_t>(site_)}};
}

/// GELU as Hugging Face writes it in Python: each step is a kernel and a pass over the tensor, and
/// saves its inputs for backward. Assigning to `factor` frees the previous step, as in Python.
///   gelu_new     0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))     GPT-2
///   gelu_python  0.5 x (1 + erf(x / √2))                        BERT, before torch had one
Tensor python_gelu(const Tensor& x, bool tanh) {
    const Tensor half = at::mul(x, 0.5);
    name_tensor(half, "gelu_half");
    Tensor factor;
    if (tanh) {
        factor = at::pow(x, 3.0);
        factor = at::mul(factor, 0.044715);
        factor = at::add(x, factor);
        factor = at::mul(factor, M_SQRT2 * M_2_SQRTPI / 2);
        factor = at::tanh(factor);
        name_tensor(factor, "tanh");
    } else {
        factor = at::div(x, M_SQRT2);
        name_tensor(factor, "erf_input");
        factor = at::erf(factor);
    }
    factor = at::add(factor, 1.0);
    name_tensor(factor, "gelu_factor");
    return at::mul(half, factor);
}

Tensor activation(const Tensor& x, const Workload& workload) {
    const Activation activation = workload.model.traits().activation;
    if (activation == Activation::kRelu) return at::relu(x);
    const bool tanh = activation == Activation::kTanhGelu;
    if (workload.recipe.gelu == Gelu::kInPlace) {
        return ops::inplace_gelu(x, tanh, mask_kind(workload.recipe.masks));
    }
    if (workload.recipe.gelu == Gelu::kPython) return python_gelu(x, tanh);
    return at::gelu(x, tanh ? "tanh" : "none");
}

Tensor add_residual(Tensor branch, const Tensor& x, std::string_view module_path) {
    std::optional<ModuleScope> scope;
    if (!module_path.empty()) scope.emplace(module_path);
    if (branch.scalar_type() == x.scalar_type()) return branch.add_(x);
    return at::add(branch, x);
}

kernels::MaskKind mask_kind(Masks masks) {
    switch (masks) {
        case Masks::kByte:
            return kernels::MaskKind::kByte;
        case Masks::kBit:
            return kernels::MaskKind::kBit;
        case Masks::kPhilox:
            return kernels::MaskKind::kNone;
    }
    TORCH_CHECK(false, "not a mask kind");
}

at::ScalarType wide_type(at::ScalarType type) {
    return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

}  // namespace models
