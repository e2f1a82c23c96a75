// In-place GELU on the CPU. Bytes per element: forward e read, e + m written; backward 2e + m read,
// e written (e = size of T, m = 1 or 1/8). Arithmetic per vector of floats: 9 permutes and 8
// multiply-adds either way, and a square root in backward: about 17 and 26 cycles of Zen 3, so the
// bound is arithmetic up to the L3 and, from there on, those bytes over the bandwidth.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/inplace_gelu.cpp"
#include <hwy/foreach_target.h>  // compiles this file once per target
// foreach_target.h comes first

#include "kernels/dispatch.h"
#include "kernels/inplace_gelu-inl.h"
#include "kernels/inplace_gelu.h"

#include <hwy/highway.h>
#include <algorithm>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

/// bias[i % size] for 64 elements, starting at `begin`.
template <typename T>
HWY_INLINE void repeat_bias(const T* bias, int64_t size, int64_t begin, T* to) {
    int64_t column = begin % size;
    for (int64_t j = 0; j < 64;) {
        const int64_t count = std::min(size - column, 64 - j);
        std::memcpy(to + j, bias + column, static_cast<size_t>(count) * sizeof(T));
        j += count;
        column = 0;
    }
}

/// y = gelu(x + bias) of 64 elements, bias may be null; returns their branch bits.
template <class Fit, typename T>
HWY_INLINE uint64_t forward_64(const T* x, const T* bias, T* y) {
    uint64_t bits = 0;
    if constexpr (std::is_same_v<T, double>) {
        for (int j = 0; j < 64; ++j) {
            const double v = bias ? x[j] + bias[j] : x[j];
            bits |= uint64_t{v >= Fit::kXMin} << j;
            y[j] = gelu_value<Fit>(v);
        }
    } else {
        const ComputeTag<T> d;
        const int lanes = static_cast<int>(hn::Lanes(d));
        const auto branch = hn::Set(d, Fit::kBranch);
        for (int j = 0; j < 64; j += lanes) {
            auto v = load_as(d, x + j);
            if (bias) v = hn::Add(v, load_as(d, bias + j));
            bits |= bits_from_lanes(d, hn::Ge(v, branch)) << j;
            store_as(d, gelu_vector<Fit>(d, v), y + j);
        }
    }
    return bits;
}

/// dx = dy * gelu'(x) of 64 elements, from y and the branch bits. Two loops: in a single loop, the
/// square root and the polynomial after it form a dependency chain that is longer than a core's
/// lookahead.
template <class Fit, typename T>
HWY_INLINE void backward_64(const T* dy, const T* y, uint64_t bits, T* dx) {
    if constexpr (std::is_same_v<T, double>) {
        for (int j = 0; j < 64; ++j) {
            dx[j] = dy[j] * gelu_derivative_from_output<Fit>(y[j], (bits >> j & 1) != 0);
        }
    } else {
        const ComputeTag<T> d;
        const hn::RebindToSigned<ComputeTag<T>> di;
        const int lanes = static_cast<int>(hn::Lanes(d));
        HWY_ALIGN float s[64];
        HWY_ALIGN int32_t lane[64];
        uint64_t tails = 0;
        for (int j = 0; j < 64; j += lanes) {
            const auto place =
                place_output<Fit>(d, load_as(d, y + j), lanes_from_bits(d, bits >> j));
            hn::Store(place.s, d, s + j);
            hn::Store(place.lane, di, lane + j);
            tails |= bits_from_lanes(d, place.tail) << j;
        }
        const uint64_t first_lanes = ~uint64_t{0} >> (64 - lanes);
        for (int j = 0; j < 64; j += lanes) {
            auto slope =
                evaluate_lanes(d, Fit::kBackward, hn::Load(di, lane + j), hn::Load(d, s + j));
            if (HWY_UNLIKELY((tails >> j & first_lanes) != 0)) {
                const auto tail = left_derivative<Fit>(d, load_as(d, y + j));
                slope = hn::IfThenElse(lanes_from_bits(d, tails >> j), tail, slope);
            }
            store_as(d, hn::Mul(load_as(d, dy + j), slope), dx + j);
        }
    }
}

template <class Fit, typename T>
void forward_range(const InplaceGeluForwardArgs<T>& args, int64_t begin, int64_t end) {
    T repeated[64];
    const T* bias = args.bias ? repeated : nullptr;
    for (int64_t i = begin; i < end; i += 64) {
        const int64_t count = std::min<int64_t>(64, end - i);
        if (args.bias) repeat_bias(args.bias, args.bias_size, i, repeated);
        uint64_t bits;
        if (count == 64) {
            bits = forward_64<Fit>(args.x + i, bias, args.y + i);
        } else {
            T padded[64] = {};
            std::memcpy(padded, args.x + i, static_cast<size_t>(count) * sizeof(T));
            bits = forward_64<Fit>(padded, bias, padded);
            std::memcpy(args.y + i, padded, static_cast<size_t>(count) * sizeof(T));
        }
        store_mask(args.mask_kind, args.mask, i, count, bits);
    }
}

template <class Fit, typename T>
void backward_range(const InplaceGeluBackwardArgs<T>& args, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += 64) {
        const int64_t count = std::min<int64_t>(64, end - i);
        const uint64_t bits = load_mask(args.mask_kind, args.mask, i, count);
        if (count == 64) {
            backward_64<Fit>(args.dy + i, args.y + i, bits, args.dx + i);
            continue;
        }
        T dy[64] = {};
        T y[64] = {};
        std::memcpy(dy, args.dy + i, static_cast<size_t>(count) * sizeof(T));
        std::memcpy(y, args.y + i, static_cast<size_t>(count) * sizeof(T));
        backward_64<Fit>(dy, y, bits, dy);
        std::memcpy(args.dx + i, dy, static_cast<size_t>(count) * sizeof(T));
    }
}

template <typename T>
void inplace_gelu_forward_range(const InplaceGeluForwardArgs<T>& args, int64_t begin, int64_t end) {
    if (args.kind == GeluKind::kErf) return forward_range<gelu_fit::ErfFit>(args, begin, end);
    return forward_range<gelu_fit::TanhFit>(args, begin, end);
}

template <typename T>
void inplace_gelu_backward_range(const InplaceGeluBackwardArgs<T>& args, int64_t begin,
                                 int64_t end) {
    if (args.kind == GeluKind::kErf) return backward_range<gelu_fit::ErfFit>(args, begin, end);
    return backward_range<gelu_fit::TanhFit>(args, begin, end);
}

KERNELS_TARGET_FUNCTIONS(inplace_gelu_forward, InplaceGeluForwardArgs)
KERNELS_TARGET_FUNCTIONS(inplace_gelu_backward, InplaceGeluBackwardArgs)

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

KERNELS_DISPATCH(inplace_gelu_forward, InplaceGeluForwardArgs)
KERNELS_DISPATCH(inplace_gelu_backward, InplaceGeluBackwardArgs)

}  // namespace kernels
#endif  // HWY_ONCE
