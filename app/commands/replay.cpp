#include "profiler/allocator/replay.h"
#include "app/commands/command.h"
#include "app/commands/console/report.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "profiler/allocator/settings_run.h"
#include "profiler/formats/snapshot/recorded_trace.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace app {
namespace {

using namespace profiler;
using models::Result;

// ---- text and JSON ------------------------------------------------------------------------------

struct ReplayDocument {
    std::string file;
    std::string source;  // "snapshot" or "trace"
    std::string device;  // "cuda:0"
    int64_t events = 0;
    std::optional<profiler::ReplayReport> exact;  // none for a trace, which has no addresses
    std::vector<profiler::SettingsRun> rows;      // the last is what the command line asks for
    std::vector<std::string> notes;
};

nlohmann::json out_of_memory_json(const SettingsRun& row) {
    if (!row.out_of_memory) return nullptr;
    const OutOfMemory& detail = row.out_of_memory->detail;
    return {{"allocations_done", row.allocations_done},
            {"requested_bytes", detail.requested_bytes},
            {"asked_bytes", detail.asked_bytes},
            {"free_bytes", detail.free_bytes},
            {"allocated_bytes", detail.use.allocated_bytes},
            {"reserved_bytes", detail.use.reserved_bytes}};
}

void print_exactness(Output& output, const ReplayReport& report) {
    if (report.events == 0) {
        output.line(
            output.styled("The snapshot has no history, so there is nothing to replay. Before the "
                          "steps to record, "
                          "call",
                          Style::kWarning));
        output.line("  torch.cuda.memory._record_memory_history()");
        return;
    }
    output.line(report.is_exact()
                    ? output.styled("Replayed exactly as recorded:", Style::kGood)
                    : output.styled("The replay differs from the recording:", Style::kWarning));
    output.line(fmt::format("  {} of {} allocations at the recorded address ({})",
                            format_count(report.address_matches), format_count(report.allocations),
                            format_percent(report.address_match_rate())));
    const std::string segment_events =
        report.segment_events == 0
            ? "the file records no segment events"
            : fmt::format("{} of {} segment events", format_count(report.segment_event_matches),
                          format_count(report.segment_events));
    output.line(fmt::format("  {}, {}", segment_events,
                            report.final_state_matches
                                ? "equal segments and blocks at the end"
                                : "different segments or blocks at the end"));
    if (!report.first_difference.empty()) output.line("  " + report.first_difference);
}

/// `recorded_allocations` counts the events. The stream begins with blocks that were there before.
std::string out_of_memory_sentence(const SettingsRun& row, int64_t recorded_allocations) {
    const OutOfMemory& detail = row.out_of_memory->detail;
    return fmt::format(
        "Out of memory with {}{} after {} of {} allocations{}. A request of {} needed a segment of "
        "{}, but {} were free ({} allocated, {} reserved).",
        name_of(row.settings),
        row.memory_limit_bytes ? " and " + format_bytes(*row.memory_limit_bytes) : std::string(),
        format_count(row.allocations_done), format_count(row.num_allocations),
        recorded_allocations < row.num_allocations
            ? fmt::format("; the first {} are those that were there when the recording began",
                          format_count(row.num_allocations - recorded_allocations))
            : std::string(),
        format_bytes(detail.requested_bytes), format_bytes(detail.asked_bytes),
        format_bytes(detail.free_bytes), format_bytes(detail.use.allocated_bytes),
        format_bytes(detail.use.reserved_bytes));
}

/// The keys of a row of JSON, and the titles of the table.
const std::vector<TableColumn<SettingsRun>>& run_columns() {
    using enum Unit;
    using Row = SettingsRun;
    const auto fragmentation = [](const Row& row) {
        return Simulation::fragmentation_of(row.at_peak);
    };
    static const std::vector<TableColumn<Row>> kColumns{
        {"settings", "settings", kText, "", [](const Row& row) { return to_text(row.settings); },
         [](const Row& row) { return name_of(row.settings); }},
        {"memory_limit_bytes", "limit", kBytes, "",
         [](const Row& row) { return row.memory_limit_bytes.value_or(-1); },
         [](const Row& row) { return text_of(kBytes, row.memory_limit_bytes); }},
        {"start", "start", kText, "",
         [](const Row& row) { return row.from_recorded_start ? "recorded" : "empty"; },
         [](const Row& row) { return row.from_recorded_start ? "as recorded" : "empty"; }},
        {"peak_allocated_bytes", "peak allocated", kBytes, "",
         [](const Row& row) { return row.peak.allocated_bytes; }},
        {"peak_reserved_bytes", "peak reserved", kBytes, "",
         [](const Row& row) { return row.peak.reserved_bytes; }},
        {"segments", "segments", kCount, "", &Row::num_segments},
        {"fragmentation_ratio", "fragmentation", kShare, "", fragmentation},
        {"retries", "retries", kCount, "", &Row::num_retries,
         [](const Row& row) { return text_of(kCount, known(row.num_retries)); }},
        {.id = "peak_active_bytes", .value = [](const Row& row) { return row.peak.active_bytes; }},
        {.id = "peak_inactive_split_bytes",
         .value = [](const Row& row) { return row.peak.inactive_split_bytes; }}};
    return kColumns;
}

TextTable rows_table(const std::vector<SettingsRun>& rows) {
    std::vector<TableColumn<SettingsRun>> columns = run_columns();
    std::erase_if(columns, [](const auto& column) { return column.title.empty(); });
    columns.push_back({.title = "out of memory", .value = [](const SettingsRun& row) {
                           return row.out_of_memory ? "yes" : kNoValue;
                       }});
    return text_table(columns, rows);
}

nlohmann::json replay_json(const ReplayDocument& document) {
    const auto& exact = document.exact;
    const auto known = [&](auto value) -> nlohmann::json {
        return exact ? nlohmann::json(value(*exact)) : nlohmann::json();
    };
    nlohmann::json json{
        {"file", document.file},
        {"source", document.source},
        {"device", document.device},
        {"events", document.events},
        {"address_matches", known([](const ReplayReport& r) { return r.address_matches; })},
        {"address_match_rate", known([](const ReplayReport& r) { return r.address_match_rate(); })},
        {"segment_events", known([](const ReplayReport& r) { return r.segment_events; })},
        {"segment_event_matches",
         known([](const ReplayReport& r) { return r.segment_event_matches; })},
        {"final_state_matches", known([](const ReplayReport& r) { return r.final_state_matches; })},
        {"first_difference", known([](const ReplayReport& r) { return r.first_difference; })},
        {"peak_allocated_bytes", document.rows.back().peak.allocated_bytes},
        {"peak_reserved_bytes", document.rows.back().peak.reserved_bytes},
        {"notes", document.notes},
        {"rows", json_rows(data_table(run_columns(), document.rows))}};
    for (std::size_t i = 0; i < document.rows.size(); ++i) {
        json["rows"][i]["out_of_memory"] = out_of_memory_json(document.rows[i]);
    }
    return json;
}

void print_replay(Output& output, const ReplayDocument& document) {
    output.line(output.styled(document.file, Style::kBold));
    output.line(fmt::format(
        "{}, {}, {} events",
        document.source == "snapshot" ? "PyTorch memory snapshot" : "allocation stream of a trace",
        document.device, format_count(document.events)));
    output.line();
    if (document.exact) {
        print_exactness(output, *document.exact);
    } else {
        output.line("Placed as a CUDA device would have placed it.");
    }
    output.line();
    output.table(rows_table(document.rows));
    for (const SettingsRun& row : document.rows) {
        if (!row.out_of_memory) continue;
        output.line(out_of_memory_sentence(
            row, document.exact ? document.exact->allocations : row.num_allocations));
    }
    output.line(output.styled(
        "Fragmentation: the share of the reserved memory that is not allocated, at the peak.",
        Style::kDim));
    output.line(output.styled(
        "Allocated: whole blocks; temposcope info counts the requested bytes in them.",
        Style::kDim));
    for (const std::string& note : document.notes) output.line("Note: " + note);
}

struct ReplayOptions {
    std::string file;
    std::string alloc_conf;
    bool has_alloc_conf = false;
    std::string memory_limit;
    std::string device;
};

/// What the command line asks for on top of the settings of the file.
struct Asked {
    std::optional<AllocatorSettings> settings;  // none: the settings of the file
    std::optional<int64_t> memory_limit_bytes;
    std::string device;

