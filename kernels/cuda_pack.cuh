#pragma once

#include "kernels/types.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstring>

// What one thread reads and writes at once: a pack of 16 bytes, V = 16 / sizeof(T) elements of T,
// and its V mask bytes. In memory T, in registers StatOf<T>.

namespace kernels::cuda {

template <typename T>
inline constexpr int kPackSize = 16 / static_cast<int>(sizeof(T));
template <typename T>
inline constexpr int kPacks = 8 / kPackSize<T>;

// --- one element ---------------------------------------------------------

__device__ __forceinline__ float to_compute(float v) { return v; }
__device__ __forceinline__ double to_compute(double v) { return v; }
__device__ __forceinline__ float to_compute(Half v) {
    return __half2float(__ushort_as_half(v.bits));
}
__device__ __forceinline__ float to_compute(BFloat16 v) {
    return __bfloat162float(__ushort_as_bfloat16(v.bits));
}

template <typename T>
__device__ __forceinline__ T from_compute(StatOf<T> v) {
    if constexpr (sizeof(T) != 2) {
        return v;
    } else if constexpr (std::is_same_v<T, Half>) {
        return Half{__half_as_ushort(__float2half_rn(v))};
    } else {
        return BFloat16{__bfloat16_as_ushort(__float2bfloat16_rn(v))};
    }
}

/// Rounded to the type in memory, as separate steps would store it.
template <typename T>
__device__ __forceinline__ StatOf<T> rounded(StatOf<T> value) {
    return to_compute(from_compute<T>(value));
}

// --- packs of 16 bytes ---------------------------------------------------------------------------

/// std::bit_cast; CUDA's 16-bit types are not trivially copyable for it.
template <typename To, typename From>
__device__ __forceinline__ To bits_as(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(static_cast<void*>(&to), &from, sizeof(To));
    return to;
}

struct alignas(16) PackWords {
    uint32_t w[4];
};

/// Elements 2 i and 2 i + 1 of a pack of 16-bit values: one instruction from sm_80 on.
template <typename T>
__device__ __forceinline__ uint32_t pack_pair(float low, float high) {
    if constexpr (std::is_same_v<T, Half>) {
        return bits_as<uint32_t>(__floats2half2_rn(low, high));
    } else {
        return bits_as<uint32_t>(__floats2bfloat162_rn(low, high));
    }
}

template <typename T>
__device__ __forceinline__ void unpack_pair(uint32_t word, float& low, float& high) {
    if constexpr (std::is_same_v<T, Half>) {
        const float2 both = __half22float2(bits_as<__half2>(word));
        low = both.x;
        high = both.y;
    } else {
        low = bits_as<float>(word << 16);
        high = bits_as<float>(word & 0xFFFF0000u);
    }
}

template <typename T>
__device__ __forceinline__ void unpack(const PackWords& pack, StatOf<T>* out) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (sizeof(T) == 2) {
            unpack_pair<T>(pack.w[i], out[2 * i], out[2 * i + 1]);
        } else if constexpr (sizeof(T) == 4) {
            out[i] = bits_as<float>(pack.w[i]);
        } else if (i % 2 == 0) {
            out[i / 2] = bits_as<double>(uint64_t{pack.w[i + 1]} << 32 | pack.w[i]);
        }
    }
}

template <typename T>
__device__ __forceinline__ PackWords pack_of(const StatOf<T>* values) {
    PackWords pack;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (sizeof(T) == 2) {
            pack.w[i] = pack_pair<T>(values[2 * i], values[2 * i + 1]);
        } else if constexpr (sizeof(T) == 4) {
            pack.w[i] = bits_as<uint32_t>(values[i]);
        } else {
            const uint64_t bits = bits_as<uint64_t>(values[i / 2]);
            pack.w[i] = static_cast<uint32_t>(i % 2 == 0 ? bits : bits >> 32);
        }
    }
    return pack;
}

/// One load and one store of 128 bits. Where the words are used one by one, nvcc splits a copy of
/// the struct into four instructions; tools/kernel_report/kernel-report --check holds the
/// machine code.
__device__ __forceinline__ PackWords load_words(const void* from) {
#ifdef __CUDA_ARCH__
    PackWords pack;
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pack.w[0]), "=r"(pack.w[1]), "=r"(pack.w[2]), "=r"(pack.w[3])
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return pack;
#else
    return *static_cast<const PackWords*>(from);
#endif
}
__device__ __forceinline__ void store_words(void* to, const PackWords& pack) {
#ifdef __CUDA_ARCH__
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "r"(pack.w[0]), "r"(pack.w[1]), "r"(pack.w[2]), "r"(pack.w[3])
                 : "memory");
#else
    *static_cast<PackWords*>(to) = pack;
#endif
}

/// V elements: a pack of 16 bytes, or one element at any address.
template <int V, typename T>
__device__ __forceinline__ void load_elements(const T* from, StatOf<T>* out) {
    if constexpr (V == 1) {
        out[0] = to_compute(*from);
    } else {
        unpack<T>(load_words(from), out);
    }
}
template <int V, typename T>
__device__ __forceinline__ void store_elements(T* to, const StatOf<T>* values) {
    if constexpr (V == 1) {
        *to = from_compute<T>(values[0]);
    } else {
        store_words(to, pack_of<T>(values));
    }
}

// --- masks of bytes ----------------------------------------------------------------------------

/// The lowest four bits as bytes 0 or 1, the lowest in the first byte: copies of the bits at
/// distances of seven, so that none meets another.
__device__ __forceinline__ uint32_t bytes_of_bits(uint32_t bits) {
    return (bits & 0xF) * 0x00204081u & 0x01010101u;
}

/// Bit j is 1 if byte j of the four is not 0.
__device__ __forceinline__ uint32_t bits_of_bytes(uint32_t bytes) {
    const uint32_t high = ((bytes & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | bytes;  // bit 7 of each byte
    return ((high >> 7 & 0x01010101u) * 0x01020408u) >> 24;
}

/// The mask bytes of a pack of V elements, as bits and back. `at` is a multiple of V.
template <int V>
__device__ __forceinline__ uint32_t load_mask_bytes(const uint8_t* at) {
    if constexpr (V == 8) {
        const auto bytes = *reinterpret_cast<const uint2*>(at);
        return bits_of_bytes(bytes.x) | bits_of_bytes(bytes.y) << 4;
    } else if constexpr (V == 4) {
        return bits_of_bytes(*reinterpret_cast<const uint32_t*>(at));
    } else if constexpr (V == 2) {
        return bits_of_bytes(*reinterpret_cast<const uint16_t*>(at));
    } else {
        return *at != 0 ? 1 : 0;
    }
}
template <int V>
__device__ __forceinline__ void store_mask_bytes(uint8_t* at, uint32_t bits) {
    if constexpr (V == 8) {
        *reinterpret_cast<uint2*>(at) = {bytes_of_bits(bits), bytes_of_bits(bits >> 4)};
    } else if constexpr (V == 4) {
        *reinterpret_cast<uint32_t*>(at) = bytes_of_bits(bits);
    } else if constexpr (V == 2) {
        *reinterpret_cast<uint16_t*>(at) = static_cast<uint16_t>(bytes_of_bits(bits));
    } else {
        *at = static_cast<uint8_t>(bits);
    }
}

}  // namespace kernels::cuda
