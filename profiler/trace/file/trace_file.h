#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

/// Traces on disk: SQLite with the extension `.tscope` (docs/trace_format.md).
///
/// A capture writes `NAME.tscope.partial`, one transaction per step, and `finish` renames it to
/// `NAME.tscope`. A killed capture leaves the `.partial`, which opens like any other trace and
/// says "incomplete". The final name never belongs to an unfinished file.
namespace profiler {

inline constexpr int kTraceFormatVersion = 3;        // written
inline constexpr int kOldestTraceFormatVersion = 1;  // the oldest one that can be read

struct ReadOptions {
    /// Called from time to time with the share read so far, in [0, 1], on any thread, one call at a
    /// time. Returning false stops.
    std::function<bool(double)> progress;
};

/// Whether these are the first bytes of an SQLite file, which a trace is.
bool looks_like_trace(std::string_view first_bytes);

/// Reads a `.tscope` or a `.tscope.partial`. Files of any format: open_trace (formats/).
/// Errors: the file is not there, is not SQLite, belongs to another program, has a newer version,
/// is truncated, misses a table or has an id out of range: one sentence with the path.
models::Result<Trace> read_trace(const std::filesystem::path& path,
                                 const ReadOptions& options = {});

/// Whether a `.partial` holds what a capture committed: the run's row, with a step, a point of a
/// sweep, or the failure or unfinished step for which the file was opened. True when the file
/// cannot be read, so that nothing of value is deleted.
bool holds_committed_rows(const std::filesystem::path& partial);

/// Removes a `.partial` and SQLite's files beside it, unless a living writer holds it.
void remove_partial(const std::filesystem::path& partial);

/// Writes a whole trace in one transaction beside `path` and renames it there.
models::Result<void> write_trace(const Trace& trace, const std::filesystem::path& path);

/// Writes a trace while it is recorded.
class TraceWriter {
public:
    /// Creates `path` + ".partial". Renames a `.partial` that a killed capture left to
    /// `.partial.1`. Errors: another writer holds the file, the folder is not writable.
    static models::Result<TraceWriter> create(std::filesystem::path path);
    TraceWriter(TraceWriter&&) noexcept;
    TraceWriter& operator=(TraceWriter&&) noexcept;
    ~TraceWriter();  // without finish, the .partial stays with what was committed

    /// Commits the rows that were added or changed since the last commit, as one transaction.
    /// Each call gets the same trace, grown. Errors: disk full, file removed.
    models::Result<void> commit(const Trace& trace);

    /// Commits, sets the run's state, leaves write-ahead mode, syncs and renames. Replaces an older
    /// file of the same name. A program that ended before its last step leaves an incomplete run.
    models::Result<void> finish(Trace& trace, RunState state = RunState::kComplete);

private:
    struct Impl;
    explicit TraceWriter(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace profiler
