#include "profiler/formats/parts/import_notes.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace profiler {

bool is_memory_only(const Trace& trace) {
    return trace.ops.empty() && trace.kernels.empty() &&
           !(trace.allocations.empty() && trace.allocator_events.empty());
}

void note_allocations_only(Trace& trace) {
    if (!is_memory_only(trace)) return;
    const bool has_stacks = !trace.stacks.empty();
    const std::string_view contents =
        has_stacks ? "what the allocator did and the call stacks of its allocations, but no ops, "
                     "modules or saved tensors"
                   : "what the allocator did, but no ops, modules, saved tensors or call stacks";
    const std::string_view remedy =
        has_stacks ? " Group the peak by line to see which lines of code allocated." : "";
    const std::string_view consequence =
        trace.steps.empty() ? "So every block is of class \"unknown\", and the peak is over the "
                              "whole recording."
                            : "So blocks get a class only from the phase in which they were "
                              "allocated.";
    add_diagnostic(trace, {.code = kAllocationsOnly,
                           .explanation = fmt::format("The file holds {}. {}{}", contents,
                                                      consequence, remedy)});
}

void note_other_devices(Trace& trace) {
    std::set<int32_t> with_memory;
    for (const Id<Device> device : trace.allocations.column<&Allocation::device>()) {
        if (device.valid() && !is_host(trace, device)) with_memory.insert(device.value);
    }
    if (with_memory.size() < 2) return;
    const StringId analysed = trace.devices.get<&Device::name>(profiled_device(trace));
    const std::string explanation = fmt::format(
        "The file holds the memory of {} devices. Figures and pictures are of {}; name another one "
        "as the device of a command to see it.",
        with_memory.size(), trace.text(analysed));
    set_diagnostic(trace, {.code = "other_devices",
                           .severity = Severity::kWarning,
                           .count = static_cast<int64_t>(with_memory.size()) - 1,
                           .explanation = explanation});
}

}  // namespace profiler
