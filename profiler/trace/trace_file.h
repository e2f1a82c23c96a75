#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <filesystem>
#include <functional>
#include <memory>

/// Traces on disk: SQLite with the extension `.tscope` (docs/trace_format.md).
///
/// A capture writes `NAME.tscope.partial`, one transaction per step, and `finish` renames it to
/// `NAME.tscope`. A killed capture leaves the `.partial`, which opens like any other trace and
/// says "incomplete". Nothing unfinished ever stands under the final name.
namespace profiler {

inline constexpr int kTraceFormatVersion = 1;        // what is written
inline constexpr int kOldestTraceFormatVersion = 1;  // the oldest that is still read

struct ReadOptions {
    /// Called now and then with the share read so far, in [0, 1]; returning false stops the read.
    std::function<bool(double)> progress;
};

/// Reads a trace; `path` may be a `.tscope` or a `.tscope.partial`.
/// Errors: not there, not SQLite, another application's file, newer version, missing table,
/// truncated, an id out of range: one sentence with the path.
models::Result<Trace> read_trace(const std::filesystem::path& path, const ReadOptions& = {});

/// Whether a `.partial` holds what a capture committed: a step or a point of a sweep. True where
/// that cannot be read: what may be there is kept.
bool holds_committed_rows(const std::filesystem::path& partial);

/// Removes a `.partial` and what SQLite left beside it; not one that a living writer holds.
void remove_partial(const std::filesystem::path& partial);

/// Writes a whole trace in one transaction beside `path` and renames it there.
models::Result<void> write_trace(const Trace& trace, const std::filesystem::path& path);

/// Writes a trace while it is recorded.
class TraceWriter {
public:
    /// Creates `path` + ".partial". Fails when another writer holds it or the folder is not
    /// writable; a `.partial` that a killed capture left is set aside as `.partial.1`, never lost.
    static models::Result<TraceWriter> create(std::filesystem::path path);
    TraceWriter(TraceWriter&&) noexcept;
    TraceWriter& operator=(TraceWriter&&) noexcept;
    ~TraceWriter();  // without finish: the .partial stays, with what was committed

    /// Commits rows added or changed since the last commit, as one transaction, and marks them
    /// committed in `trace`. Errors: disk full, file removed.
    models::Result<void> commit(Trace& trace);

    /// Commits, sets the run's state to complete, leaves WAL, syncs and renames. Replaces an
    /// older file of the same name.
    models::Result<void> finish(Trace& trace);

private:
    struct Impl;
    explicit TraceWriter(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace profiler
