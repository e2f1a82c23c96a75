#pragma once

#include "kernels/cuda_pack.cuh"
#include "kernels/philox.h"
#include "kernels/types.h"

#include <cuda_runtime.h>
#include <stdexcept>
#include <string>

// How CUDA kernels here read and write: a warp owns a tile of 256 consecutive elements, every lane
// eight of them in packs of 16 bytes, so that each memory instruction of the warp touches 512
// consecutive bytes.
//
//   V = 16 / sizeof(T) elements a pack, 8 / V packs a lane
//   element j of pack k of a lane:  tile + 32 V k + V lane + j          register and mask bit k V +
//   j
//
// Eight consecutive elements are one Philox counter and one byte of a bit mask: a "unit". Lane u of
// the warp draws unit u of the tile; own_bits() hands the bits to the lanes that hold the elements.
//
// Packs need aligned base pointers and tensors that end on a pack. Flat kernels handle the last,
// partial tile, and tensors that start at any address, by units, one element at a time. Row kernels
// leave rows that are not whole packs to a kernel for rows of any length. The rest of each kernel
// is compiled for packs only.

namespace kernels::cuda {

inline constexpr int kTile = 256;
inline constexpr int kBlockThreads = 256;
inline constexpr unsigned kWholeWarp = 0xFFFFFFFFu;

// --- tiles -------------------------------------------------------------------------------------

/// A warp's tile: where it starts in the tensor, and how many elements of the tensor (or row)
/// follow from there; 0 for a tile past the end.
struct Tile {
    int64_t begin;
    int room;
    int lane;

    /// Start of this lane's pack k, counted from the tile's begin.
    template <typename T>
    __device__ __forceinline__ int offset(int k) const {
        return 32 * kPackSize<T> * k + kPackSize<T> * lane;
    }
    template <typename T>
    __device__ __forceinline__ int64_t pack_begin(int k) const {
        return begin + offset<T>(k);
    }
    template <typename T>
    __device__ __forceinline__ bool holds(int k) const {
        return offset<T>(k) < room;
    }
};

/// Pack k of this lane; `fill` beyond the end.
template <typename T>
__device__ __forceinline__ void load_pack(const T* from, const Tile& tile, int k, StatOf<T> fill,
                                          StatOf<T>* out) {
    constexpr int V = kPackSize<T>;
    if (tile.holds<T>(k)) {
        unpack<T>(load_words(from + tile.pack_begin<T>(k)), out);
    } else {
#pragma unroll
        for (int j = 0; j < V; ++j) out[j] = fill;
    }
}

/// The same elements of a tensor that may be float: two packs in place of one.
template <typename T>
__device__ __forceinline__ void load_pack(const Source<T>& from, const Tile& tile, int k,
                                          StatOf<T> fill, StatOf<T>* out) {
    if constexpr (sizeof(T) == 2) {
        if (from.wide) {
            const float* at = from.wide + tile.pack_begin<T>(k);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float* to = out + 4 * half;
                if (tile.holds<T>(k)) {
                    unpack<float>(load_words(at + 4 * half), to);
                } else {
                    to[0] = to[1] = to[2] = to[3] = fill;
                }
            }
            return;
        }
    }
    load_pack(from.narrow, tile, k, fill, out);
}

/// This lane's eight elements.
template <typename T>
__device__ __forceinline__ void load_tile(const T* from, const Tile& tile, StatOf<T> fill,
                                          StatOf<T> (&out)[8]) {
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) load_pack(from, tile, k, fill, out + k * kPackSize<T>);
}

template <typename T>
__device__ __forceinline__ void load_tile(const Source<T>& from, const Tile& tile, StatOf<T> fill,
                                          StatOf<T> (&out)[8]) {
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) load_pack(from, tile, k, fill, out + k * kPackSize<T>);
}

