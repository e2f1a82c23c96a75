// Fused passes with sums of columns on CUDA. Bytes per element: column_passes.h; partial sums add
// 8 C bytes for each of up to 216 partials. Bound: those bytes over the bandwidth, and Philox as in
// dropout.cu. The walk over rows is column_passes.cuh.

#include "kernels/column_passes.cuh"
#include "kernels/column_passes.h"
#include "kernels/gelu_math.h"
#include "kernels/inplace_layernorm.h"

#include <type_traits>

namespace kernels {
namespace {

using namespace cuda;

// ---- activations -----------------------------------------------------------------------------

template <Activation kActivation>
using FitOf =
    std::conditional_t<kActivation == Activation::kGelu, gelu_fit::ErfFit, gelu_fit::TanhFit>;

template <Activation kActivation, typename S>
__device__ __forceinline__ S activated(S x) {
    if constexpr (kActivation == Activation::kNone) {
        return x;
    } else if constexpr (kActivation == Activation::kRelu) {
        return x < S{0} ? S{0} : x;  // NaN stays
    } else {
        return gelu_value<FitOf<kActivation>>(x);
    }
}

template <Activation kActivation, typename S>
__device__ __forceinline__ S through_activation(S g, S x) {
    if constexpr (kActivation == Activation::kNone) {
        return g;
    } else if constexpr (kActivation == Activation::kRelu) {
        return x <= S{0} ? S{0} : g;  // NaN lets g through, as in torch
    } else {
        return g * gelu_derivative<FitOf<kActivation>>(x);
    }
}

// ---- bias, activation, dropout, residual -------------------------------------------------------

template <typename T, Activation kActivation>
struct BiasDropoutForward {
    using S = StatOf<T>;
    BiasDropoutForwardArgs<T> a;
    Drawing<S> drawing;
    int64_t count;  // elements of the tensor

    template <class Sums>
    __device__ void tile(int64_t, const Tile& at, const Tile& columns, Sums&) const {
        S v[8], other[8];
        load_tile(a.x, at, S{0}, v);
        if (a.bias) {
            load_tile(a.bias, columns, S{0}, other);
#pragma unroll
            for (int j = 0; j < 8; ++j) v[j] += other[j];
        }
        if (a.biased) store_tile(a.biased, at, v);
#pragma unroll
        for (int j = 0; j < 8; ++j) v[j] = activated<kActivation>(v[j]);
        if (a.dropout_p > 0) {
            const uint32_t bits = draw_bits<T>(drawing, at);
            if (a.mask_kind != MaskKind::kNone) store_bits<T>(a.mask_kind, a.mask, at, bits);
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                v[j] = bits >> j & 1 ? rounded<T>(v[j]) * drawing.scale : S{0};
            }
        }
        if (a.residual) {
            load_tile(a.residual, at, S{0}, other);
#pragma unroll
            for (int j = 0; j < 8; ++j) v[j] = rounded<T>(v[j]) + other[j];
        }
        store_tile(a.y, at, v);
    }

    template <class Sums>
    __device__ void element(int64_t, int64_t i, int64_t column, Sums&) const {
        S v = to_compute(a.x[i]);
        if (a.bias) v += to_compute(a.bias[column]);
        if (a.biased) a.biased[i] = from_compute<T>(v);
        v = activated<kActivation>(v);
        if (a.dropout_p > 0) {
            const bool keep = kept_element<T>(MaskKind::kNone, nullptr, drawing, i);
            v = keep ? rounded<T>(v) * drawing.scale : S{0};
            store_mask(i, keep);
        }
        if (a.residual) v = rounded<T>(v) + to_compute(a.residual[i]);
        a.y[i] = from_compute<T>(v);
    }

    /// The first element of a byte of bits writes it.
    __device__ void store_mask(int64_t i, bool keep) const {
        if (a.mask_kind == MaskKind::kByte) a.mask[i] = keep;
        if (a.mask_kind == MaskKind::kElement) {
            reinterpret_cast<T*>(a.mask)[i] = from_compute<T>(StatOf<T>(keep));
        }
        if (a.mask_kind != MaskKind::kBit || i % 8 != 0) return;
        const auto words = philox4x32_10(drawing.key, static_cast<uint32_t>(i / 8));
        const uint32_t inside = count - i < 8 ? (1u << (count - i)) - 1 : 0xFF;
        a.mask[i / 8] = static_cast<uint8_t>(keep_bits_8(words, drawing.threshold) & inside);
    }
};

template <typename T, Activation kActivation>
struct BiasDropoutBackward {
    using S = StatOf<T>;
    BiasDropoutBackwardArgs<T> a;
    Drawing<S> drawing;

