#include "profiler/analysis/compare/trained_parameters.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace profiler {
namespace {

constexpr std::string_view kEndOfGradient = ".grad";

}  // namespace

TrainedParameters trained_parameters_of(const Trace& trace) {
    TrainedParameters trained;
    std::vector<bool> is_seen(trace.storages.size());
    std::set<std::string_view> parameters, gradients;  // a gradient is made anew in each step
    for (const Tensor tensor : trace.tensors.rows()) {
        if (!tensor.storage.valid()) continue;
        const Storage storage = trace.storages[tensor.storage];
        const std::string_view name = trace.text(tensor.name);
        if (storage.category == Category::kGradient && name.ends_with(kEndOfGradient)) {
            gradients.insert(name.substr(0, name.size() - kEndOfGradient.size()));
        }
        if (storage.category != Category::kParameter || is_seen[tensor.storage.index()]) continue;
        is_seen[tensor.storage.index()] = true;
        parameters.insert(name);
        ++trained.count;
        trained.num_elements += storage.size_bytes / likely_element_bytes(tensor.dtype);
    }
    for (const std::string_view name : gradients) {
        trained.num_gradients += static_cast<int64_t>(parameters.contains(name));
    }
    return trained;
}

std::vector<std::string> differences(const TrainedParameters& a, const TrainedParameters& b) {
    std::vector<std::string> texts;
    if (a.count == 0 || b.count == 0) return texts;
    if (a.num_elements != b.num_elements) {
        texts.push_back(fmt::format("parameters ({} and {})", format_count(a.num_elements),
                                    format_count(b.num_elements)));
    }
    if (a.num_gradients == 0 || b.num_gradients == 0) return texts;
    const bool all_get_one = a.num_gradients == a.count && b.num_gradients == b.count;
    if (a.num_gradients != b.num_gradients && !all_get_one) {
        texts.push_back(fmt::format("parameters with a gradient ({} of {} and {} of {})",
                                    a.num_gradients, a.count, b.num_gradients, b.count));
    }
    return texts;
}

}  // namespace profiler
