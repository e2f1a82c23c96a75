#include "app/commands/command.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/reports/replay_report.h"
#include "profiler/analysis/step/event_order.h"
#include "profiler/formats/snapshot/recorded_trace.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace app {
namespace {

using namespace profiler;
using models::Result;

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
    const auto devices =
        std::count_if(recordings.begin(), recordings.end(), [](const AllocatorRecording& device) {
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
