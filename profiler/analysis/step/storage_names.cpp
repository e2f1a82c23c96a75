#include "profiler/analysis/step/storage_names.h"

namespace profiler {

std::vector<StringId> names_of_storages(const Trace& trace) {
    std::vector<StringId> names(trace.storages.size());
    const auto storage = trace.tensors.column<&Tensor::storage>();
    const auto name = trace.tensors.column<&Tensor::name>();
    for (std::size_t i = 0; i < storage.size(); ++i) {
        if (!storage[i].valid()) continue;
        StringId& known = names[storage[i].index()];
        if (trace.text(known).empty()) known = name[i];
    }
    return names;
}

}  // namespace profiler
