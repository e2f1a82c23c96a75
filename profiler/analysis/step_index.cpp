#include "profiler/analysis/step_index.h"

#include "profiler/analysis/step/origin.h"

#include <future>

namespace profiler {

void StepIndex::compute() const {
    const auto begin = [](auto make) { return std::async(std::launch::async, std::move(make)); };
    const auto others = {begin([this] { calls(); }), begin([this] { modules(); }),
                         begin([this] { blocks(); }), begin([this] { curve(); })};
    report();
    storage_names();
    for (const auto& other : others) other.wait();
}

const StepReport& StepIndex::report() const {
    if (given_report_) return *given_report_;
    return report_.get([&] { return report_step(trace_); });
}

const std::vector<StringId>& StepIndex::storage_names() const {
    return storage_names_.get([&] { return names_of_storages(trace_); });
}

}  // namespace profiler
