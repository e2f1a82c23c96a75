#pragma once

#include "models/config/compute_capability.h"
#include "models/config/precision.h"
#include "models/config/result.h"
#include "profiler/planner/data/figures.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The GPUs that plans are made for: assets/gpus.json and a file of the user's own.
namespace profiler {

using models::ComputeCapability;

/// What the factors of a matrix product are; sums are fp32.
enum class MatmulType : uint8_t { kFp32, kTf32, kFp16, kBf16 };
inline constexpr std::array<std::string_view, 4> kMatmulTypeNames{"fp32", "tf32", "fp16", "bf16"};
constexpr std::string_view name_of(MatmulType t) {
    return kMatmulTypeNames[static_cast<std::size_t>(t)];
}
/// Of a workload's contractions; none for fp64, which no plan is made for.
std::optional<MatmulType> matmul_type_of(models::Precision precision);

/// How much of the specification products reach depends on the market a GPU is made for.
enum class Tier : uint8_t { kGeforce, kWorkstation, kServer };
inline constexpr std::array<std::string_view, 3> kTierNames{"geforce", "workstation", "server"};

struct Gpu {
    std::string id;    // "rtx3090ti"
    std::string name;  // "NVIDIA GeForce RTX 3090 Ti"
    Tier tier = Tier::kServer;
    std::optional<ComputeCapability> compute_capability;  // none: not CUDA
    Figure memory_bytes;                                  // nominal
    Figure usable_memory_bytes;    // total_memory of torch; the context is not taken off
    Figure bandwidth_bytes_per_s;  // specification
    std::array<std::optional<Figure>, kMatmulTypeNames.size()> peak_flop_per_s;
    Figure sm_count;
    Figure l2_bytes;
    std::string no_kernel_model;  // why its times are not predicted; empty: they are

    const std::optional<Figure>& peak(MatmulType type) const {
        return peak_flop_per_s[static_cast<std::size_t>(type)];
    }
};

/// Reads GPUs in the syntax of assets/gpus.json; `file` is what errors call it.
models::Result<std::vector<Gpu>> parse_gpus(std::string_view text, const std::string& file);

/// Errors: an unknown id; the nearest ones are listed.
models::Result<const Gpu*> find_gpu(const std::vector<Gpu>& gpus, std::string_view id);

}  // namespace profiler
