#pragma once

#include "profiler/trace/page_scan.h"
#include "profiler/trace/sqlite.h"

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

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
    int64_t size_bytes() const { return size_bytes_; }  // of the file and its log

    /// The pages of a file without a log; null otherwise.
    PageFile* pages() { return pages_.get(); }
    /// First page of a table whose columns are `id` and these, in this order; 0 otherwise.
    uint32_t root_page(std::string_view table, std::span<const std::string_view> columns);

private:
    void open(const std::string& uri);
    bool try_open(const std::string& uri);

    std::filesystem::path copy_;  // folder of the private copy, if any
    std::unique_ptr<Database> database_;
    std::unique_ptr<PageFile> pages_;
    int64_t size_bytes_ = 0;
};

/// `path` with the suffix that SQLite gives to a file beside it: "-wal", "-shm", "-journal".
std::filesystem::path side_file(const std::filesystem::path& path, const char* suffix);

}  // namespace profiler::sqlite
