#include "profiler/formats/parts/chosen_device.h"

#include "profiler/formats/parts/memory_actions.h"
#include "profiler/formats/parts/steps_and_phases.h"
#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace profiler {
namespace {

std::string_view name_of(const Trace& trace, Id<Device> device) {
    return trace.text(trace.devices.get<&Device::name>(device));
}

/// The notes on the start of the two devices exchange their codes, where both have one.
void exchange_start_states(Trace& trace, std::string_view from, std::string_view to) {
    std::vector<Id<Diagnostic>> first, other;
    const std::string code_of_other = fmt::format("{}{}", kStartStateOf, to);
    for (const Id<Diagnostic> note : trace.diagnostics.ids()) {
        const std::string_view code = trace.text(trace.diagnostics.get<&Diagnostic::code>(note));
        if (code == kStartState) first.push_back(note);
        if (code == code_of_other) other.push_back(note);
    }
    if (other.empty() && !trace.ops.empty()) return;  // events are numbered over all devices
    const auto set_code = [&](const std::vector<Id<Diagnostic>>& notes, const std::string& code) {
        const StringId id = trace.strings.intern(code);
        for (const auto note : notes) trace.diagnostics.set<&Diagnostic::code>(note, id);
    };
    set_code(first, fmt::format("{}{}", kStartStateOf, from));
    set_code(other, std::string(kStartState));
}

}  // namespace

void exchange_devices(Trace& trace, Id<Device> a, Id<Device> b) {
    if (a == b) return;
    Trace::for_each_table(trace, [&](std::string_view, auto& table) {
        table.for_each_column([&](const auto&, auto& values) {
            if constexpr (std::is_same_v<std::decay_t<decltype(values[0])>, Id<Device>>) {
                for (Id<Device>& device : values) {
                    device = device == a ? b : device == b ? a : device;
                }
            }
        });
    });
    trace.devices.for_each_column(
        [&](const auto&, auto& values) { std::swap(values[a.index()], values[b.index()]); });
}

models::Result<void> choose_device(Trace& trace, std::string_view name) {
    const Id<Device> first = profiled_device(trace);
    const bool has_gpu = !is_host(trace, first);
    std::vector<std::string_view> names;
    Id<Device> chosen;
    for (const Id<Device> device : trace.devices.ids()) {
        if (has_gpu && is_host(trace, device)) continue;
        names.push_back(name_of(trace, device));
        if (names.back() == name) chosen = device;
    }
    if (!chosen.valid()) {
        if (names.empty()) return models::fail("has no GPU to choose");
        return models::fail("has no {}'{}', only {}", has_gpu ? "GPU " : "", name,
                            fmt::join(names, ", "));
    }
    if (chosen == first) return {};
    const std::string before(name_of(trace, first));
    exchange_start_states(trace, before, name);
    exchange_devices(trace, first, chosen);
    const Id<Run> run(0);
    if (trace.text(trace.run().device_name) == before) {
        trace.runs.set<&Run::device_name>(run, trace.strings.intern(name));
    }
    if (is_joined_ranks(trace)) trace.runs.set<&Run::rank>(run, rank_in(name));
    const auto actions = memory_actions(trace, first);
    number_by_time(actions, trace.steps);
    number_by_time(actions, trace.phases);
    const bool counts_by_device = trace.ops.empty() || is_joined(trace);
    if (counts_by_device && !trace.phases.empty()) infer_categories(trace);
    note_other_devices(trace);
    return {};
}

}  // namespace profiler