template <typename T>
__device__ __forceinline__ void store_tile(T* to, const Tile& tile, const StatOf<T> (&values)[8]) {
    constexpr int V = kPackSize<T>;
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) {
        if (!tile.holds<T>(k)) continue;
        store_words(to + tile.pack_begin<T>(k), pack_of<T>(values + k * V));
    }
}

template <typename T>
__device__ __forceinline__ void store_tile(const Target<T>& to, const Tile& tile,
                                           const StatOf<T> (&values)[8]) {
    if constexpr (sizeof(T) == 2) {
        if (to.wide) {
            if (!tile.holds<T>(0)) return;
            float* at = to.wide + tile.pack_begin<T>(0);
            store_words(at, pack_of<float>(values));
            store_words(at + 4, pack_of<float>(values + 4));
            return;
        }
    }
    store_tile(to.narrow, tile, values);
}

/// Tells the compiler that all elements of these tensors are T.
template <typename... Tensors>
__device__ __forceinline__ void take_as_narrow(Tensors&... tensors) {
    ((tensors.wide = nullptr), ...);
}

// --- one element of a tensor that may be float ---------------------------------------------------

template <typename T>
__device__ __forceinline__ StatOf<T> element(const Source<T>& from, int64_t i) {
    return from.wide ? from.wide[i] : to_compute(from.narrow[i]);
}
template <typename T>
__device__ __forceinline__ void store_element(const Target<T>& to, int64_t i, StatOf<T> value) {
    if (to.wide) {
        to.wide[i] = value;
    } else {
        to.narrow[i] = from_compute<T>(value);
    }
}

// --- masks of a tile: bit k V + j of `bits` belongs to register k V + j -------------------------

/// Lane u holds the byte of unit u; the result holds this lane's own elements.
template <typename T>
__device__ __forceinline__ uint32_t own_bits(uint32_t unit_byte, int lane) {
    constexpr int V = kPackSize<T>;
    if constexpr (V == 8) return unit_byte;
    uint32_t bits = 0;
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) {
        const uint32_t byte = __shfl_sync(kWholeWarp, unit_byte, 4 * V * k + V * lane / 8);
        bits |= (byte >> (V * lane % 8) & ((1u << V) - 1)) << (V * k);
    }
    return bits;
}

/// Arguments of a kernel that draws dropout's bits and scales the kept elements.
template <typename S>
struct Drawing {
    PhiloxKey key;
    uint32_t threshold;
    S scale;
};

template <typename S>
Drawing<S> make_drawing(const DropoutKey& key, double dropout_p) {
    const uint32_t threshold = keep_threshold(dropout_p);
    return {make_philox_key(key), threshold, static_cast<S>(keep_scale(threshold))};
}

/// Keep bits of this lane's elements. The tile must begin at a multiple of eight elements.
template <typename T>
__device__ __forceinline__ uint32_t draw_bits(const Drawing<StatOf<T>>& drawing, const Tile& tile) {
    const auto unit = static_cast<uint32_t>(tile.begin / 8) + static_cast<uint32_t>(tile.lane);
    return own_bits<T>(keep_bits_8(philox4x32_10(drawing.key, unit), drawing.threshold), tile.lane);
}

template <typename T>
__device__ __forceinline__ uint32_t load_bits(MaskKind kind, const uint8_t* mask,
                                              const Tile& tile) {
    constexpr int V = kPackSize<T>;
    uint32_t bits = 0;
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) {
        if (!tile.holds<T>(k)) continue;
        const int64_t i = tile.pack_begin<T>(k);
        if (kind == MaskKind::kBit) {
            bits |= (mask[i / 8] >> (V * tile.lane % 8) & ((1u << V) - 1)) << (V * k);
        } else if (kind == MaskKind::kElement) {
            StatOf<T> kept[V];
            load_pack(reinterpret_cast<const T*>(mask), tile, k, StatOf<T>{0}, kept);
#pragma unroll
            for (int j = 0; j < V; ++j) bits |= (kept[j] != 0 ? 1u : 0u) << (V * k + j);
        } else {
            bits |= load_mask_bytes<V>(mask + i) << (V * k);
        }
    }
    return bits;
}

