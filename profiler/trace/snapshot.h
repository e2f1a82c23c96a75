#pragma once

#include "profiler/trace/sqlite.h"

#include <filesystem>
#include <vector>

/// Opening a trace for reading without writing beside it. Private to profiler/trace.
namespace profiler::sqlite {

/// A consistent state of a trace file, also of one that is being written or whose writer died.
///
///     beside the file          how it is opened
///     no write-ahead log       immutable: no locks, no side files, works in read-only folders
///     -wal and -shm            with a read-only -shm: what a live or dead writer has committed
///     -wal alone               a private copy of both, since the index of the log must be rebuilt
class Snapshot {
  public:
    explicit Snapshot(const std::filesystem::path& path);
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;

    Database& database() { return *database_; }
    /// Another connection to the same file, so that two threads can read at once.
    Database connect() const { return Database(uri_, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI); }
    int64_t size_bytes() const { return size_bytes_; }  // of the file and its log

  private:
    bool try_open(const std::string& uri);

    std::string uri_;
    std::filesystem::path copy_;  // folder of the private copy, if any
    std::unique_ptr<Database> database_;
    int64_t size_bytes_ = 0;
};

/// `path` with the suffix that SQLite gives to a file beside it: "-wal", "-shm", "-journal".
std::filesystem::path side_file(const std::filesystem::path& path, const char* suffix);

}  // namespace profiler::sqlite