    __device__ void tile(int64_t, const Tile& at, const Tile& columns, S (&sums)[1][8]) const {
        S g[8];
        load_tile(a.dy, at, S{0}, g);
        if (a.dropout_p > 0) {
            const uint32_t bits = kept_bits<T>(a.mask_kind, a.mask, drawing, at);
#pragma unroll
            for (int j = 0; j < 8; ++j) g[j] = bits >> j & 1 ? g[j] * drawing.scale : S{0};
        }
        if constexpr (kActivation != Activation::kNone) {
            S x[8];
            load_tile(a.x, at, S{0}, x);
            if (a.bias) {
                S bias[8];
                load_tile(a.bias, columns, S{0}, bias);
#pragma unroll
                for (int j = 0; j < 8; ++j) x[j] += bias[j];
            }
#pragma unroll
            for (int j = 0; j < 8; ++j) g[j] = through_activation<kActivation>(g[j], x[j]);
        }
        if (a.dx) store_tile(a.dx, at, g);
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[0][j] += g[j];
    }

    __device__ void element(int64_t, int64_t i, int64_t column, S (&sums)[1]) const {
        S g = to_compute(a.dy[i]);
        if (a.dropout_p > 0) {
            g = kept_element<T>(a.mask_kind, a.mask, drawing, i) ? g * drawing.scale : S{0};
        }
        if constexpr (kActivation != Activation::kNone) {
            S x = to_compute(a.x[i]);
            if (a.bias) x += to_compute(a.bias[column]);
            g = through_activation<kActivation>(g, x);
        }
        if (a.dx) a.dx[i] = from_compute<T>(g);
        sums[0] += g;
    }

    __device__ S* sums_of(int, int64_t partial) const {
        return a.partials ? a.partials + partial * 2 * a.num_columns : nullptr;
    }
};

// ---- heads -----------------------------------------------------------------------------------

/// Where a column of a row lies in the heads.
struct HeadPlace {
    int part;
    int64_t element;  // of [B, A, S, D]
};

__device__ __forceinline__ HeadPlace place_in_heads(const HeadsShape& s, int64_t row,
                                                    int64_t column) {
    const int64_t head = column / s.head_dim;  // of all parts
    const int64_t head_row =
        (row / s.seq_len * s.num_heads + head % s.num_heads) * s.seq_len + row % s.seq_len;
    return {static_cast<int>(head / s.num_heads), head_row * s.head_dim + column % s.head_dim};
}

/// An array would be indexed in local memory.
template <typename P>
__device__ __forceinline__ P part_of(P const (&parts)[kHeadParts], int part) {
    return part == 0 ? parts[0] : part == 1 ? parts[1] : parts[2];
}

template <typename T>
struct BiasHeadsForward {
    using S = StatOf<T>;
    BiasHeadsForwardArgs<T> a;

    template <class Sums>
    __device__ void tile(int64_t row, const Tile& at, const Tile& columns, Sums&) const {
        constexpr int V = kPackSize<T>;
        S v[8], bias[8] = {};
        load_tile(a.x, at, S{0}, v);
        if (a.bias) load_tile(a.bias, columns, S{0}, bias);
#pragma unroll
        for (int k = 0; k < kPacks<T>; ++k) {
            if (!columns.holds<T>(k)) continue;
            const HeadPlace to = place_in_heads(a.shape, row, columns.pack_begin<T>(k));
#pragma unroll
            for (int j = 0; j < V; ++j) v[k * V + j] += bias[k * V + j];
            store_words(part_of(a.heads, to.part) + to.element, pack_of<T>(v + k * V));
        }
    }

    template <class Sums>
    __device__ void element(int64_t row, int64_t i, int64_t column, Sums&) const {
        const S bias = a.bias ? to_compute(a.bias[column]) : S{0};
        const HeadPlace to = place_in_heads(a.shape, row, column);
        part_of(a.heads, to.part)[to.element] = from_compute<T>(to_compute(a.x[i]) + bias);
    }
};

template <typename T>
struct BiasHeadsBackward {
    using S = StatOf<T>;
    BiasHeadsBackwardArgs<T> a;

    __device__ void tile(int64_t row, const Tile& at, const Tile& columns, S (&sums)[1][8]) const {
        constexpr int V = kPackSize<T>;
        S g[8];
#pragma unroll
        for (int k = 0; k < kPacks<T>; ++k) {
            const HeadPlace from = place_in_heads(a.shape, row, columns.pack_begin<T>(k));
            const Tile pack = {from.element, columns.holds<T>(k) ? V : 0, 0};
            load_pack(part_of(a.dheads, from.part), pack, 0, S{0}, g + k * V);
        }
        store_tile(a.dx, at, g);
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[0][j] += g[j];
    }

    __device__ void element(int64_t row, int64_t i, int64_t column, S (&sums)[1]) const {
        const HeadPlace from = place_in_heads(a.shape, row, column);
        const T g = part_of(a.dheads, from.part)[from.element];
        a.dx[i] = g;
        sums[0] += to_compute(g);
    }

    __device__ S* sums_of(int, int64_t partial) const {
        return a.partials ? a.partials + partial * 2 * a.shape.num_columns() : nullptr;
    }
};

// ---- scale and shift of LayerNorm --------------------------------------------------------------

template <typename T>
struct ScaleShiftBackward {
    using S = StatOf<T>;
    ScaleShiftBackwardArgs<T> a;

