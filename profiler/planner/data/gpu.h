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

/// The GPUs that a plan can be made for: assets/gpus.json, and a file with GPUs of the user.
namespace profiler {

using models::ComputeCapability;

/// The type of the factors of a GEMM. Sums are in fp32.
enum class MatmulType : uint8_t { kFp32, kTf32, kFp16, kBf16 };
inline constexpr std::array<std::string_view, 4> kMatmulTypeNames{"fp32", "tf32", "fp16", "bf16"};
constexpr std::string_view name_of(MatmulType t) {
    return kMatmulTypeNames[static_cast<std::size_t>(t)];
}
/// The type of a precision's contractions; empty for fp64, for which there are no plans.
std::optional<MatmulType> matmul_type_of(models::Precision precision);

/// The market that a GPU is made for. It decides which share of the specification GEMMs reach.
enum class Tier : uint8_t { kGeforce, kWorkstation, kServer };
inline constexpr std::array<std::string_view, 3> kTierNames{"geforce", "workstation", "server"};

struct Gpu {
    std::string id;    // "rtx3090ti"
    std::string name;  // "NVIDIA GeForce RTX 3090 Ti"
    Tier tier = Tier::kServer;
    std::optional<ComputeCapability> compute_capability;  // empty: no CUDA
    Figure memory_bytes;                                  // nominal
    Figure usable_memory_bytes;    // total_memory of PyTorch, CUDA context included
    Figure bandwidth_bytes_per_s;  // specification
    std::array<std::optional<Figure>, kMatmulTypeNames.size()> peak_flop_per_s;
    Figure sm_count;
    Figure l2_bytes;
    // What programs ask of a device. Plans do not use them, and a GPU of the user may lack them.
    std::optional<Figure> clock_khz;         // of the multiprocessors, at most
    std::optional<Figure> memory_clock_khz;  // two transfers a cycle
    std::optional<Figure> memory_bus_bits;
    std::string no_kernel_model;  // why its times are not predicted; empty if they are

    const std::optional<Figure>& peak(MatmulType type) const {
        return peak_flop_per_s[static_cast<std::size_t>(type)];
    }
};

/// Reads GPUs in the format of assets/gpus.json. Errors name the text `file`.
models::Result<std::vector<Gpu>> parse_gpus(std::string_view text, const std::string& file);

/// Errors: an unknown id; the message lists similar ids.
models::Result<const Gpu*> find_gpu(const std::vector<Gpu>& gpus, std::string_view id);

// The names that drivers give to GPUs, beside those of the catalogue.

/// "RTX 3090" of "NVIDIA GeForce RTX 3090": without the maker and its brand.
std::string_view short_gpu_name(std::string_view gpu);

/// Lower-case words of letters and digits: "NVIDIA A100-SXM4-80GB" is nvidia, a100, sxm4, 80gb.
std::vector<std::string> words_of_name(std::string_view name);

/// Whether two names are of the same model, apart from its memory: words are left out on which
/// catalogue and driver disagree. "PCIe" stays: these are slower GPUs.
bool is_same_gpu_model(std::string_view name, std::string_view other);

/// The catalogue's GPU for a device by name and memory; of several, the GPU with the nearest
/// memory. With memory_bytes <= 0 the name decides. Null: none.
const Gpu* find_gpu_by_name(const std::vector<Gpu>& gpus, std::string_view device_name,
                            int64_t memory_bytes);

/// The device of a prediction: "NVIDIA T4 with torch-2.11".
std::string predicted_device_name(const Gpu& gpu, std::string_view setup_id);

}  // namespace profiler
