#include "profiler/analysis/step/idle_blocks.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace profiler {
namespace {

constexpr std::array kTrainingCategories{Category::kParameter, Category::kGradient,
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

bool all_kernels_have_ops(const Trace& trace) {
    return std::ranges::all_of(trace.kernels.column<&Kernel::op>(),
                               [](Id<Op> op) { return op.valid(); });
}

}  // namespace

std::optional<IdleBytes> idle_at_peak(const Trace& trace, const PeakReport& peak) {
    if (trace.op_tensors.empty() || !all_kernels_have_ops(trace)) return std::nullopt;
    const std::vector<bool> is_used = find_used_storages(trace);
    IdleBytes idle;
    for (const Id<Allocation> id : peak.live) {
        const Allocation block = trace.allocations[id];
        if (!block.storage.valid() || is_used[block.storage.index()]) continue;
        const Category category = trace.storages.get<&Storage::category>(block.storage);
        if (std::ranges::find(kTrainingCategories, category) == kTrainingCategories.end()) continue;
        idle.by_category[static_cast<std::size_t>(category)] += block.requested_bytes;
        idle.total_bytes += block.requested_bytes;
    }
    return idle;
}

std::string idle_sentence(const IdleBytes& idle) {
    std::vector<std::string> parts;
    for (const Category category : kTrainingCategories) {
        const int64_t bytes = idle.by_category[static_cast<std::size_t>(category)];
        if (bytes > 0) {
            parts.push_back(fmt::format("{} {}", name_of(category), format_bytes(bytes)));
        }
    }
    return fmt::format("The recorded steps do not use {} of what lives at the peak: {}.",
                       format_bytes(idle.total_bytes), fmt::join(parts, ", "));
}

}  // namespace profiler
