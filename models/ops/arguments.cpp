#include "models/ops/arguments.h"

#include "models/ops/torch_version.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/SymBool.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <string>

namespace models::ops {

using kernels::MaskKind;

namespace {

constexpr int64_t kMaxKeyWord = std::numeric_limits<uint32_t>::max();

bool is_same_or_float(at::ScalarType type, at::ScalarType like) {
    return type == like || (type == at::kFloat && c10::elementSize(like) == 2);
}

/// A machine without a GPU needs no CUDA kernels, so they are in a library of their own.
void check_has_kernels(const Tensor& tensor, const char* argument) {
    const bool is_fake = tensor.key_set().has(c10::DispatchKey::Python);
    if (!tensor.is_cuda() || is_fake) return;
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("tempo::gelu_forward", "");
    TORCH_CHECK(op.hasKernelForDispatchKey(c10::DispatchKey::CUDA), "tempo: ", argument, " is on ",
                tensor.device(), "; load libtempo_ops_cuda.so too, which has the kernels for it");
}

/// `tensor` has the shape, dtype and device of `like`, or is float beside 16 bits if it may be.
void check_alike(const Tensor& tensor, const char* argument, const Tensor& like,
                 const char* like_argument, bool may_be_float) {
    TORCH_CHECK(tensor.sym_sizes() == like.sym_sizes(), "tempo: ", argument, " has shape ",
                tensor.sym_sizes(), "; expected the same as ", like_argument, ", ",
                like.sym_sizes());
    const at::ScalarType type = tensor.scalar_type(), expected = like.scalar_type();
    TORCH_CHECK(may_be_float ? is_same_or_float(type, expected) : type == expected,
                "tempo: ", argument, " has dtype ", type, "; expected the same as ", like_argument,
                ", ", expected, may_be_float ? ", or float beside 16 bits" : "");
    check_device(tensor, argument, like);
}

/// [size] of dtype `expected`, or of float beside 16 bits if it may be; on the device of `like`.
void check_vector(const Tensor& tensor, const char* argument, const c10::SymInt& size,
                  at::ScalarType expected, const Tensor& like, bool may_be_float) {
    const at::ScalarType type = tensor.scalar_type();
    TORCH_CHECK(tensor.dim() == 1 && tensor.sym_size(0) == size &&
                    (may_be_float ? is_same_or_float(type, expected) : type == expected),
                "tempo: ", argument, " has shape ", tensor.sym_sizes(), " and dtype ", type,
                "; expected [", size, "] of ", expected,
                may_be_float ? ", or of float beside 16 bits" : "");
    check_device(tensor, argument, like);
}

}  // namespace

void check_floating(const Tensor& tensor, const char* argument) {
    TORCH_CHECK(tensor.defined(), "tempo: ", argument, " is None; expected a tensor");
    check_has_kernels(tensor, argument);
    const at::ScalarType type = tensor.scalar_type();
    TORCH_CHECK(
        type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16,
        "tempo: ", argument, " has dtype ", type, "; expected float, double, half or bfloat16");
}

void check_device(const Tensor& tensor, const char* argument, const Tensor& like) {
    TORCH_CHECK(tensor.device() == like.device(), "tempo: ", argument, " is on ", tensor.device(),
                "; expected it on ", like.device());
}

void check_like(const Tensor& tensor, const char* argument, const Tensor& like,
                const char* like_argument) {
    check_alike(tensor, argument, like, like_argument, /*may_be_float=*/false);
}

void check_like_or_float(const Tensor& tensor, const char* argument, const Tensor& like,
                         const char* like_argument) {
    check_alike(tensor, argument, like, like_argument, /*may_be_float=*/true);
}

void check_rows(const Tensor& x, const char* argument) {
    check_floating(x, argument);
    TORCH_CHECK(x.dim() >= 1 && x.sym_size(-1) > 0, "tempo: ", argument, " has shape ",
                x.sym_sizes(), "; expected a last dimension of at least 1");
}

void check_weight(const Tensor& weight, const char* argument, const c10::SymInt& inputs,
                  const Tensor& x) {
    check_floating(weight, argument);
    TORCH_CHECK(weight.dim() == 2 && weight.sym_size(1) == inputs, "tempo: ", argument,
                " has shape ", weight.sym_sizes(), "; expected [out, ", inputs, "] for x of shape ",
                x.sym_sizes());
    TORCH_CHECK(weight.scalar_type() == x.scalar_type(), "tempo: ", argument, " has dtype ",
                weight.scalar_type(), "; expected the same as x, ", x.scalar_type());
    check_device(weight, argument, x);
}

void check_bias(const Tensor& bias, const char* argument, const Tensor& weight) {
    check_floating(bias, argument);
    check_vector(bias, argument, weight.sym_size(0), weight.scalar_type(), weight,
                 /*may_be_float=*/false);
}

Tensor checked_parameter(const MaybeTensor& parameter, const char* argument, const Tensor& x) {
    if (!parameter || !parameter->defined()) return {};
    check_vector(*parameter, argument, x.sym_size(-1), x.scalar_type(), x, /*may_be_float=*/false);
    return parameter->contiguous();
}

Tensor checked_channels(const MaybeTensor& parameter, const char* argument, const Tensor& x,
                        at::ScalarType output) {
    if (!parameter || !parameter->defined()) return {};
    check_vector(*parameter, argument, x.sym_size(-1), output, x, /*may_be_float=*/true);
    return parameter->contiguous();
}

Tensor empty_mask(const Tensor& like, MaskKind kind) {
    if (kind == MaskKind::kByte) return at::empty_like(like, like.options().dtype(at::kBool));
    if (kind == MaskKind::kElement) return at::empty_like(like);
    const c10::SymInt size = kind == MaskKind::kBit ? (like.sym_numel() + 7) / 8 : c10::SymInt(0);
    return at::empty_symint({size}, like.options().dtype(at::kByte));
}

void check_mask(const Tensor& mask, const char* argument, const Tensor& like, MaskKind kind) {
    const bool whole = kind == MaskKind::kByte || kind == MaskKind::kElement;
    const c10::SymInt size = whole                    ? like.sym_numel()
                             : kind == MaskKind::kBit ? (like.sym_numel() + 7) / 8
                                                      : c10::SymInt(0);
    const at::ScalarType type = kind == MaskKind::kByte      ? at::kBool
                                : kind == MaskKind::kElement ? like.scalar_type()
                                                             : at::kByte;
    TORCH_CHECK(mask.sym_numel() == size && mask.scalar_type() == type && mask.is_contiguous(),
                "tempo: ", argument, " has ", mask.sym_numel(), " elements of ", mask.scalar_type(),
                "; expected ", size, " contiguous ones of ", type, " for masks='", name_of(kind),
                "'");
    check_device(mask, argument, like);
}

MaskKind parse_mask_kind(std::string_view name) {
    if (name == "byte") return MaskKind::kByte;
    if (name == "bit") return MaskKind::kBit;
    if (name == "element") return MaskKind::kElement;
    if (name == "philox") return MaskKind::kNone;
    TORCH_CHECK(false, "tempo: masks is '", name, "'; expected byte, bit, element or philox");
}

std::string_view name_of(MaskKind kind) {
    switch (kind) {
        case MaskKind::kByte:
            return "byte";
        case MaskKind::kBit:
            return "bit";
        case MaskKind::kElement:
            return "element";
        case MaskKind::kNone:
            return "philox";
    }
    TORCH_CHECK(false, "tempo: not a mask kind");
}

DropoutCall dropout_call(double p, std::string_view masks, c10::SymIntArrayRef key) {
    static constexpr const char* kNames[] = {"seed", "rank", "step", "layer", "site"};
    TORCH_CHECK(p >= 0 && p <= 1, "tempo: p is ", p, "; expected a probability");
    TORCH_CHECK(key.size() == std::size(kNames), "tempo: key has ", key.size(),
                " values; expected [seed, rank, step, layer, site]");
    DropoutCall call = {.p = p, .mask_kind = parse_mask_kind(masks), .key = {}};
    std::copy(key.begin(), key.end(), call.key.begin());
    for (size_t i = 1; i < std::size(kNames); ++i) {  // a seed has 64 bits
        TORCH_SYM_CHECK(call.key[i].sym_ge(0).sym_and(call.key[i].sym_le(kMaxKeyWord)),
                        "tempo: key has ", kNames[i], " ", call.key[i], "; expected 0 to ",
                        kMaxKeyWord);
    }
    return call;
}

kernels::DropoutKey kernel_key(const DropoutCall& call) {
    const auto number = [&](size_t i) { return call.key[i].guard_int(__FILE__, __LINE__); };
    return {.seed = static_cast<uint64_t>(number(0)),
            .rank = static_cast<uint32_t>(number(1)),
            .step = static_cast<uint32_t>(number(2)),
            .layer = static_cast<uint32_t>(number(3)),
            .site = static_cast<uint32_t>(number(4))};
}

std::array<c10::SymInt, 5> key_array(const kernels::DropoutKey& key) {
    return {static_cast<int64_t>(key.seed), key.rank, key.step, key.layer, key.site};
}

void check_drawable(const Tensor& x, const char* argument) {
    TORCH_SYM_CHECK(x.sym_numel().sym_le(kernels::kMaxDrawnElements), "tempo: ", argument, " has ",
                    x.sym_numel(), " elements; dropout draws for at most ",
                    kernels::kMaxDrawnElements);
}

void keep_call(torch::autograd::AutogradContext& ctx, const DropoutCall& call) {
    ctx.saved_data["p"] = call.p;
    ctx.saved_data["mask_kind"] = static_cast<int64_t>(call.mask_kind);
    ctx.saved_data["key"] = c10::IValue(c10::SymIntArrayRef(call.key));
}

DropoutCall kept_call(const torch::autograd::AutogradContext& ctx) {
    const auto kind = static_cast<MaskKind>(ctx.saved_data.at("mask_kind").toInt());
    return dropout_call(ctx.saved_data.at("p").toDouble(), name_of(kind),
                        ctx.saved_data.at("key").toSymIntVector());
}

using torch::autograd::edge_list;
using torch::autograd::variable_list;

variable_list once_differentiable(const char* op, const variable_list& upstream,
                                  c10::function_ref<variable_list()> run) {
    // In backward, grad mode tells create_graph=True. A re-entrant backward sets its own grad mode.
    if (!at::GradMode::is_enabled()) return run();
    variable_list gradients;
    {
        const at::NoGradGuard no_graph;
        gradients = run();
    }
    // The error node stands between the gradients and everything that they depend on, where their
    // derivative would be. autograd.grad evaluates only the nodes on a path to its inputs.
    edge_list dependencies = torch::autograd::collect_next_edges(upstream);
    const edge_list& inputs = torch::autograd::get_current_node()->next_edges();
    dependencies.insert(dependencies.end(), inputs.begin(), inputs.end());
    const NodePtr error = error_node(
        std::string(op) +
            " has no second derivative; use torch's own op where gradients are differentiated",
        std::move(dependencies));
    for (at::Tensor& gradient : gradients) {
        if (!gradient.defined()) continue;
        gradient = gradient.detach();
        torch::autograd::create_gradient_edge(gradient, error);
    }
    return gradients;
}

}  // namespace models::ops
