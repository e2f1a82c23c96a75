#include "profiler/trace/file/snapshot.h"

#include "profiler/trace/file/temporary_paths.h"
#include "profiler/trace/text.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace profiler::sqlite {
namespace fs = std::filesystem;
namespace {

int64_t size_of(const fs::path& path) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    return error ? 0 : static_cast<int64_t>(size);
}

/// $TMPDIR or /tmp. Messages name it even when it does not exist.
std::string temporary_folder() {
    std::error_code error;
    const fs::path folder = fs::temp_directory_path(error);
    if (!error) return folder.string();
    const char* named = std::getenv("TMPDIR");
    return named != nullptr ? named : "/tmp";
}

[[noreturn]] void cannot_copy(const std::string& reason) {
    throw FileError(
        fmt::format("its log has to be copied to {} first, which failed ({}); make room there, or "
                    "set TMPDIR to "
                    "a folder that has some",
                    temporary_folder(), reason));
}

}  // namespace

fs::path side_file(const fs::path& path, const char* suffix) { return path.string() + suffix; }

Snapshot::Snapshot(const fs::path& path) {
    const fs::path log = side_file(path, "-wal");
    size_bytes_ = size_of(path) + size_of(log);
    if (size_of(log) == 0) {
        open(file_uri(path.string(), "immutable=1"));
        plain_file_ = path;
        return;
    }
    // readonly_shm keeps SQLite from writing the index of the log, which is shared with the writer.
    // A writer that is just opening or closing may leave nothing to attach to. Then copy as well.
    std::error_code ignored;
    if (fs::exists(side_file(path, "-shm"), ignored) &&
        try_open(file_uri(path.string(), "readonly_shm=1"))) {
        return;
    }
    open_copy(path, log);
}

/// SQLite keeps the files of the copy open, so their names are needed for a moment only.
void Snapshot::open_copy(const fs::path& path, const fs::path& log) {
    const TemporaryFolder folder;
    if (!folder.exists()) cannot_copy(reason_of(folder.error()));
    const fs::path copy = folder / "trace", copy_of_log = folder / "trace-wal";
    const std::array removed{RemovedOnSignal(copy), RemovedOnSignal(copy_of_log),
                             RemovedOnSignal(folder / "trace-shm")};
    try {
        fs::copy_file(path, copy);
        fs::copy_file(log, copy_of_log);
        open(file_uri(copy.string(), "cache=private"));
        database_->integer("PRAGMA user_version");  // the first read writes the index of the log
    } catch (const fs::filesystem_error& error) {
        cannot_copy(error.code().message());
    } catch (const Error& error) {
        if (!error.disk_full()) throw;
        cannot_copy(reason_of(error.system_error() != 0 ? error.system_error() : ENOSPC));
    }
}

void Snapshot::open(const std::string& uri) {
    database_ = std::make_unique<Database>(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

bool Snapshot::try_open(const std::string& uri) {
    try {
        open(uri);
        database_->integer("PRAGMA user_version");  // the first read attaches to the log
        return true;
    } catch (const Error& error) {
        database_.reset();
        const int code = error.primary_code();
        // SQLITE_PROTOCOL: the index of a dead writer belongs to another log.
        if (code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_PROTOCOL ||
            error.busy()) {
            return false;
        }
        throw;
    }
}

std::unique_ptr<PageFile> Snapshot::open_pages() const {
    return plain_file_.empty() ? nullptr : PageFile::open(plain_file_);
}

uint32_t Snapshot::root_page(std::string_view table, std::span<const std::string_view> columns) {
    std::string expected = "id";
    for (const std::string_view column : columns) expected.append(",").append(column);
    const std::string actual =
        database_->text(fmt::format("SELECT group_concat(name, ',') FROM (SELECT name FROM "
                                    "pragma_table_xinfo('{}') ORDER BY cid)",
                                    table));
    if (actual != expected) return 0;
    return static_cast<uint32_t>(database_->integer(fmt::format(
        "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = '{}'", table)));
}

}  // namespace profiler::sqlite
