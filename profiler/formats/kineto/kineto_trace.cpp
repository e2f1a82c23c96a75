#include "profiler/formats/kineto/kineto_trace.h"

#include "profiler/formats/kineto/kineto_events.h"
#include "profiler/formats/kineto/kineto_memory.h"
#include "profiler/formats/kineto/kineto_ops.h"
#include "profiler/formats/kineto/kineto_python.h"
#include "profiler/formats/parts/byte_stream.h"
#include "profiler/formats/parts/chosen_device.h"
#include "profiler/formats/parts/import_notes.h"
#include "profiler/formats/parts/kineto_steps.h"
#include "profiler/formats/parts/shift_times.h"
#include "profiler/trace/text.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace profiler {
namespace {

using kineto::KinetoEvents;
using models::Result;

/// Of every event but Python functions, which begin long before.
TimeRange times_of(const KinetoEvents& events) {
    TimeRange range;
    for (const auto& span : events.spans) {
        if (span.kind == kineto::SpanKind::kPython) continue;
        range.add(span.start_ns);
        range.add(span.end_ns);
    }
    for (const auto& work : events.work) {
        range.add(work.start_ns);
        range.add(work.end_ns);
    }
    for (const auto& change : events.memory) range.add(change.time_ns);
    return range;
}

/// A value beside the events. Its texts live as long as the object.
class SideValue {
public:
    SideValue(const KinetoEvents& events, std::string_view key) {
        const auto found = events.values.find(key);
        if (found == events.values.end()) return;
        simdjson::dom::element element;
        if (parser_.parse(found->second).get(element) == simdjson::SUCCESS) element_ = element;
    }
    const std::optional<simdjson::dom::element>& get() const { return element_; }
    /// The number `key` of an object, also when it stands in quotes.
    std::optional<int64_t> number(std::string_view key) const {
        simdjson::dom::element member;
        if (!element_ || (*element_)[key].get(member) != simdjson::SUCCESS) return std::nullopt;
        return to_number(member);
    }
    std::optional<int64_t> number() const { return element_ ? to_number(*element_) : std::nullopt; }

private:
    static std::optional<int64_t> to_number(const simdjson::dom::element& element) {
        int64_t number = 0;
        if (element.get(number) == simdjson::SUCCESS) return number;
        std::string_view text;
        if (element.get(text) != simdjson::SUCCESS) return std::nullopt;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
        if (read.ec != std::errc()) return std::nullopt;
        return number;
    }
    simdjson::dom::parser parser_;
    std::optional<simdjson::dom::element> element_;
};

/// Names and sizes of the devices: deviceProperties.
void add_device_properties(const KinetoEvents& events, Trace& trace) {
    const SideValue properties(events, "deviceProperties");
    simdjson::dom::array devices;
    if (!properties.get() || properties.get()->get(devices) != simdjson::SUCCESS) return;
    for (const simdjson::dom::element device : devices) {
        int64_t number = 0, total_bytes = 0;
        if (device["id"].get(number) != simdjson::SUCCESS) continue;
        const std::string name = fmt::format("cuda:{}", number);
        for (std::size_t i = 0; i < trace.devices.size(); ++i) {
            if (trace.text(trace.devices.get<&Device::name>(Id<Device>(i))) != name) continue;
            const bool has_size = device["totalGlobalMem"].get(total_bytes) == simdjson::SUCCESS &&
                                  total_bytes > 0 && total_bytes < (int64_t{1} << 50);
            if (has_size) trace.devices.set<&Device::total_bytes>(Id<Device>(i), total_bytes);
            std::string_view model;
            const Id<Run> run(0);
            if (trace.runs.get<&Run::device_name>(run).valid()) continue;
            if (device["name"].get(model) != simdjson::SUCCESS || !is_utf8(model)) continue;
            trace.runs.set<&Run::device_name>(run, trace.strings.intern(model));
        }
    }
}

/// The versions that the file names, as a JSON object.
std::string software_of(const KinetoEvents& events) {
    std::string json;
    for (const std::string_view key :
         {"cuda_runtime_version", "cuda_driver_version", "hip_runtime_version",
          "hip_driver_version", "cupti_version"}) {
        const auto version = SideValue(events, key).number();
        if (version) json += fmt::format("{}\"{}\":{}", json.empty() ? "" : ",", key, *version);
    }
    return "{" + json + "}";
}

/// Wall clock at `first_ns`. Since 2024 times count from baseTimeNanoseconds, before from 1970.
int64_t unix_start_of(const KinetoEvents& events, int64_t first_ns) {
    const int64_t base_ns = SideValue(events, "baseTimeNanoseconds").number().value_or(0);
    const bool fits = base_ns >= 0 && base_ns < (int64_t{1} << 61) && first_ns >= 0;
    return fits ? base_ns + first_ns : 0;
}

void add_run(const KinetoEvents& events, int64_t first_ns, Trace& trace) {
    const SideValue distributed(events, "distributedInfo");
    trace.runs.append({.source = Source::kImported,
                       .time_basis = TimeBasis::kMeasured,
                       .state = RunState::kComplete,
                       .software = trace.strings.intern(software_of(events)),
                       .rank = distributed.number("rank").value_or(0),
                       .world_size = distributed.number("world_size").value_or(1),
                       .start_unix_ns = unix_start_of(events, first_ns)});
}

void add_notes(const KinetoEvents& events, Trace& trace) {
    add_diagnostic(trace, {.code = "skipped_events",
                           .count = events.unknown_events,
                           .explanation = "Events of kinds that Temposcope does not know, or "
                                          "without possible values, are left out."});
    add_diagnostic(trace, {.code = "ended_early",
                           .severity = Severity::kWarning,
                           .count = events.ended_early ? 1 : 0,
                           .explanation = "The list of events has no end: the profiler may have "
                                          "been killed, and later events are missing."});
}

}  // namespace