/// Must be called by all lanes of the warp.
template <typename T>
__device__ __forceinline__ void store_bits(MaskKind kind, uint8_t* mask, const Tile& tile,
                                           uint32_t bits) {
    constexpr int V = kPackSize<T>;
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) {
        const int64_t i = tile.pack_begin<T>(k);
        const uint32_t field = bits >> (V * k) & ((1u << V) - 1);
        if (kind == MaskKind::kBit) {
            uint32_t byte = field << (V * tile.lane % 8);
#pragma unroll
            for (int distance = 1; distance < 8 / V; distance *= 2) {
                byte |= __shfl_xor_sync(kWholeWarp, byte, distance);
            }
            if (V * tile.lane % 8 == 0 && tile.holds<T>(k))
                mask[i / 8] = static_cast<uint8_t>(byte);
        } else if (tile.holds<T>(k) && kind == MaskKind::kElement) {
            StatOf<T> kept[V];
#pragma unroll
            for (int j = 0; j < V; ++j) kept[j] = StatOf<T>(field >> j & 1);
            store_words(reinterpret_cast<T*>(mask) + i, pack_of<T>(kept));
        } else if (tile.holds<T>(k)) {
            store_mask_bytes<V>(mask + i, field);
        }
    }
}

// --- units: elements [8 u, 8 u + count) of a flat tensor, one at a time --------------------------

struct Unit {
    int64_t begin;  // a multiple of eight
    int count;      // 8, less at the end, 0 past it
};

/// Lane u's unit of the tile.
__device__ __forceinline__ Unit unit_of(const Tile& tile) {
    const int rest = tile.room - 8 * tile.lane;
    return {tile.begin + 8 * tile.lane, rest >= 8 ? 8 : (rest > 0 ? rest : 0)};
}

template <typename S>
__device__ __forceinline__ uint32_t draw_unit(const Drawing<S>& drawing, const Unit& unit) {
    const auto counter = static_cast<uint32_t>(unit.begin / 8);
    return keep_bits_8(philox4x32_10(drawing.key, counter), drawing.threshold);
}

__device__ __forceinline__ uint32_t load_unit(MaskKind kind, const uint8_t* mask,
                                              const Unit& unit) {
    if (unit.count == 0) return 0;
    if (kind == MaskKind::kBit) return mask[unit.begin / 8];
    uint32_t bits = 0;
#pragma unroll 1
    for (int j = 0; j < unit.count; ++j) bits |= (mask[unit.begin + j] != 0 ? 1u : 0u) << j;
    return bits;
}

/// Bits beyond the end are written as 0.
__device__ __forceinline__ void store_unit(MaskKind kind, uint8_t* mask, const Unit& unit,
                                           uint32_t bits) {
    if (unit.count == 0) return;
    if (kind == MaskKind::kBit) {
        mask[unit.begin / 8] = static_cast<uint8_t>(bits & ((1u << unit.count) - 1));
        return;
    }
#pragma unroll 1
    for (int j = 0; j < unit.count; ++j) mask[unit.begin + j] = bits >> j & 1;
}

/// load_unit of a tensor of T, whose mask may be stored as T.
template <typename T>
__device__ __forceinline__ uint32_t load_unit_as(MaskKind kind, const uint8_t* mask,
                                                 const Unit& unit) {
    if (kind != MaskKind::kElement) return load_unit(kind, mask, unit);
    const T* kept = reinterpret_cast<const T*>(mask);
    uint32_t bits = 0;
#pragma unroll 1
    for (int j = 0; j < unit.count; ++j) {
        bits |= (to_compute(kept[unit.begin + j]) != 0 ? 1u : 0u) << j;
    }
    return bits;
}

