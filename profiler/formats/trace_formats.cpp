#include "profiler/formats/trace_formats.h"

#include "profiler/formats/kineto/kineto_trace.h"
#include "profiler/formats/parts/byte_stream.h"
#include "profiler/formats/snapshot/pytorch_snapshot.h"
#include "profiler/trace/file/readable_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>
#include <set>
#include <string>
#include <system_error>
#include <tuple>

namespace profiler {
namespace {

namespace fs = std::filesystem;
using models::Result;

constexpr std::array<std::string_view, 2> kTscopeExtensions{".tscope", ".tscope.partial"};
constexpr std::array<std::string_view, 1> kSnapshotExtensions{".pickle"};
// Not ".json" alone: folders of captures hold other JSON files.
constexpr std::array<std::string_view, 2> kProfilerExtensions{".pt.trace.json",
                                                              ".pt.trace.json.gz"};

constexpr std::array kFormats{
    TraceFormat{.name = "Temposcope trace (.tscope)",
                .extensions = kTscopeExtensions,
                .recognises = looks_like_trace,
                .read = read_trace},
    TraceFormat{.name = "PyTorch memory snapshot (torch.cuda.memory._dump_snapshot)",
                .extensions = kSnapshotExtensions,
                .recognises = looks_like_snapshot,
                .read = read_snapshot_trace,
                .read_recordings = read_snapshot_recordings},
    TraceFormat{.name = "trace of the PyTorch profiler (export_chrome_trace)",
                .extensions = kProfilerExtensions,
                .recognises = looks_like_profiler_trace,
                .read = read_profiler_trace},
};

bool has_extension(const TraceFormat& format, const fs::path& path) {
    const std::string name = path.filename().string();
    return std::ranges::any_of(format.extensions, [&](auto end) { return name.ends_with(end); });
}

/// Packed JSON and other pickles may be anything, so their content decides.
bool is_trace(const fs::path& path) {
    if (has_trace_extension(path)) return true;
    const std::string name = path.filename().string();
    return (name.ends_with(".pkl") || name.ends_with(".json.gz")) && holds_any_trace(path);
}

/// Whether a list of rows begins: [[time, action, bytes, category], ...
bool looks_like_memory_timeline(const std::string& text) {
    int end = 0;
    std::sscanf(text.c_str(), " [ [ %*d , %*d , %*d , %*d ]%n", &end);
    return end > 0;
}

/// The row for a file. An empty or unreadable file goes to the reader of its extension, which
/// explains what is wrong.
Result<const TraceFormat*> format_of(const fs::path& path) {
    const auto bytes = read_file_bytes(path, kFormatBytes);
    const bool is_packed_snapshot =
        bytes && !looks_like_snapshot(*bytes) && looks_like_snapshot(unpacked_beginning(*bytes));
    if (is_packed_snapshot) {
        return models::fail("{} is a packed memory snapshot: unpack it first, as with gunzip.",
                            path.string());
    }
    if (bytes && looks_like_memory_timeline(unpacked_beginning(*bytes))) {
        return models::fail(
            "{} is a raw memory timeline, which has no ops and no addresses: name the profiler's "
            "trace of the run (export_chrome_trace).",
            path.string());
    }
    const auto row = std::find_if(kFormats.begin(), kFormats.end(), [&](const TraceFormat& format) {
        const bool is_known = bytes && !bytes->empty();
        return is_known ? format.recognises(*bytes) : has_extension(format, path);
    });
    if (row != kFormats.end()) return &*row;
    if (!bytes) return tl::unexpected(bytes.error());
    std::vector<std::string_view> names;
    for (const TraceFormat& format : kFormats) names.push_back(format.name);
    return models::fail("{} is neither a {}: check the name, or write the file again.",
                        path.string(), fmt::join(names, " nor a "));
}

}  // namespace

std::span<const TraceFormat> trace_formats() { return kFormats; }

bool holds_any_trace(const fs::path& path) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return false;  // to open a pipe would wait
    const auto bytes = read_file_bytes(path, kFormatBytes);
    if (!bytes) return false;
    if (looks_like_trace(*bytes)) return true;
    const auto has = [](std::string_view text, std::string_view key) {
        return text.find(key) != std::string_view::npos;
    };
    if (looks_like_snapshot(*bytes)) {
        return has(*bytes, "segments") || has(*bytes, "device_traces");
    }
    const std::string text = unpacked_beginning(*bytes);
    return looks_like_profiler_trace(text) &&
           (has(text, "\"ph\"") || has(text, "\"schemaVersion\""));
}

Result<Trace> open_trace(const fs::path& path, const ReadOptions& options) try {
    const auto format = format_of(path);
    if (!format) return tl::unexpected(format.error());
    return (*format)->read(path, options);
} catch (const std::bad_alloc&) {
    return not_enough_memory(path);
}

Result<std::vector<AllocatorRecording>> open_recordings(const fs::path& path) try {
    const auto format = format_of(path);
    if (!format) return tl::unexpected(format.error());
    if ((*format)->read_recordings == nullptr) return std::vector<AllocatorRecording>{};
    return (*format)->read_recordings(path);
} catch (const std::bad_alloc&) {
    return not_enough_memory(path);
}

std::vector<std::string> trace_extensions() {
    std::vector<std::string> extensions;
    for (const TraceFormat& format : kFormats) {
        extensions.insert(extensions.end(), format.extensions.begin(), format.extensions.end());
    }
    return extensions;
}

bool has_trace_extension(const fs::path& path) {
    return std::any_of(kFormats.begin(), kFormats.end(),
                       [&](const TraceFormat& format) { return has_extension(format, path); });
}

bool belongs_to_trace(const fs::path& path) {
    const std::string whole = path.filename().string();
    std::string_view name = whole;
    if (name.find(".tscope.partial") != std::string_view::npos) return true;
    for (const std::string_view suffix : {"-wal", "-shm", "-journal"}) {
        if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
    }
    return has_trace_extension(name);
}

fs::path oom_trace_of(const fs::path& trace) {
    return fs::path(trace).replace_extension(".oom.tscope");
}

Result<std::vector<fs::path>> traces_in(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    // Not a range-based loop: its ++ throws when the folder goes away or the disk fails.
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (is_trace(entry->path())) files.push_back(entry->path());
    }
    if (error) {
        return models::fail("The folder {} cannot be read ({}): check its name and permissions.",
                            folder.string(), error.message());
    }
    std::set<fs::path> beside_others;
    for (const fs::path& file : files) beside_others.insert(oom_trace_of(file));
    std::erase_if(files, [&](const fs::path& file) { return beside_others.contains(file); });
    std::ranges::sort(files, {}, [](const fs::path& file) { return std::pair(file.stem(), file); });
    return files;
}

}  // namespace profiler