    bool is_something() const { return settings || memory_limit_bytes; }
};

Result<Asked> parse_options(const ReplayOptions& options) {
    Asked asked;
    asked.device = options.device;
    if (options.has_alloc_conf) {
        const auto settings = parse_alloc_conf(options.alloc_conf);
        if (!settings) return tl::unexpected(settings.error());
        asked.settings = *settings;
    }
    if (!options.memory_limit.empty()) {
        const auto bytes = parse_bytes(options.memory_limit);
        if (!bytes) return tl::unexpected(bytes.error());
        if (*bytes == 0) {
            return models::fail("--memory-limit is 0: give the memory of a device, such as 16GiB.");
        }
        asked.memory_limit_bytes = *bytes;
    }
    if (asked.settings && asked.settings->memory_fraction < 1 && !asked.memory_limit_bytes) {
        return models::fail(
            "per_process_memory_fraction is a share of the device's memory: give that memory with "
            "--memory-limit.");
    }
    return asked;
}

void add_asked_row(ReplayDocument& document, const RequestStream& stream, const Asked& asked,
                   const AllocatorSettings& own_settings) {
    const AllocatorSettings settings = asked.settings.value_or(own_settings);
    document.rows.push_back(run_settings(
        stream, {.settings = settings, .memory_limit_bytes = asked.memory_limit_bytes}));
    if (settings.gc_threshold > 0 && !asked.memory_limit_bytes) {
        document.notes.push_back(
            "garbage_collection_threshold has no effect without a limit: add --memory-limit.");
    }
}

const AllocatorRecording* device_named(const std::vector<AllocatorRecording>& recordings,
                                       std::string_view name) {
    const auto found = std::ranges::find_if(recordings, [&](const AllocatorRecording& device) {
        const bool is_empty = device.events.empty() && device.segments.empty();
        return !is_empty && name == fmt::format("cuda:{}", device.device);
    });
    return found == recordings.end() ? nullptr : &*found;
}

/// Replays recorded actions: first as they were recorded, then from an empty allocator under both
/// settings, because only runs with the same start can be compared.
Result<ReplayDocument> replay_recordings(const std::string& file,
                                         const std::vector<AllocatorRecording>& recordings,
                                         const Asked& asked) {
    const auto found =
        asked.device.empty() ? busiest_of(recordings) : device_named(recordings, asked.device);
    if (found == nullptr) {
        return models::fail("{} has no events or segments of '{}': name another GPU (--device).",
                            file, asked.device);
    }
    const AllocatorRecording& recording = *found;
    const AllocatorSettings settings = settings_of(recording.settings);
    const auto exact = replay(recording, settings);
    if (!exact) return models::fail("{} cannot be replayed: {}.", file, exact.error().message);

    ReplayDocument document{.file = file,
                            .source = "snapshot",
                            .device = fmt::format("cuda:{}", recording.device),
                            .events = exact->events,
                            .exact = *exact};
    document.rows.push_back({.settings = settings,
                             .from_recorded_start = true,
                             .peak = exact->peak,
                             .at_peak = exact->at_peak,
                             .num_segments = exact->num_segments_at_peak});
    const auto devices = std::ranges::count_if(recordings, [](const AllocatorRecording& device) {
        return !device.events.empty() || !device.segments.empty();
    });
    if (devices > 1 && asked.device.empty()) {
        document.notes.push_back(fmt::format(
            "The file holds {} devices; this is the one with the most events (--device).",
            devices));
    }
    if (!asked.is_something()) return document;
    const auto stream = request_stream_of(recording, settings);
    if (!stream) return models::fail("{} cannot be replayed: {}.", file, stream.error().message);
    document.rows.push_back(run_settings(*stream, {.settings = settings}));
    add_asked_row(document, *stream, asked, settings);
    return document;
}

/// Replays the allocations of a trace of any source, as requests to a CUDA device.
Result<ReplayDocument> replay_trace(const std::string& file, const Asked& asked) {
    const auto named = open_trace(file, asked.device);
    if (!named) return tl::unexpected(named.error());
    const Trace& trace = *named->trace;
    const Id<Device> device = profiled_device(trace);
    const auto stream = request_stream_of(trace, device);
    if (!stream) return models::fail("{}: {}", file, stream.error().message);
    if (stream->requests.empty()) {
        return models::fail("{} holds no allocations to replay; capture a step first.", file);
    }
    const auto settings = parse_alloc_conf(trace.text(trace.run().allocator_settings));
    ReplayDocument document{
        .file = file,
        .source = "trace",
        .device = std::string(device.valid() ? trace.text(trace.devices.get<&Device::name>(device))
                                             : std::string_view("cpu")),
        .events = static_cast<int64_t>(stream->requests.size())};
    const AllocatorSettings own = settings.value_or(AllocatorSettings{});
    document.rows.push_back(run_settings(*stream, {.settings = own}));
    if (asked.is_something()) add_asked_row(document, *stream, asked, own);
    return document;
}

Outcome run_replay(const ReplayOptions& options, Output& output) {
    const auto asked = parse_options(options);
    if (!asked) return wrong_usage(asked.error());
    const auto recordings = open_recordings(options.file);
    if (!recordings) return failed(recordings.error());
    const auto document = recordings->empty()
                              ? replay_trace(options.file, *asked)
                              : replay_recordings(options.file, *recordings, *asked);
    if (!document) return failed(document.error());
    return emit(output, {.json = [&] { return replay_json(*document); },
                         .text = [&](Output& text) { print_replay(text, *document); }});
}

}  // namespace

