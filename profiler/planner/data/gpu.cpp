#include "profiler/planner/data/gpu.h"

#include "models/config/names.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

namespace profiler {
namespace {

constexpr Limits kClockLimits{1, 1e8};

bool is_id(std::string_view id) {
    return std::ranges::all_of(
        id, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

/// Refuses values that contradict each other.
void check(const Gpu& gpu, const FieldReader& reader) {
    if (!is_id(gpu.id)) reader.fail("'id' must be lower case letters, digits and dashes");
    if (gpu.usable_memory_bytes.value > gpu.memory_bytes.value) {
        reader.fail("'usable_memory_gib' is larger than 'memory_gib'");
    }
    if (gpu.no_kernel_model.empty() && !gpu.peak(MatmulType::kFp32)) {
        reader.fail("'fp32_tflops' is missing; a GPU without it says why in 'no_kernel_model'");
    }
}

/// Of a GPU of which only its memory is known. Programs that ask for the rest see an A100's.
Gpu read_memory_only(FieldReader& reader) {
    const std::string source = "not given: as an A100's";
    Gpu gpu{.id = reader.text("id"), .name = reader.text("name")};
    gpu.compute_capability = models::kAmpere;
    gpu.memory_bytes = gpu.usable_memory_bytes = reader.figure("memory_gib", kGiBBytes, kGpuLimits);
    gpu.bandwidth_bytes_per_s = {1555 * kGiga, source};
    gpu.sm_count = {108, source};
    gpu.l2_bytes = {40 * kMiBBytes, source};
    gpu.no_kernel_model = "its rates are not known";
    check(gpu, reader);
    return gpu;
}

Gpu read_gpu(FieldReader& reader) {
    const auto lacks = [&](const char* key) { return !reader.has(key); };
    if (lacks("tier") && lacks("bandwidth_gb_per_s") && lacks("fp32_tflops")) {
        return read_memory_only(reader);
    }
    Gpu gpu{.id = reader.text("id"),
            .name = reader.text("name"),
            .tier = reader.name<Tier>("tier", kTierNames)};
    gpu.compute_capability = reader.optional_capability("compute_capability");
    gpu.memory_bytes = reader.figure("memory_gib", kGiBBytes, kGpuLimits);
    gpu.usable_memory_bytes = reader.figure("usable_memory_gib", kGiBBytes, kGpuLimits);
    gpu.bandwidth_bytes_per_s = reader.figure("bandwidth_gb_per_s", kGiga, kGpuLimits);
    for (std::size_t i = 0; i < kMatmulTypeNames.size(); ++i) {
        const std::string key = fmt::format("{}_tflops", kMatmulTypeNames[i]);
        gpu.peak_flop_per_s[i] = reader.optional_figure(key.c_str(), kTera, kGpuLimits);
    }
    gpu.sm_count = reader.figure("sm_count", 1, kCountLimits);
    gpu.l2_bytes = reader.figure("l2_mib", kMiBBytes, kGpuLimits);
    gpu.clock_khz = reader.optional_figure("clock_khz", 1, kClockLimits);
    gpu.memory_clock_khz = reader.optional_figure("memory_clock_khz", 1, kClockLimits);
    gpu.memory_bus_bits = reader.optional_figure("memory_bus_bits", 1, kCountLimits);
    gpu.no_kernel_model = reader.optional_text("no_kernel_model").value_or("");
    check(gpu, reader);
    return gpu;
}

constexpr double kSameMemory = 0.05;

/// Memory sizes are compared as numbers.
std::vector<std::string> model_words(std::string_view name) {
    std::vector<std::string> words;
    for (std::string& word : words_of_name(name)) {
        if (word == "gb" && !words.empty()) {
            words.pop_back();  // "80 GB"
        } else if (word != "nvidia" && word != "tesla" && !word.starts_with("sxm") &&
                   !word.starts_with("hbm") && !word.ends_with("gb")) {
            words.push_back(std::move(word));
        }
    }
    return words;
}

}  // namespace

std::optional<MatmulType> matmul_type_of(models::Precision precision) {
    using models::Precision;
    switch (precision) {
        case Precision::kFp32:
            return MatmulType::kFp32;
        case Precision::kTf32:
            return MatmulType::kTf32;
        case Precision::kFp16:
        case Precision::kAmpFp16:
        case Precision::kPureFp16:
            return MatmulType::kFp16;
        case Precision::kBf16:
        case Precision::kAmpBf16:
        case Precision::kPureBf16:
            return MatmulType::kBf16;
        case Precision::kFp64:
            return std::nullopt;
    }
    return std::nullopt;
}

models::Result<std::vector<Gpu>> parse_gpus(std::string_view text, const std::string& file) {
    return parse_rows<Gpu>(text, file, "gpus", "GPU", read_gpu);
}

models::Result<const Gpu*> find_gpu(const std::vector<Gpu>& gpus, std::string_view id) {
    std::vector<std::string_view> ids;
    for (const Gpu& gpu : gpus) {
        if (models::is_same_name(id, gpu.id)) return &gpu;
        ids.push_back(gpu.id);
    }
    return models::fail("'{}' is not a known GPU: did you mean {}?", id,
                        fmt::join(models::nearest_names(id, ids), ", "));
}

std::string_view short_gpu_name(std::string_view gpu) {
    for (const std::string_view prefix : {"NVIDIA ", "AMD ", "GeForce ", "Tesla ", "Instinct "}) {
        if (gpu.starts_with(prefix)) gpu.remove_prefix(prefix.size());
    }
    return gpu;
}

std::vector<std::string> words_of_name(std::string_view name) {
    std::vector<std::string> words(1);
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) != 0) {
            words.back() += static_cast<char>(std::tolower(byte));
        } else if (!words.back().empty()) {
            words.emplace_back();
        }
    }
    if (words.back().empty()) words.pop_back();
    return words;
}

bool is_same_gpu_model(std::string_view name, std::string_view other) {
    return model_words(name) == model_words(other);
}

const Gpu* find_gpu_by_name(const std::vector<Gpu>& gpus, std::string_view device_name,
                            int64_t memory_bytes) {
    const Gpu* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const Gpu& gpu : gpus) {
        if (!is_same_gpu_model(gpu.name, device_name)) continue;
        const double distance =
            memory_bytes <= 0
                ? 0
                : std::abs(gpu.usable_memory_bytes.value / static_cast<double>(memory_bytes) - 1);
        if (memory_bytes > 0 && distance > kSameMemory) continue;
        if (distance < least) best = &gpu;
        least = std::min(least, distance);
    }
    return best;
}

std::string predicted_device_name(const Gpu& gpu, std::string_view setup_id) {
    return gpu.name + " with " + std::string(setup_id);
}

}  // namespace profiler