template <typename T>
__device__ __forceinline__ void store_unit_as(MaskKind kind, uint8_t* mask, const Unit& unit,
                                              uint32_t bits) {
    if (kind != MaskKind::kElement) return store_unit(kind, mask, unit, bits);
    T* kept = reinterpret_cast<T*>(mask);
#pragma unroll 1
    for (int j = 0; j < unit.count; ++j) {
        kept[unit.begin + j] = from_compute<T>(StatOf<T>(bits >> j & 1));
    }
}

// --- masks of a tensor of T, one element at a time ----------------------------------------------

/// Keep bit of element i: what forward wrote, or what it drew.
template <typename T>
__device__ __forceinline__ bool kept_element(MaskKind kind, const uint8_t* mask,
                                             const Drawing<StatOf<T>>& drawing, int64_t i) {
    if (kind == MaskKind::kByte) return mask[i] != 0;
    if (kind == MaskKind::kBit) return mask[i / 8] >> (i % 8) & 1;
    if (kind == MaskKind::kElement) return to_compute(reinterpret_cast<const T*>(mask)[i]) != 0;
    const PhiloxWords words = philox4x32_10(drawing.key, static_cast<uint32_t>(i / 8));
    return keep_bits_8(words, drawing.threshold) >> (i % 8) & 1;
}

// --- host side ---------------------------------------------------------------------------------

template <typename T>
bool starts_at_pack(const T* tensor) {
    return reinterpret_cast<uintptr_t>(tensor) % 16 == 0;
}
template <typename T>
bool starts_at_pack(const Source<T>& tensor) {
    return starts_at_pack(tensor.narrow) && starts_at_pack(tensor.wide);
}
template <typename T>
bool starts_at_pack(const Target<T>& tensor) {
    return starts_at_pack(Source<T>(tensor));
}
template <typename... Tensors>
bool any_is_float(const Tensors&... tensors) {
    return ((tensors.wide != nullptr) || ...);
}

template <typename... Tensors>
bool aligned_to_packs(const Tensors&... tensors) {
    return (starts_at_pack(tensors) && ...);
}

#ifdef __CUDACC__  // tests/kernels/cuda_on_cpu.h has another one, for machines without a GPU
/// Launches `kernel` on `stream`; `name` stands in error messages.
template <typename... Params, typename... Args>
void launch(const char* name, void (*kernel)(Params...), dim3 grid, dim3 block, CudaStream stream,
            const Args&... args) {
    kernel<<<grid, block, 0, stream>>>(args...);
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return;
    throw std::runtime_error(std::string("CUDA kernel ") + name +
                             " could not be launched: " + cudaGetErrorString(error));
}
#endif

/// Number of blocks that give every tile of `count` elements a warp.
inline unsigned blocks_for(int64_t count) {
    constexpr int64_t kPerBlock = int64_t{kTile} * (kBlockThreads / 32);
    const int64_t blocks = (count + kPerBlock - 1) / kPerBlock;
    if (blocks > 0x7FFFFFFF) throw std::runtime_error("tensor too large for one CUDA launch");
    return static_cast<unsigned>(blocks);
}

inline unsigned blocks_of_rows(int64_t num_rows, int64_t rows_per_block) {
    const int64_t blocks = (num_rows + rows_per_block - 1) / rows_per_block;
    if (blocks > 0x7FFFFFFF) throw std::runtime_error("too many rows for one CUDA launch");
    return static_cast<unsigned>(blocks);
}

/// The tile of this warp in a flat tensor of `count` elements.
__device__ __forceinline__ Tile flat_tile(int64_t count) {
    const int64_t warp = int64_t{blockIdx.x} * (kBlockThreads / 32) + threadIdx.x / 32;
    const int64_t rest = count - warp * kTile;
    const int room = rest < kTile ? static_cast<int>(rest > 0 ? rest : 0) : kTile;
    return {warp * kTile, room, static_cast<int>(threadIdx.x % 32)};
}

/// True if the tile is read and written in packs.
__device__ __forceinline__ bool takes_packs(const Tile& tile, bool aligned) {
    return aligned && tile.room == kTile;
}

}  // namespace kernels::cuda
