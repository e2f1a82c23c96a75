#include "profiler/analysis/step/idle_blocks.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

namespace profiler {
namespace {

constexpr std::array kOfTraining{Category::kParameter, Category::kGradient,
                                 Category::kOptimizerState};

std::vector<bool> find_used_storages(const Trace& trace) {
    std::vector<bool> is_used(trace.storages.size());
    for (const Id<Tensor> tensor : trace.op_tensors.column<&OpTensor::tensor>()) {
        if (!tensor.valid()) continue;
        const Id<Storage> storage = trace.tensors.get<&Tensor::storage>(tensor);
        if (storage.valid()) is_used[storage.index()] = true;
    }
    return is_used;
}

}  // namespace

CategoryBytes idle_at_peak(const Trace& trace, const PeakReport& peak) {
    CategoryBytes idle{};
    if (trace.op_tensors.empty()) return idle;
    const std::vector<bool> is_used = find_used_storages(trace);
    for (const Id<Allocation> id : peak.live) {
        const Allocation block = trace.allocations[id];
        if (!block.storage.valid() || is_used[block.storage.index()]) continue;
        const Category category = trace.storages.get<&Storage::category>(block.storage);
        idle[static_cast<std::size_t>(category)] += block.requested_bytes;
    }
    CategoryBytes of_training{};
    for (const Category category : kOfTraining) {
        const auto i = static_cast<std::size_t>(category);
        of_training[i] = idle[i];
    }
    return of_training;
}

std::string idle_sentence(const CategoryBytes& idle) {
    const int64_t total_bytes = std::accumulate(idle.begin(), idle.end(), int64_t{0});
    if (total_bytes == 0) return {};
    std::string text = fmt::format("The recorded steps do not use {} of what lives at the peak:",
                                   format_bytes(total_bytes));
    for (const Category category : kOfTraining) {
        const int64_t bytes = idle[static_cast<std::size_t>(category)];
        if (bytes == 0) continue;
        text += fmt::format("{} {} {}", text.ends_with(':') ? "" : ",", name_of(category),
                            format_bytes(bytes));
    }
    return text + ".";
}

}  // namespace profiler
