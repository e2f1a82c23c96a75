#pragma once

#include "models/config/result.h"
#include "profiler/trace/allocator_recording.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/trace.h"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The one door for files. Everything that opens a file as a trace calls `open_trace`, which looks
/// up the file's format in a table.
///
/// To add a format: write its reader in one file of this folder, add a row to the table in
/// trace_formats.cpp, and add tests. No other code decides by a file's type.
namespace profiler {

struct TraceFormat {
    std::string_view name;                         // "Temposcope trace (.tscope)"
    std::span<const std::string_view> extensions;  // ".tscope": what a folder is searched for
    /// Whether a file whose first bytes these are (at most kFormatBytes) has this format.
    bool (*recognises)(std::string_view first_bytes) = nullptr;
    models::Result<Trace> (*read)(const std::filesystem::path&, const ReadOptions&) = nullptr;
    /// The allocator's own actions, one recording per device, for an exact replay. Null for a
    /// format that does not hold them.
    models::Result<std::vector<AllocatorRecording>> (*read_recordings)(
        const std::filesystem::path&) = nullptr;
};

inline constexpr std::size_t kFormatBytes = 4096;

/// The table.
std::span<const TraceFormat> trace_formats();

/// Reads a trace of any format.
/// Errors: the file is not there, has no known format, needs more memory than there is, or its
/// reader refuses it: one sentence with the path.
models::Result<Trace> open_trace(const std::filesystem::path& path, const ReadOptions& = {});

/// Reads the allocator's own actions; no recordings for a format that does not hold them.
/// Errors: as open_trace.
models::Result<std::vector<AllocatorRecording>> open_recordings(const std::filesystem::path& path);

/// The extensions of all formats: ".tscope", ...
std::vector<std::string> trace_extensions();

/// Whether the name ends with one of them.
bool has_trace_extension(const std::filesystem::path& path);

/// Whether the file holds a trace of any format, by its first bytes. Of JSON and pickles, which may
/// be anything, a key of the format must be among them.
bool holds_any_trace(const std::filesystem::path& path);

/// Whether a file of this name is a trace or a part of one: SQLite's files beside it, or a killed
/// capture that was set aside (".tscope.partial.1").
bool belongs_to_trace(const std::filesystem::path& path);

/// Where `temposcope run` says that memory ran out after the steps that it recorded in `trace`:
/// "train.oom.tscope" beside "train.tscope".
std::filesystem::path oom_trace_of(const std::filesystem::path& trace);

/// The traces of a folder, without those in folders inside it, ordered by name without extension:
/// "tempo" comes before "tempo-packed". An oom_trace_of another one is left out. May be none.
/// Errors: the folder cannot be read.
models::Result<std::vector<std::filesystem::path>> traces_in(const std::filesystem::path& folder);

}  // namespace profiler
