#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace profiler {
namespace {

constexpr std::string_view kOfRank = " of rank ";

}  // namespace

bool has_note(const Trace& trace, std::string_view code) { return find_note(trace, code).valid(); }

Id<Diagnostic> find_note(const Trace& trace, std::string_view code) {
    for (const Id<Diagnostic> row : trace.diagnostics.ids()) {
        if (trace.text(trace.diagnostics.get<&Diagnostic::code>(row)) == code) return row;
    }
    return {};
}

int64_t later_peak_bytes(const Trace& trace) {
    const Id<Diagnostic> note = find_note(trace, kLaterPeak);
    return note.valid() ? trace.diagnostics.get<&Diagnostic::count>(note) : 0;
}

double time_error_of(const Trace& trace) {
    for (const Diagnostic row : trace.diagnostics.rows()) {
        if (trace.text(row.code) == kPredictedTimes) return static_cast<double>(row.count) / 100;
        if (trace.text(row.code) == kTimesNotCalibrated) return 0.2;
    }
    return 0;
}

bool is_joined(const Trace& trace) { return has_note(trace, kJoined); }
bool is_joined_ranks(const Trace& trace) { return has_note(trace, kJoinedRanks); }

std::string name_of_rank(std::string_view name, int64_t rank) {
    return fmt::format("{}{}{}", name, kOfRank, rank);
}

int64_t rank_in(std::string_view name) {
    const auto found = name.rfind(kOfRank);
    int64_t rank = -1;
    if (found != std::string_view::npos) {
        std::from_chars(name.data() + found + kOfRank.size(), name.data() + name.size(), rank);
    }
    return rank;
}

OpsOfRank::OpsOfRank(const Trace& trace) : trace_(trace) {
    if (!is_joined_ranks(trace)) return;
    for (const StringId name : trace.threads.column<&Thread::name>()) {
        is_of_rank_.push_back(rank_in(trace.text(name)) == trace.run().rank);
    }
}

int64_t num_start_events(const Trace& trace) {
    return num_start_events(trace, profiled_device(trace));
}

int64_t num_start_events(const Trace& trace, Id<Device> device) {
    std::string code(kStartState);
    if (device.valid() && device != profiled_device(trace)) {
        code = fmt::format("{}{}", kStartStateOf,
                           trace.text(trace.devices.get<&Device::name>(device)));
    }
    for (const Diagnostic note : trace.diagnostics.rows()) {
        if (trace.text(note.code) == code) return note.count;
    }
    return 0;
}

bool has_numbers_of_phases(const Trace& trace, Id<Device> device) {
    if (!device.valid() || device == profiled_device(trace)) return true;
    const bool is_profilers = trace.run().source == Source::kImported && !trace.ops.empty();
    return is_profilers && !is_joined(trace) && !is_joined_ranks(trace);
}

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
