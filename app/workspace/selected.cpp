#include "app/workspace/selected.h"

#include "profiler/view/activity_view.h"

#include <limits>

namespace app {
namespace {

/// From the clock of A or B to the axis of A.
profiler::TimeMap map_of(bool in_b, const profiler::Alignment* alignment) {
    return in_b && alignment ? alignment->second : profiler::TimeMap();
}

}  // namespace

SelectedTensor select(const profiler::LedgerViewRow& row, const Document& document,
                      const profiler::Alignment* alignment) {
    const bool in_b = row.presence == profiler::Presence::kAdded;
    SelectedTensor tensor{.storage = row.storage,
                          .name = row.tensor,
                          .module_path = row.module_path,
                          .size_bytes = in_b ? row.other_bytes : row.size_bytes,
                          .in_b = in_b};
    if (!row.allocation.valid()) return tensor;
    const auto& allocations = document.trace->allocations;
    const auto alloc_ns = allocations.get<&profiler::Allocation::alloc_ns>(row.allocation);
    const auto free_ns = allocations.get<&profiler::Allocation::free_requested_ns>(row.allocation);
    const profiler::TimeMap map = map_of(in_b, alignment);
    tensor.alloc_ns = map.to_shared(static_cast<double>(alloc_ns));
    if (free_ns >= 0) tensor.free_ns = map.to_shared(static_cast<double>(free_ns));
    tensor.num_kernels = document.activity.count_kernels(
        alloc_ns, free_ns >= 0 ? free_ns : std::numeric_limits<int64_t>::max());
    return tensor;
}

SelectedActivity select(const PickedActivity& picked, const Document& document,
                        const profiler::Alignment* alignment) {
    const profiler::Trace& trace = *document.trace;
    const profiler::TimeMap map = map_of(picked.in_b, alignment);
    const auto span = profiler::span_of(trace, picked.id);
    SelectedActivity activity{.id = picked.id,
                              .in_b = picked.in_b,
                              .name = profiler::short_name(profiler::name_of(trace, picked.id)),
                              .range = {map.to_shared(static_cast<double>(span.start_ns)),
                                        map.to_shared(static_cast<double>(span.end_ns))}};
    return activity;
}

}  // namespace app
