#include "profiler/formats/parts/memory_actions.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <tuple>

namespace profiler {

namespace {

/// Adds each action to the list that `list_of` names for its device; null: to none.
template <typename ListOf>
void collect(const Trace& trace, ListOf list_of) {
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        std::vector<MemoryAction>* const list = list_of(a.device);
        if (list == nullptr) continue;
        const auto row = static_cast<uint32_t>(i);
        list->push_back({a.alloc_event, a.alloc_ns, row, MemoryAction::kAlloc});
        if (a.free_requested_event < 0) continue;
        list->push_back({a.free_requested_event, a.free_requested_ns, row, MemoryAction::kFree});
    }
    for (std::size_t i = 0; i < trace.allocator_events.size(); ++i) {
        const AllocatorEvent event = trace.allocator_events[Id<AllocatorEvent>(i)];
        std::vector<MemoryAction>* const list = list_of(event.device);
        if (list == nullptr) continue;
        list->push_back(
            {event.event, event.time_ns, static_cast<uint32_t>(i), MemoryAction::kSegment});
    }
}

void sort_actions(std::vector<MemoryAction>& actions) {
    std::ranges::sort(actions, {}, [](const MemoryAction& action) {
        return std::tuple(action.event, action.kind, action.row);
    });
}

}  // namespace

std::vector<MemoryAction> memory_actions(const Trace& trace, Id<Device> device) {
    std::vector<MemoryAction> actions;
    collect(trace, [&](Id<Device> of) { return of == device ? &actions : nullptr; });
    sort_actions(actions);
    return actions;
}

ActionsByDevice::ActionsByDevice(const Trace& trace) : lists_(trace.devices.size() + 1) {
    collect(trace, [&](Id<Device> device) { return &lists_[place_of(device)]; });
    for (std::vector<MemoryAction>& actions : lists_) sort_actions(actions);
}

int64_t event_at(std::span<const MemoryAction> actions, int64_t time_ns) {
    const auto found = std::ranges::lower_bound(actions, time_ns, {}, &MemoryAction::time_ns);
    if (found != actions.end()) return found->event;
    return actions.empty() ? 0 : actions.back().event + 1;
}

std::vector<int64_t> device_numbers(const Trace& trace) {
    std::vector<int64_t> by_name, by_order;
    std::set<int64_t> numbers_of_gpus;
    int64_t num_gpus = 0;
    for (const Id<Device> device : trace.devices.ids()) {
        const std::string_view name = trace.text(trace.devices.get<&Device::name>(device));
        const auto colon = name.find(':');
        int64_t number = 0;
        if (colon != std::string_view::npos) {
            std::from_chars(name.data() + colon + 1, name.data() + name.size(), number);
        }
        by_name.push_back(std::clamp<int64_t>(number, 0, 1023));
        by_order.push_back(num_gpus);
        if (is_host(trace, device)) continue;
        numbers_of_gpus.insert(by_name.back());
        ++num_gpus;
    }
    return std::ssize(numbers_of_gpus) == num_gpus ? by_name : by_order;
}

}  // namespace profiler