void add_replay_command(CommandLine& line) {
    Command& command = line.add_command(
        "replay", "What PyTorch's CUDA allocator does with a snapshot's or a trace's allocations");
    auto options = std::make_shared<ReplayOptions>();
    command.add({.names = "FILE",
                 .help = "PyTorch memory snapshot (torch.cuda.memory._dump_snapshot), or a trace",
                 .is_required = true},
                &options->file);
    command.add({.names = "--alloc-conf",
                 .help = "other settings, as PYTORCH_CUDA_ALLOC_CONF takes them",
                 .value_name = "SETTINGS",
                 .may_be_empty = true},
                &options->alloc_conf);
    command.add({"--memory-limit", "a device with this much memory, such as 16GiB", "SIZE"},
                &options->memory_limit);
    command.add(device_option(), &options->device);
    command.footer(
        "A snapshot is first replayed under its own settings: do all blocks lie where PyTorch put\n"
        "them? With other settings or a limit, memory under them is shown beside.\n\n"
        "Examples:\n"
        "  temposcope replay snapshot.pickle\n"
        "  temposcope replay snapshot.pickle --alloc-conf expandable_segments:True\n"
        "  temposcope replay out/tempo.tscope --memory-limit 16GiB --json\n");
    command.on_run([options, &command](Output& output) {
        options->has_alloc_conf = command.is_given("--alloc-conf");
        return run_replay(*options, output);
    });
}

}  // namespace app
