#include "models/ops/kernel_dispatch.h"

#include <ATen/ops/empty.h>

namespace models::ops {

using kernels::MaskKind;

at::Tensor empty_mask(const at::Tensor& like, MaskKind kind) {
    if (kind == MaskKind::kByte) return at::empty(like.sizes(), like.options().dtype(at::kBool));
    return at::empty({kernels::mask_bytes(kind, like.numel())}, like.options().dtype(at::kByte));
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