bool looks_like_profiler_trace(std::string_view first_bytes) {
    const std::string unpacked = unpacked_beginning(first_bytes);
    const std::string_view text = without_byte_order_mark(unpacked);
    const auto skip_space = [&](std::size_t at) {
        return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    };
    const std::size_t first = skip_space(0);
    if (first == text.size()) return false;
    const std::size_t second = skip_space(first + 1);
    if (second == text.size()) return false;
    return text[first] == '{' ? text[second] == '"' : text[first] == '[' && text[second] == '{';
}

Result<Trace> read_profiler_trace(const std::filesystem::path& path, const ReadOptions& options) {
    Trace trace;
    auto events = kineto::read_events(path, options, trace.strings);
    if (!events) return tl::unexpected(events.error());
    const auto [first_ns, last_ns] = times_of(*events);
    if (events->empty() || first_ns > last_ns) {
        return models::fail(
            "{} holds no ops, kernels or memory events of the PyTorch profiler; export it again "
            "with export_chrome_trace.",
            path.string());
    }
    if (last_ns > first_ns + kMostNanosecondsApart) {
        return models::fail(
            "{} has events {} days apart, so a time in it is wrong; export it again.",
            path.string(),
            static_cast<int64_t>((static_cast<double>(last_ns) - static_cast<double>(first_ns)) /
                                 86'400e9));
    }
    add_run(*events, first_ns, trace);
    kineto::OpRows ops(*events, first_ns, trace);
    ops.add();
    kineto::MemoryRows memory(*events, first_ns, ops, trace);
    memory.add();
    kineto::add_steps(trace, [&](int64_t time_ns) { return memory.event_at(time_ns); });
    kineto::add_python(*events, first_ns, ops, memory.call_stacks(), trace);
    kineto::infer_categories(trace);
    add_device_properties(*events, trace);
    add_notes(*events, trace);
    note_allocations_only(trace);
    note_other_devices(trace);
    if (options.progress && !options.progress(1)) {
        return models::fail("Reading {} was cancelled.", path.string());
    }
    return trace;
}

}  // namespace profiler
