#include "profiler/formats/snapshot/pytorch_snapshot.h"

#include "profiler/formats/parts/byte_stream.h"
#include "profiler/formats/snapshot/plain_values.h"
#include "profiler/formats/snapshot/snapshot_fold.h"
#include "profiler/trace/available_memory.h"
#include "profiler/trace/keeper_json.h"
#include "profiler/trace/text.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <string>
#include <vector>

namespace profiler {
namespace {

using models::fail;
using models::Result;

/// Whatever is wrong with a snapshot, the same helps.
tl::unexpected<models::Error> unreadable_snapshot(std::string_view name, std::string_view problem) {
    return fail(
        "{} cannot be read as a PyTorch memory snapshot: {}; copy it again, or dump it again with "
        "torch.cuda.memory._dump_snapshot.",
        name, problem);
}

tl::unexpected<models::Error> not_a_snapshot(std::string_view name) {
    return fail(
        "{} is not a PyTorch memory snapshot: byte 0 begins no pickle of protocol 2 or later, and "
        "no snapshot as JSON; name a file that "
        "torch.cuda.memory._dump_snapshot wrote.",
        name);
}

Result<PytorchSnapshot> finish_snapshot(SnapshotFold& fold, const Result<PlainValue>& root,
                                        std::string_view name) {
    if (!root) return unreadable_snapshot(name, root.error().message);
    auto snapshot = fold.finish(*root);
    if (snapshot) return snapshot;
    return unreadable_snapshot(name, fmt::format("byte 0: {}", snapshot.error().message));
}

Result<PytorchSnapshot> parse_pickle(ByteWindow& window, std::string_view name) {
    SnapshotFold fold;
    const auto root = fold_pickle(window, fold);
    if (window.stopped()) return tl::unexpected(*window.stopped());
    return finish_snapshot(fold, root, name);
}

Result<PytorchSnapshot> parse_json(std::string json, std::string_view name,
                                   const ReadOptions& options = {}) {
    if (json.starts_with(kByteOrderMark)) json.erase(0, kByteOrderMark.size());
    SnapshotFold fold;
    bool cancelled = false;
    const auto root = fold_json(json, fold, [&](double share) {
        cancelled = options.progress && !options.progress(share);
        return !cancelled;
    });
    if (cancelled) return fail("Reading {} was cancelled.", name);
    return finish_snapshot(fold, root, name);
}

bool looks_like_pickle(std::string_view first_bytes) {
    return first_bytes.size() >= 2 && first_bytes[0] == '\x80' && first_bytes[1] >= 2 &&
           first_bytes[1] <= 5;
}

/// An object whose first key is one of a snapshot.
bool looks_like_json_snapshot(std::string_view first_bytes) {
    constexpr std::string_view kSpace = " \t\r\n";
    constexpr std::array<std::string_view, 5> kKeys{
        "segments", "device_traces", "allocator_settings", "external_annotations", "host_segments"};
    const auto skip = [&](std::string_view text) {
        return text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
    };
    std::string_view text = skip(without_byte_order_mark(first_bytes));
    if (!text.starts_with('{')) return false;
    text = skip(text.substr(1));
    return std::ranges::any_of(
        kKeys, [&](std::string_view key) { return text.starts_with(fmt::format("\"{}\"", key)); });
}

/// Refuses a file that this machine cannot hold, before it is read.
Result<void> check_memory(const std::filesystem::path& path, std::size_t size_bytes) {
    constexpr int64_t kBytesPerByte = 3;  // 2.3 to 2.9 were measured: docs/dev/measured.md
    const int64_t needed_bytes = kBytesPerByte * static_cast<int64_t>(size_bytes);
    const int64_t available_bytes = available_memory_bytes();
    if (available_bytes < 0 || needed_bytes <= available_bytes) return {};
    auto refused = fail(
        "{} has {}, and reading it may take {} of memory, of which {} are free; open it on a "
        "larger machine, or record less history (max_entries of "
        "torch.cuda.memory._record_memory_history) "
        "and dump it again.",
        path.string(), format_bytes(static_cast<int64_t>(size_bytes)), format_bytes(needed_bytes),
        format_bytes(available_bytes));
    refused.value().out_of_memory = true;
    return refused;
}

Result<PytorchSnapshot> read_snapshot(const std::filesystem::path& path,
                                      const ReadOptions& options) {
    const auto first_bytes = read_file_bytes(path, 2);
    if (!first_bytes) return tl::unexpected(first_bytes.error());
    std::error_code error;
    const std::uintmax_t size_bytes = std::filesystem::file_size(path, error);
    if (error) return fail("Cannot read {}: {}.", path.string(), error.message());
    if (auto fits = check_memory(path, size_bytes); !fits) return tl::unexpected(fits.error());
    if (!looks_like_pickle(*first_bytes)) {
        auto bytes = read_file_bytes(path);
        if (!bytes) return tl::unexpected(bytes.error());
        if (looks_like_json_snapshot(*bytes)) {
            return parse_json(std::move(*bytes), path.string(), options);
        }
        return not_a_snapshot(path.string());
    }
    auto stream = ByteStream::open(path);
    if (!stream) return tl::unexpected(stream.error());
    ByteWindow window(std::move(*stream), size_bytes, options.progress);
    return parse_pickle(window, path.string());
}

/// Blocks that are in use at the end, by address.
std::map<int64_t, Id<Allocation>> live_blocks(const Trace& trace) {
    std::map<int64_t, Id<Allocation>> live;
    for (const Id<Allocation> block : trace.allocations.ids()) {
        if (trace.allocations.get<&Allocation::free_requested_event>(block) >= 0) continue;
        live[trace.allocations.get<&Allocation::address>(block)] = block;
    }
    return live;
}

/// How many events there are. The last one is the snapshot itself.
int64_t num_events(const Trace& trace) {
    const auto events = trace.allocator_events.column<&AllocatorEvent::event>();
    return events.empty() ? 0 : *std::ranges::max_element(events) + 1;
}

/// The call stack of the newest failure, the outermost line first. No lines: as torch has it.
void set_failure_lines(const nlohmann::json& lines, Trace& trace) {
    const auto times_ns = trace.failures.column<&Failure::time_ns>();
    if (lines.empty() || times_ns.empty()) return;
    Id<Stack> stack;
    for (const nlohmann::json& line : lines) {
        const auto text = [&](const char* key) {
            return trace.strings.intern(line.at(key).get<std::string>());
        };
        const Id<Frame> frame = trace.frames.append({.function = text("function"),
                                                     .file = text("file"),
                                                     .line = line.at("line").get<int64_t>(),
                                                     .code = text("code")});
        stack = trace.stacks.append({.parent = stack, .frame = frame});
    }
    const auto newest = std::ranges::max_element(times_ns) - times_ns.begin();
    trace.failures.set<&Failure::stack>(Id<Failure>(static_cast<std::size_t>(newest)), stack);
}

/// The text of lines, which torch's snapshot has not.
void set_codes(const nlohmann::json& codes, Trace& trace) {
    std::map<std::pair<std::string, int64_t>, StringId> texts;
    for (const nlohmann::json& line : codes) {
        texts[{line.at("file").get<std::string>(), line.at("line").get<int64_t>()}] =
            trace.strings.intern(line.at("code").get<std::string>());
    }
    for (const Id<Frame> id : trace.frames.ids()) {
        const Frame frame = trace.frames[id];
        const auto found = texts.find({std::string(trace.text(frame.file)), frame.line});
        if (found != texts.end()) trace.frames.set<&Frame::code>(id, found->second);
    }
}

/// What temposcope.watch has added. Errors: it is damaged.
Result<void> add_watched(const std::string& watched, Trace& trace) try {
    if (watched.empty()) return {};
    using nlohmann::json;
    const json told = json::parse(watched);
    const Id<Run> run(0);
    const json command = told.at("command").get<std::vector<std::string>>();
    const json environment = told.at("environment").get<std::map<std::string, std::string>>();
    trace.runs.set<&Run::command>(run, trace.strings.intern(command.dump()));
    trace.runs.set<&Run::environment>(run, trace.strings.intern(environment.dump()));
    trace.runs.set<&Run::folder>(run, trace.strings.intern(told.at("folder").get<std::string>()));
    if (const auto torch = told.value("torch", std::string()); !torch.empty()) {
        trace.runs.set<&Run::software>(run, trace.strings.intern(json{{"torch", torch}}.dump()));
    }
    if (const auto gpu = told.value("gpu", std::string()); !gpu.empty()) {
        trace.runs.set<&Run::device_name>(run, trace.strings.intern(gpu));
    }
    if (const auto note = told.value("note", std::string()); !note.empty()) {
        add_diagnostic(
            trace, {.code = kRecordedByTorch, .severity = Severity::kWarning, .explanation = note});
    }
    const auto live = live_blocks(trace);
    const int64_t event = num_events(trace);
    for (const json& block : told.at("blocks")) {
        const auto found = live.find(block.at("address").get<int64_t>());
        if (found == live.end()) continue;
        for (const json& keeper : block.at("keepers")) {
            trace.keepers.append(keeper_from(keeper, found->second, event, trace.strings));
        }
    }
    set_codes(told.value("codes", json::array()), trace);
    set_failure_lines(told.value("lines", json::array()), trace);
    return {};
} catch (const std::exception& error) {
    return fail("what temposcope.watch has added is damaged ({})", error.what());
}

}  // namespace

const AllocatorRecording& PytorchSnapshot::main() const { return *main_recording(devices); }

Result<PytorchSnapshot> parse_pytorch_snapshot(std::string_view bytes, std::string_view name) {
    if (looks_like_json_snapshot(bytes)) return parse_json(std::string(bytes), name);
    if (!looks_like_pickle(bytes)) {
        return not_a_snapshot(name);
    }
    ByteWindow window(bytes);
    return parse_pickle(window, name);
}

Result<PytorchSnapshot> read_pytorch_snapshot(const std::filesystem::path& path) {
    return read_snapshot(path, {});
}

Result<Trace> read_snapshot_trace(const std::filesystem::path& path, const ReadOptions& options) {
    constexpr double kShareOfReading = 0.6;  // the rest makes rows
    ReadOptions reading;
    reading.progress = [&](double share) {
        return !options.progress || options.progress(kShareOfReading * share);
    };
    auto snapshot = read_snapshot(path, reading);
    if (!snapshot) return tl::unexpected(snapshot.error());
    snapshot->devices.push_back(std::move(snapshot->host));
    auto trace = trace_of(std::move(snapshot->devices), snapshot->annotations);
    if (!trace) return unreadable_snapshot(path.string(), trace.error().message);
    if (const auto ok = add_watched(snapshot->watched, *trace); !ok) {
        return unreadable_snapshot(path.string(), ok.error().message);
    }
    return trace;
}

Result<std::vector<AllocatorRecording>> read_snapshot_recordings(
    const std::filesystem::path& path) {
    auto snapshot = read_pytorch_snapshot(path);
    if (!snapshot) return tl::unexpected(snapshot.error());
    return std::move(snapshot->devices);
}

bool looks_like_snapshot(std::string_view first_bytes) {
    return looks_like_pickle(first_bytes) || looks_like_json_snapshot(first_bytes);
}

}  // namespace profiler
