#pragma once

#include "kernels/cuda_pack.cuh"
#include "kernels/philox.h"
#include "kernels/types.h"

#include <cuda_runtime.h>
#include <bit>
#include <stdexcept>
#include <string>

// How CUDA kernels here read and write: a warp owns a tile of 256 consecutive elements, every lane
// eight of them in packs of 16 bytes, so that each memory instruction of the warp touches 512
// consecutive bytes.
//
//   V = 16 / sizeof(T) elements a pack, 8 / V packs a lane
//   element j of pack k of a lane:  tile + 32 V k + V lane + j    register and mask bit k V + j
//
// Eight consecutive elements are one Philox counter and one byte of a bit mask: a "unit". Lane u of
// the warp draws unit u of the tile; own_bits() hands the bits to the lanes that hold the elements.
//
// Packs need aligned base pointers and tensors that end on a pack. Flat kernels are compiled for V
// and for V = 1. V = 1 serves tensors at any address. Kernels for V walk the last, partial tile one
// element at a time. Row kernels leave rows that are not whole packs to a kernel for rows of any
// length. The rest of each kernel is compiled for packs of 16 bytes only.

namespace kernels::cuda {

inline constexpr int kTile = 256;
inline constexpr int kBlockThreads = 256;
inline constexpr unsigned kWholeWarp = 0xFFFFFFFFu;

// --- tiles -------------------------------------------------------------------------------------

/// A warp's tile: where it starts in the tensor, and how many elements of the tensor (or row)
/// follow from there; 0 or less for a tile past the end. Half a warp may hold a tile of half the
/// size.
struct Tile {
    int64_t begin;
    int room;
    int lane;  // its number among the lanes of the tile
    int lanes = 32;

