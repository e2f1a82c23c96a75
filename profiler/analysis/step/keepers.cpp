#include "profiler/analysis/step/keepers.h"

#include <fmt/format.h>

namespace profiler {

Keepers::Keepers(const Trace& trace) : trace_(trace) {
    const auto event_of = [&](Id<Keeper> id) { return trace.keepers.get<&Keeper::event>(id); };
    for (const Id<Keeper> id : trace.keepers.ids()) {
        const Id<Allocation> allocation = trace.keepers.get<&Keeper::allocation>(id);
        if (!allocation.valid()) continue;
        std::vector<Id<Keeper>>& known = by_allocation_[allocation.value];
        if (!known.empty() && event_of(known.front()) < event_of(id)) known.clear();
        if (known.empty() || event_of(known.front()) == event_of(id)) known.push_back(id);
    }
}

const std::vector<Id<Keeper>>& Keepers::of(Id<Allocation> allocation) const {
    static const std::vector<Id<Keeper>> kNone;
    const auto found = by_allocation_.find(allocation.value);
    return found == by_allocation_.end() ? kNone : found->second;
}

std::string Keepers::text_of(Id<Allocation> allocation) const {
    std::string text;
    for (const Id<Keeper> id : of(allocation)) {
        if (!text.empty()) text += "; ";
        text += trace_.text(trace_.keepers.get<&Keeper::text>(id));
    }
    return text;
}

}  // namespace profiler
