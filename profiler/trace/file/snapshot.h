#pragma once

#include "profiler/trace/file/page_scan.h"
#include "profiler/trace/file/sqlite.h"

#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>

/// Opens a trace for reading without writing files beside it. Private to profiler/trace.
namespace profiler::sqlite {

/// What is wrong with a file, without its name: "the table op is missing; repeat the capture".
class FileError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A consistent state of a trace file, even while it is being written or after its writer died.
///
///     beside the file          how it is opened
///     no write-ahead log       immutable: no locks, no side files, works in read-only folders
///     -wal and -shm            with a read-only -shm: shows what the writer has committed
///     -wal alone               a private copy of both, since the index of the log must be rebuilt
class Snapshot {
public:
    /// Throws Error, std::filesystem::filesystem_error, or FileError when there is no room for the
    /// private copy.
    explicit Snapshot(const std::filesystem::path& path);
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;

    Database& database() { return *database_; }
    int64_t size_bytes() const { return size_bytes_; }  // of the file and its log

    /// The pages of a file without a log; null otherwise. Each thread needs its own.
    std::unique_ptr<PageFile> open_pages() const;
    /// First page of the table, if its columns are `id` and then these in this order; else 0.
    uint32_t root_page(std::string_view table, std::span<const std::string_view> columns);

private:
    void open(const std::string& uri);
    bool try_open(const std::string& uri);
    void open_copy(const std::filesystem::path& path, const std::filesystem::path& log);

    std::unique_ptr<Database> database_;
    std::filesystem::path plain_file_;  // empty when the file has a log
    int64_t size_bytes_ = 0;
};

/// `path` with the suffix that SQLite gives to a file beside it: "-wal", "-shm", "-journal".
std::filesystem::path side_file(const std::filesystem::path& path, const char* suffix);

}  // namespace profiler::sqlite
