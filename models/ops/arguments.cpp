#include "models/ops/arguments.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

namespace models::ops {

using kernels::MaskKind;

void check_floating(const Tensor& tensor, const char* argument) {
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
    TORCH_CHECK(tensor.sym_sizes() == like.sym_sizes(), "tempo: ", argument, " has shape ",
                tensor.sym_sizes(), "; expected that of ", like_argument, ", ", like.sym_sizes());
    TORCH_CHECK(tensor.scalar_type() == like.scalar_type(), "tempo: ", argument, " has dtype ",
                tensor.scalar_type(), "; expected that of ", like_argument, ", ",
                like.scalar_type());
    check_device(tensor, argument, like);
}

void check_rows(const Tensor& x, const char* argument) {
    check_floating(x, argument);
    TORCH_CHECK(x.dim() >= 1 && x.sym_size(-1) > 0, "tempo: ", argument, " has shape ",
                x.sym_sizes(), "; expected a last dimension of at least 1");
}

Tensor checked_parameter(const MaybeTensor& parameter, const char* argument, const Tensor& x) {
    if (!parameter || !parameter->defined()) return {};
    TORCH_CHECK(parameter->dim() == 1 && parameter->sym_size(0) == x.sym_size(-1) &&
                    parameter->scalar_type() == x.scalar_type(),
                "tempo: ", argument, " has shape ", parameter->sym_sizes(), " and dtype ",
                parameter->scalar_type(), "; expected [", x.sym_size(-1), "] of ", x.scalar_type());
    check_device(*parameter, argument, x);
    return parameter->contiguous();
}

Tensor empty_mask(const Tensor& like, MaskKind kind) {
    if (kind == MaskKind::kByte) return at::empty_like(like, like.options().dtype(at::kBool));
    const c10::SymInt size = kind == MaskKind::kBit ? (like.sym_numel() + 7) / 8 : c10::SymInt(0);
    return at::empty_symint({size}, like.options().dtype(at::kByte));
}

void check_mask(const Tensor& mask, const char* argument, const Tensor& like, MaskKind kind) {
    const bool bytes = kind == MaskKind::kByte;
    const c10::SymInt size = bytes                    ? like.sym_numel()
                             : kind == MaskKind::kBit ? (like.sym_numel() + 7) / 8
                                                      : c10::SymInt(0);
    const at::ScalarType type = bytes ? at::kBool : at::kByte;
    TORCH_CHECK(mask.sym_numel() == size && mask.scalar_type() == type && mask.is_contiguous(),
                "tempo: ", argument, " has ", mask.sym_numel(), " elements of ", mask.scalar_type(),
                "; expected ", size, " contiguous ones of ", type, " for masks='", name_of(kind),
                "'");
    check_device(mask, argument, like);
}

MaskKind parse_mask_kind(std::string_view name) {
    if (name == "byte") return MaskKind::kByte;
    if (name == "bit") return MaskKind::kBit;
    if (name == "philox") return MaskKind::kNone;
    TORCH_CHECK(false, "tempo: masks is '", name, "'; expected byte, bit or philox");
}

std::string_view name_of(MaskKind kind) {
    switch (kind) {
        case MaskKind::kByte:
            return "byte";
        case MaskKind::kBit:
            return "bit";
        case MaskKind::kNone:
            return "philox";
    }
    TORCH_CHECK(false, "tempo: not a mask kind");
}

DropoutSpec dropout_spec(double p, std::string_view masks, at::IntArrayRef key) {
    TORCH_CHECK(p >= 0 && p <= 1, "tempo: p is ", p, "; expected a probability");
    TORCH_CHECK(key.size() == 5, "tempo: key has ", key.size(),
                " values; expected [seed, rank, step, layer, site]");
    return {.p = p,
            .mask_kind = parse_mask_kind(masks),
            .key = {.seed = static_cast<uint64_t>(key[0]),
                    .rank = static_cast<uint32_t>(key[1]),
                    .step = static_cast<uint32_t>(key[2]),
                    .layer = static_cast<uint32_t>(key[3]),
                    .site = static_cast<uint32_t>(key[4])}};
}

std::array<int64_t, 5> key_array(const kernels::DropoutKey& key) {
    return {static_cast<int64_t>(key.seed), key.rank, key.step, key.layer, key.site};
}

void keep_spec(torch::autograd::AutogradContext& ctx, const DropoutSpec& spec) {
    const auto key = key_array(spec.key);
    ctx.saved_data["p"] = spec.p;
    ctx.saved_data["mask_kind"] = static_cast<int64_t>(spec.mask_kind);
    ctx.saved_data["key"] = std::vector<int64_t>(key.begin(), key.end());
}

DropoutSpec kept_spec(const torch::autograd::AutogradContext& ctx) {
    const auto kind = static_cast<MaskKind>(ctx.saved_data.at("mask_kind").toInt());
    return dropout_spec(ctx.saved_data.at("p").toDouble(), name_of(kind),
                        ctx.saved_data.at("key").toIntVector());
}

}  // namespace models::ops
