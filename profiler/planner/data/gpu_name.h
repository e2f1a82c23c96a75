#pragma once

#include "profiler/planner/data/gpu.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The names that drivers give to GPUs, beside those of the catalogue.
namespace profiler {

/// Lower-case words of letters and digits: "NVIDIA A100-SXM4-80GB" is nvidia, a100, sxm4, 80gb.
std::vector<std::string> words_of_name(std::string_view name);

/// Whether two names are of the same model, apart from its memory: words are left out on which
/// catalogue and driver disagree. "PCIe" stays: these are slower GPUs.
bool is_same_gpu_model(std::string_view name, std::string_view other);

/// The catalogue's GPU for a device by name and memory; of several, the one whose memory is
/// nearest. With memory_bytes <= 0 the name decides. Null: none.
const Gpu* find_gpu_by_name(const std::vector<Gpu>& gpus, std::string_view device_name,
                            int64_t memory_bytes);

/// The device of a prediction: "NVIDIA T4 with torch-2.11".
std::string predicted_device_name(const Gpu& gpu, std::string_view setup_id);

}  // namespace profiler
