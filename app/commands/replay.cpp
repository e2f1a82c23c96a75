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
#include <span>
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
    std::optional<profiler::ReplayReport> exact;  // of a snapshot
    std::vector<profiler::SettingsRun> rows;      // the file's own settings first
    std::size_t asked_row = 0;  // what the command line asks for; settings to try come after it
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

/// Without a limit nothing fails to fit.
std::optional<bool> fits(const SettingsRun& row) {
    if (row.fits() && !row.memory_limit_bytes) return std::nullopt;
    return row.fits();
}

nlohmann::json refused_json(const SettingsRun& row) {
    if (!row.refused) return nullptr;
    const RefusedRequest& refused = *row.refused;
    return {
        {"requested_bytes", refused.requested_bytes},
        {"is_served", refused.is_served},
        {"free_bytes", refused.free_bytes ? nlohmann::json(*refused.free_bytes) : nlohmann::json()},
        {"cached_pieces", refused.cached.num},
        {"cached_bytes", refused.cached.total_bytes},
        {"largest_cached_bytes", refused.cached.largest_bytes}};
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
    if (report.allocations == 0) {
        output.line("The file records no allocations, so there is nothing to place again.");
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

std::string cached_text(const CachedPieces& cached) {
    return fmt::format("; {} cached in {} pieces, the largest {}", format_bytes(cached.total_bytes),
                       format_count(cached.num), format_bytes(cached.largest_bytes));
}

/// `recorded_allocations` counts the events. The stream begins with blocks that were there before,
/// and may end with a request that was refused.
std::string out_of_memory_sentence(const SettingsRun& row, int64_t recorded_allocations) {
    const OutOfMemory& detail = row.out_of_memory->detail;
    const int64_t num_before =
        row.num_allocations - recorded_allocations - (row.refused.has_value() ? 1 : 0);
    return fmt::format(
        "Out of memory with {}{} after {} of {} allocations{}. A request of {} needed a segment of "
        "{}, but {} were free ({} allocated, {} reserved{}).",
        name_of(row.settings),
        row.memory_limit_bytes ? " and " + format_bytes(*row.memory_limit_bytes) : std::string(),
        format_count(row.allocations_done), format_count(row.num_allocations),
        num_before > 0 ? fmt::format("; the first {} were there when the recording began",
                                     format_count(num_before))
                       : std::string(),
        format_bytes(detail.requested_bytes), format_bytes(detail.asked_bytes),
        format_bytes(detail.free_bytes), format_bytes(detail.use.allocated_bytes),
        format_bytes(detail.use.reserved_bytes),
        row.refused && row.refused->cached.num > 0 ? cached_text(row.refused->cached)
                                                   : std::string());
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
    columns.push_back({.title = "fits", .value = [](const SettingsRun& row) {
                           const auto known = fits(row);
                           return !known ? kNoValue : *known ? "fits" : "does not fit";
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
        {"peak_allocated_bytes", document.rows[document.asked_row].peak.allocated_bytes},
        {"peak_reserved_bytes", document.rows[document.asked_row].peak.reserved_bytes},
        {"notes", document.notes},
        {"rows", json_rows(data_table(run_columns(), document.rows))}};
    for (std::size_t i = 0; i < document.rows.size(); ++i) {
        const SettingsRun& row = document.rows[i];
        const auto row_fits = fits(row);
        json["rows"][i]["out_of_memory"] = out_of_memory_json(row);
        json["rows"][i]["fits"] = row_fits ? nlohmann::json(*row_fits) : nlohmann::json();
        json["rows"][i]["refused_request"] = refused_json(row);
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
    if (const auto& refused = document.rows.front().refused) {
        output.line(fmt::format("The program ran out of memory when it asked for {}.",
                                format_bytes(refused->requested_bytes)));
    }
    output.line();
    output.table(rows_table(document.rows));
    for (const SettingsRun& row : std::span(document.rows).first(document.asked_row + 1)) {
        if (row.fits()) continue;
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

/// Rows beside that of the file's own settings: what the command line asks for, or, where a program
/// ran out of memory and nothing is asked, the settings that are worth a try.
void add_rows(ReplayDocument& document, const RequestStream& stream, const Asked& asked,
              const AllocatorSettings& own) {
    const auto try_settings = [&](const AllocatorSettings& settings) {
        return run_settings(stream,
                            {.settings = settings, .memory_limit_bytes = asked.memory_limit_bytes});
    };
    if (asked.is_something()) {
        const SettingsRun run = try_settings(asked.settings.value_or(own));
        const bool starts_differ =
            document.rows.front().from_recorded_start && !run.from_recorded_start;
        if (starts_differ && !stream.ends_refused) {
            // Only figures of runs with the same start can be compared.
            document.rows.push_back(
                run_settings(stream, {.settings = own, .from_recorded_start = false}));
        }
        document.rows.push_back(run);
        document.asked_row = document.rows.size() - 1;
        if (run.settings.gc_threshold > 0 && !run.memory_limit_bytes) {
            document.notes.push_back(
                "garbage_collection_threshold has no effect without a limit: add --memory-limit.");
        }
    } else if (stream.ends_refused) {
        for (const auto& settings : settings_to_try(stream.recorded_limit_bytes.has_value())) {
            if (settings != own) document.rows.push_back(try_settings(settings));
        }
    }
    const bool some_start_empty = !std::ranges::all_of(
        document.rows, [](const SettingsRun& row) { return row.from_recorded_start; });
    if (!stream.start.segments.empty() && some_start_empty) {
        document.notes.push_back(
            "Rows that start empty begin with the recorded blocks alone: the recorded segments are "
            "not of their kind, or exceed their limit. They may reserve less than the program "
            "would.");
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

/// Replays recorded actions: first as they were recorded, then under other settings.
Result<ReplayDocument> replay_recordings(const std::string& file,
                                         std::vector<AllocatorRecording> recordings,
                                         const Asked& asked) {
    const auto found =
        asked.device.empty() ? main_recording(recordings) : device_named(recordings, asked.device);
    if (found == nullptr) {
        return models::fail("{} has no events or segments of '{}': name another GPU (--device).",
                            file, asked.device);
    }
    AllocatorRecording& recording = recordings[static_cast<std::size_t>(found - recordings.data())];
    const bool tells_order = recording.settings.tie_order.has_value();
    recording.settings.tie_order = tie_order_of(recording);
    const AllocatorSettings settings = settings_of(recording.settings);
    const auto exact = replay(recording, settings);
    if (!exact) return models::fail("{} cannot be replayed: {}.", file, exact.error().message);

    ReplayDocument document{.file = file,
                            .source = "snapshot",
                            .device = fmt::format("cuda:{}", recording.device),
                            .events = exact->events,
                            .exact = *exact};
    const bool ran_out =
        std::ranges::count(recording.events, RecordedAction::kOom, &RecordedEvent::action) > 0;
    const auto devices = std::ranges::count_if(recordings, [](const AllocatorRecording& device) {
        return !device.events.empty() || !device.segments.empty();
    });
    if (devices > 1 && asked.device.empty()) {
        document.notes.push_back(
            fmt::format("The file holds {} devices; this is the one {} (--device).", devices,
                        ran_out ? "on which memory ran out" : "with the most events"));
    }
    if (!tells_order && recording.settings.tie_order == TieOrder::kBlockAge) {
        document.notes.push_back(
            "The file does not name its torch. Its blocks lie where the rule of torch 2.12 places "
            "them.");
    }
    document.rows.push_back({.settings = settings,
                             .from_recorded_start = true,
                             .peak = exact->peak,
                             .at_peak = exact->at_peak,
                             .num_segments = exact->num_segments_at_peak});
    if (!asked.is_something() && !ran_out) return document;
    const auto trace = trace_of({recording});
    if (!trace) return models::fail("{} cannot be replayed: {}.", file, trace.error().message);
    const auto stream = stream_to_failure(*trace, profiled_device(*trace));
    if (!stream) return models::fail("{} cannot be replayed: {}", file, stream.error().message);
    if (stream->ends_refused) document.rows = {run_settings(*stream, {.settings = settings})};
    add_rows(document, *stream, asked, settings);
    return document;
}

/// Replays the allocations of a trace of any source, or of a snapshot without segments, as requests
/// to a CUDA device.
Result<ReplayDocument> replay_trace(const std::string& file, const Asked& asked) {
    const auto named = open_trace(file, asked.device);
    if (!named) return tl::unexpected(named.error());
    const Trace& trace = *named->trace;
    const Id<Device> device = profiled_device(trace);
    const auto stream = stream_to_failure(trace, device);
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
    add_rows(document, *stream, asked, own);
    return document;
}

/// False of a run on the CPU, exported as a snapshot: its recorded addresses lie nowhere. Without
/// events there is nothing to place either.
bool can_be_compared(const AllocatorRecording& recording) {
    return recording.events.empty() || !recording.segments.empty() ||
           std::ranges::any_of(recording.events, [](const RecordedEvent& event) {
               return event.action >= RecordedAction::kSegmentAlloc &&
                      event.action <= RecordedAction::kSegmentUnmap;
           });
}

Outcome run_replay(const ReplayOptions& options, Output& output) {
    const auto asked = parse_options(options);
    if (!asked) return wrong_usage(asked.error());
    auto recordings = open_recordings(options.file);
    if (!recordings) return failed(recordings.error());
    const auto document = std::ranges::any_of(*recordings, can_be_compared)
                              ? replay_recordings(options.file, std::move(*recordings), *asked)
                              : replay_trace(options.file, *asked);
    if (!document) return failed(document.error());
    return emit(output, {.json = [&] { return replay_json(*document); },
                         .text = [&](Output& text) { print_replay(text, *document); }});
}

}  // namespace

void add_replay_command(CommandLine& line) {
    Command& command = line.add_command(
        "replay", "Say what other settings of PyTorch's CUDA allocator would do to a trace");
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
        "them? With other settings or a limit, their memory is shown too. If the program ran out\n"
        "of memory, the refused request is replayed too: which settings serve it?\n\n"
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
