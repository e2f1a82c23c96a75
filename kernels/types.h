#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

// The words that all kernels share: 16-bit storage types, mask formats, the random-number key and
// the CUDA stream. No kernel header needs torch, Highway or a CUDA header.
//
// Calling convention of every op in this folder
//   CPU   `op_direction(args, begin, end)` works on one range of elements (or rows) on the calling
//         thread. The caller splits the whole range, e.g. with at::parallel_for; ranges of one
//         tensor may run at the same time when they start at multiples of the granularity that the
//         header states.
//   CUDA  `launch(args, count, stream)`, one overload for each type of args, works on the whole
//         tensor of the current device, asynchronously on `stream`. Same args, device pointers. In
//         tempo_kernels_cuda.
// Pointers are borrowed for the call. Tensors are contiguous and row-major. Nothing is allocated.

struct CUstream_st;

namespace kernels {

using CudaStream = CUstream_st*;  // the same type as cudaStream_t and CUstream

/// IEEE binary16 as stored; same bits as c10::Half.
struct Half {
    uint16_t bits = 0;
};

/// bfloat16 as stored; same bits as c10::BFloat16.
struct BFloat16 {
    uint16_t bits = 0;
};

/// `instantiate`(T) for each type of the tensors that kernels take.
#define KERNELS_FOR_EACH_TYPE(instantiate) \
    instantiate(float) instantiate(double) instantiate(Half) instantiate(BFloat16)

/// Type in which statistics and partial sums of T are kept: float, and double for double.
template <typename T>
struct StatType {
    using type = float;
};
template <>
struct StatType<double> {
    using type = double;
};
template <typename T>
using StatOf = typename StatType<T>::type;

/// A tensor that a kernel reads: of T, or of float beside 16-bit T. Under autocast parameters and
/// the residual stream of pre-LN layers are float, and what linear layers save is T.
template <typename T>
struct Source {
    constexpr Source(std::nullptr_t = nullptr) {}
    constexpr Source(const T* tensor) : narrow(tensor) {}
    template <typename Wide>
        requires(std::is_same_v<Wide, StatOf<T>> && !std::is_same_v<Wide, T>)
    constexpr Source(const Wide* tensor) : wide(tensor) {}

    constexpr explicit operator bool() const { return narrow != nullptr || wide != nullptr; }
    constexpr Source operator+(int64_t offset) const {
        Source moved = *this;
        if (wide != nullptr) moved.wide += offset;
        if (narrow != nullptr) moved.narrow += offset;
        return moved;
    }

    const T* narrow = nullptr;
    const StatOf<T>* wide = nullptr;  // at most one of both
};

/// A tensor that a kernel writes: of T, or of float beside 16-bit T.
template <typename T>
struct Target {
    constexpr Target(std::nullptr_t = nullptr) {}
    constexpr Target(T* tensor) : narrow(tensor) {}
    template <typename Wide>
        requires(std::is_same_v<Wide, StatOf<T>> && !std::is_same_v<Wide, T>)
    constexpr Target(Wide* tensor) : wide(tensor) {}

    constexpr explicit operator bool() const { return narrow != nullptr || wide != nullptr; }
    constexpr Target operator+(int64_t offset) const {
        Target moved = *this;
        if (wide != nullptr) moved.wide += offset;
        if (narrow != nullptr) moved.narrow += offset;
        return moved;
    }
    constexpr operator Source<T>() const {
        Source<T> source = narrow;
        source.wide = wide;
        return source;
    }

    T* narrow = nullptr;
    StatOf<T>* wide = nullptr;  // at most one of both
};

/// How a yes/no per element is saved for backward.
enum class MaskKind : uint8_t {
    kByte,  // one byte per element, 0 or 1 (torch.bool)
    kBit,   // one bit per element, element i is bit i % 8 (least significant first) of byte i / 8,
            // flat
    kElement,  // 0 or 1 in the type of the tensor itself (Substation)
    kNone,     // not stored: dropout draws the same numbers again
};

/// Bytes of `count` bits packed by MaskKind::kBit.
constexpr int64_t packed_bytes(int64_t count) { return (count + 7) / 8; }

/// Bytes that the mask of a tensor of `count` elements of type T takes.
template <typename T>
constexpr int64_t mask_bytes(MaskKind kind, int64_t count) {
    switch (kind) {
        case MaskKind::kByte:
            return count;
        case MaskKind::kBit:
            return packed_bytes(count);
        case MaskKind::kElement:
            return count * int64_t{sizeof(T)};
        case MaskKind::kNone:
            return 0;
    }
    return 0;
}

/// Element ranges of the CPU functions start at multiples of this many elements (and end there or
/// at the end of the tensor): a range then owns whole mask bytes, whole Philox groups and whole
/// cache lines of bits.
inline constexpr int64_t kElementGranularity = 64;

/// Rows of `row_size` elements after which a range of rows may be split, when a mask is stored
/// flat.
constexpr int64_t row_granularity(int64_t row_size) {
    int64_t a = kElementGranularity;
    int64_t b = row_size;
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return kElementGranularity / a;  // 64 / gcd(64, row_size)
}

}  // namespace kernels