    __device__ void tile(int64_t, const Tile& at, const Tile& columns, S (&sums)[3][8]) const {
        S g[8], other[8];
        load_tile(a.dy, at, S{0}, g);
        if (a.dresidual) {
            load_tile(a.dresidual, at, S{0}, other);
#pragma unroll
            for (int j = 0; j < 8; ++j) g[j] += other[j];
        }
        load_tile(a.normalized, at, S{0}, other);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            sums[0][j] += g[j] * other[j];
            sums[1][j] += g[j];
        }
        load_tile(a.gamma, columns, S{0}, other);
#pragma unroll
        for (int j = 0; j < 8; ++j) g[j] *= other[j];
        store_tile(a.dnormalized, at, g);
        if (a.dlinear == nullptr) return;
        load_tile(a.dlinear, at, S{0}, other);
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[2][j] += other[j];
    }

    __device__ void element(int64_t, int64_t i, int64_t column, S (&sums)[3]) const {
        S g = to_compute(a.dy[i]);
        if (a.dresidual) g += to_compute(a.dresidual[i]);
        sums[0] += g * to_compute(a.normalized[i]);
        sums[1] += g;
        a.dnormalized[i] = from_compute<T>(g * to_compute(a.gamma[column]));
        if (a.dlinear) sums[2] += to_compute(a.dlinear[i]);
    }

    __device__ S* sums_of(int sum, int64_t partial) const {
        S* const partials = sum < 2 ? a.partials : a.bias_partials;
        if (partials == nullptr) return nullptr;
        return partials + (partial * 2 + sum % 2) * a.num_columns;
    }
};

/// Packs must not cross heads.
template <typename T>
bool has_whole_packs(const HeadsShape& shape) {
    return shape.head_dim % kPackSize<T> == 0;
}

}  // namespace

template <typename T>
void launch(const BiasDropoutForwardArgs<T>& a, int64_t num_rows, CudaStream stream) {
    if (num_rows == 0) return;
    const bool in_packs = aligned_to_packs(a.x, a.bias, a.residual, a.biased, a.y, a.mask);
    with_activation(a.activation, [&](auto activation) {
        launch_column_pass<T, 0>(
            "bias_dropout_forward",
            BiasDropoutForward<T, decltype(activation)::value>{
                a, make_drawing<StatOf<T>>(a.key, a.dropout_p), num_rows * a.num_columns},
            num_rows, a.num_columns, shares_without_sums(num_rows), in_packs, stream);
    });
}

template <typename T>
void launch(const BiasDropoutBackwardArgs<T>& a, int64_t num_rows, CudaStream stream) {
    const bool in_packs = aligned_to_packs(a.dy, a.x, a.bias, a.mask, a.dx);
    with_activation(a.activation, [&](auto activation) {
        launch_column_pass<T, 1>("bias_dropout_backward",
                                 BiasDropoutBackward<T, decltype(activation)::value>{
                                     a, make_drawing<StatOf<T>>(a.key, a.dropout_p)},
                                 num_rows, a.num_columns, layer_norm_cuda_num_partials(num_rows),
                                 in_packs, stream);
    });
}

template <typename T>
void launch(const BiasHeadsForwardArgs<T>& a, int64_t num_rows, CudaStream stream) {
    if (num_rows == 0) return;
    launch_column_pass<T, 0>("bias_heads_forward", BiasHeadsForward<T>{a}, num_rows,
                             a.shape.num_columns(), shares_without_sums(num_rows),
                             has_whole_packs<T>(a.shape) &&
                                 aligned_to_packs(a.x, a.bias, a.heads[0], a.heads[1], a.heads[2]),
                             stream);
}

template <typename T>
void launch(const BiasHeadsBackwardArgs<T>& a, int64_t num_rows, CudaStream stream) {
    launch_column_pass<T, 1>("bias_heads_backward", BiasHeadsBackward<T>{a}, num_rows,
                             a.shape.num_columns(), layer_norm_cuda_num_partials(num_rows),
                             has_whole_packs<T>(a.shape) &&
                                 aligned_to_packs(a.dheads[0], a.dheads[1], a.dheads[2], a.dx),
                             stream);
}

template <typename T>
void launch(const ScaleShiftBackwardArgs<T>& a, int64_t num_rows, CudaStream stream) {
    launch_column_pass<T, 3>(
        "scale_shift_backward", ScaleShiftBackward<T>{a}, num_rows, a.num_columns,
        layer_norm_cuda_num_partials(num_rows),
        aligned_to_packs(a.dy, a.dresidual, a.normalized, a.gamma, a.dlinear, a.dnormalized),
        stream);
}

KERNELS_LAUNCH(BiasDropoutForwardArgs)
KERNELS_LAUNCH(BiasDropoutBackwardArgs)
KERNELS_LAUNCH(BiasHeadsForwardArgs)
KERNELS_LAUNCH(BiasHeadsBackwardArgs)
KERNELS_LAUNCH(ScaleShiftBackwardArgs)

}  // namespace kernels