    /// Start of this lane's pack k, counted from the tile's begin.
    template <typename T, int V = kPackSize<T>>
    __device__ __forceinline__ int offset(int k) const {
        return lanes * V * k + V * lane;
    }
    template <typename T, int V = kPackSize<T>>
    __device__ __forceinline__ int64_t pack_begin(int k) const {
        return begin + offset<T, V>(k);
    }
    template <typename T, int V = kPackSize<T>>
    __device__ __forceinline__ bool holds(int k) const {
        return offset<T, V>(k) < room;
    }
};

/// Pack k of this lane; `fill` beyond the end.
template <typename T, int V = kPackSize<T>>
__device__ __forceinline__ void load_pack(const T* from, const Tile& tile, int k, StatOf<T> fill,
                                          StatOf<T>* out) {
    if (tile.holds<T, V>(k)) {
        load_elements<V>(from + tile.pack_begin<T, V>(k), out);
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
template <typename T, int V = kPackSize<T>>
__device__ __forceinline__ void load_tile(const T* from, const Tile& tile, StatOf<T> fill,
                                          StatOf<T> (&out)[8]) {
#pragma unroll
    for (int k = 0; k < 8 / V; ++k) load_pack<T, V>(from, tile, k, fill, out + k * V);
}

template <typename T>
__device__ __forceinline__ void load_tile(const Source<T>& from, const Tile& tile, StatOf<T> fill,
                                          StatOf<T> (&out)[8]) {
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) load_pack(from, tile, k, fill, out + k * kPackSize<T>);
}

/// The eight elements as they lie in memory, for kernels that send other loads before they use
/// them: a conversion of 16-bit elements waits for them, and nvcc puts it before the next branch.
template <typename T, int V>
struct StoredTile {
    using Pack = std::conditional_t<V == 1, T, PackWords>;
    Pack packs[8 / V] = {};

    __device__ __forceinline__ StoredTile(const T* from, const Tile& tile) {
#pragma unroll
        for (int k = 0; k < 8 / V; ++k) {
            if (!tile.holds<T, V>(k)) continue;
            if constexpr (V == 1) {
                packs[k] = from[tile.pack_begin<T, V>(k)];
            } else {
                packs[k] = load_words(from + tile.pack_begin<T, V>(k));
            }
        }
    }
    __device__ __forceinline__ void convert(StatOf<T> (&out)[8]) const {
#pragma unroll
        for (int k = 0; k < 8 / V; ++k) {
            if constexpr (V == 1) {
                out[k] = to_compute(packs[k]);
            } else {
                unpack<T>(packs[k], out + k * V);
            }
        }
    }
};

template <typename T, int V = kPackSize<T>>
__device__ __forceinline__ void store_tile(T* to, const Tile& tile, const StatOf<T> (&values)[8]) {
#pragma unroll
    for (int k = 0; k < 8 / V; ++k) {
        if (!tile.holds<T, V>(k)) continue;
        store_elements<V>(to + tile.pack_begin<T, V>(k), values + k * V);
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
// For V = 1, drawing and storing is not unrolled: the last tile must not cost all threads
// registers.

/// Lane u holds the byte of unit u; the result holds this lane's own elements.
template <typename T, int V = kPackSize<T>>
__device__ __forceinline__ uint32_t own_bits(uint32_t unit_byte, const Tile& tile) {
    if constexpr (V == 8) return unit_byte;
    uint32_t bits = 0;
#pragma unroll(V == 1 ? 1 : 8)
    for (int k = 0; k < 8 / V; ++k) {
        const uint32_t byte =
            __shfl_sync(kWholeWarp, unit_byte, tile.offset<T, V>(k) / 8, tile.lanes);
        bits |= (byte >> (V * tile.lane % 8) & ((1u << V) - 1)) << (V * k);
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
template <typename T, int V = kPackSize<T>>
__device__ __forceinline__ uint32_t draw_bits(const Drawing<StatOf<T>>& drawing, const Tile& tile) {
    const auto unit = static_cast<uint32_t>(tile.begin / 8) + static_cast<uint32_t>(tile.lane);
    return own_bits<T, V>(keep_bits_8(philox4x32_10(drawing.key, unit), drawing.threshold), tile);
}

/// All packs are read before one is waited for: the kind of mask is the outer branch.
template <typename T, int V = kPackSize<T>>
__device__ __forceinline__ uint32_t load_bits(MaskKind kind, const uint8_t* mask,
                                              const Tile& tile) {
    uint32_t bits = 0;
    const auto for_each_pack = [&](const auto& load) {
#pragma unroll
        for (int k = 0; k < 8 / V; ++k) {
            if (!tile.holds<T, V>(k)) continue;
            const uint32_t field = load(tile.pack_begin<T, V>(k));
            bits |= (field & ((1u << V) - 1)) << (V * k);
        }
    };
    if (kind == MaskKind::kBit) {
        for_each_pack([&](int64_t i) { return uint32_t{mask[i / 8]} >> (V * tile.lane % 8); });
    } else if (kind == MaskKind::kElement) {
        for_each_pack([&](int64_t i) {
            StatOf<T> kept[V];
            load_elements<V>(reinterpret_cast<const T*>(mask) + i, kept);
            uint32_t field = 0;
#pragma unroll
            for (int j = 0; j < V; ++j) field |= (kept[j] != 0 ? 1u : 0u) << j;
            return field;
        });
    } else {
        for_each_pack([&](int64_t i) { return load_mask_bytes<V>(mask + i); });
    }
    return bits;
}

/// The bits that forward drew: stored, or drawn again.
template <typename T, int V = kPackSize<T>>
__device__ __forceinline__ uint32_t kept_bits(MaskKind kind, const uint8_t* mask,
                                              const Drawing<StatOf<T>>& drawing, const Tile& tile) {
    if (kind == MaskKind::kNone) return draw_bits<T, V>(drawing, tile);
    return load_bits<T, V>(kind, mask, tile);
}

/// Must be called by all lanes of the warp. Bits beyond the end are written as 0.
template <typename T, int V = kPackSize<T>>
__device__ __forceinline__ void store_bits(MaskKind kind, uint8_t* mask, const Tile& tile,
                                           uint32_t bits) {
#pragma unroll(V == 1 ? 1 : 8)
    for (int k = 0; k < 8 / V; ++k) {
        const int64_t i = tile.pack_begin<T, V>(k);
        uint32_t field = bits >> (V * k) & ((1u << V) - 1);
        if constexpr (V == 1) field = tile.holds<T, V>(k) ? field : 0;
        if (kind == MaskKind::kBit) {
            uint32_t byte = field << (V * tile.lane % 8);
#pragma unroll
            for (int distance = 1; distance < 8 / V; distance *= 2) {
                byte |= __shfl_xor_sync(kWholeWarp, byte, distance);
            }
            if (V * tile.lane % 8 == 0 && tile.holds<T, V>(k)) {
                mask[i / 8] = static_cast<uint8_t>(byte);
            }
        } else if (tile.holds<T, V>(k) && kind == MaskKind::kElement) {
            StatOf<T> kept[V];
#pragma unroll
            for (int j = 0; j < V; ++j) kept[j] = StatOf<T>(field >> j & 1);
            store_elements<V>(reinterpret_cast<T*>(mask) + i, kept);
        } else if (tile.holds<T, V>(k)) {
            store_mask_bytes<V>(mask + i, field);
        }
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

// --- division ------------------------------------------------------------------------------------

/// p / count and p mod count for p < 2^31 by a multiplication: count * multiplier = 2^(31 + s) + r
/// with 0 <= r < count <= 2^s, so the quotient is exact (Granlund and Montgomery, Division by
/// invariant integers using multiplication, PLDI 1994, theorem 4.2).
struct Divisor {
    uint32_t count = 1;
    uint32_t multiplier = 1u << 31;
    uint32_t shift = 31;

    __device__ __forceinline__ uint32_t quotient(uint32_t p) const {
        return static_cast<uint32_t>(uint64_t{p} * multiplier >> shift);
    }
    __device__ __forceinline__ uint32_t remainder(uint32_t p) const {
        return p - quotient(p) * count;
    }
};

/// Requires 0 < count < 2^31.
inline Divisor divisor_of(int64_t size) {
    const auto count = static_cast<uint32_t>(size);
    const auto log = static_cast<uint32_t>(std::bit_width(count - 1));
    const uint64_t power = uint64_t{1} << (31 + log);
    return {count, static_cast<uint32_t>((power + count - 1) / count), 31 + log};
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

/// Throws if the launch of kernel `name` failed, or what comes before it.
inline void check_launch(const char* name, cudaError_t error) {
    if (error == cudaSuccess) return;
    throw std::runtime_error(std::string("CUDA kernel ") + name +
                             " could not be launched: " + cudaGetErrorString(error));
}

#ifdef __CUDACC__  // tests/kernels/cuda_on_cpu.h has another one, for machines without a GPU
/// Launches `kernel` on `stream`; `name` stands in error messages.
template <typename... Params, typename... Args>
void launch_kernel(const char* name, void (*kernel)(Params...), dim3 grid, dim3 block,
                   CudaStream stream, const Args&... args) {
    kernel<<<grid, block, 0, stream>>>(args...);
    check_launch(name, cudaGetLastError());
}
#endif

/// Makes launch() of `Args` for each type of tensors. It goes to the end of a .cu file.
#define KERNELS_LAUNCH(Args)                                        \
    template void launch(const Args<float>&, int64_t, CudaStream);  \
    template void launch(const Args<double>&, int64_t, CudaStream); \
    template void launch(const Args<Half>&, int64_t, CudaStream);   \
    template void launch(const Args<BFloat16>&, int64_t, CudaStream);

/// CUDA's limit for the first dimension of a grid.
constexpr int64_t kMaxBlocks = 0x7FFFFFFF;

/// Number of blocks that give every tile of `count` elements a warp.
inline unsigned blocks_for(int64_t count) {
    constexpr int64_t kPerBlock = int64_t{kTile} * (kBlockThreads / 32);
    const int64_t blocks = (count + kPerBlock - 1) / kPerBlock;
    if (blocks > kMaxBlocks) throw std::runtime_error("tensor too large for one CUDA launch");
    return static_cast<unsigned>(blocks);
}

inline unsigned blocks_of_rows(int64_t num_rows, int64_t rows_per_block) {
    const int64_t blocks = (num_rows + rows_per_block - 1) / rows_per_block;
    if (blocks > kMaxBlocks) throw std::runtime_error("too many rows for one CUDA launch");
    return static_cast<unsigned>(blocks);
}

/// Errors   std::runtime_error if the rows, with the grid beyond them, are too many for an int.
inline int counted_rows(int64_t num_rows) {
    if (num_rows > 0x7FFF0000) throw std::runtime_error("too many rows for one CUDA launch");
    return static_cast<int>(num_rows);
}

/// The tile of this warp in a flat tensor of `count` elements.
__device__ __forceinline__ Tile flat_tile(int64_t count) {
    const int64_t warp = int64_t{blockIdx.x} * (kBlockThreads / 32) + threadIdx.x / 32;
    const int64_t rest = count - warp * kTile;
    const int room = rest < kTile ? static_cast<int>(rest > 0 ? rest : 0) : kTile;
    return {warp * kTile, room, static_cast<int>(threadIdx.x % 32)};
}

/// True if the tile is read and written in packs of V, all of it: for V = 1 any tile that is not
/// past the end.
template <int V>
__device__ __forceinline__ bool takes_packs(const Tile& tile) {
    return tile.room == kTile || (V == 1 && tile.room > 0);
}

}  // namespace kernels::cuda
