#include "profiler/planner/data/gpu_name.h"

#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

namespace profiler {
namespace {

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
