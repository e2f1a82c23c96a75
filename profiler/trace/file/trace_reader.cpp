#include "profiler/trace/file/readable_file.h"
#include "profiler/trace/file/schema.h"
#include "profiler/trace/file/snapshot.h"
#include "profiler/trace/file/sqlite.h"
#include "profiler/trace/file/table_reader.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/text.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace profiler {
namespace fs = std::filesystem;
using models::fail;
using models::Result;
using sqlite::Database;
using sqlite::Snapshot;
using sqlite::Statement;

namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);

/// The first bytes of an SQLite file (SQLite file format, 1.3).
class FileHeader {
public:
    static constexpr std::size_t kBytes = 100;

    explicit FileHeader(const fs::path& path) {
        std::ifstream file(path, std::ios::binary);
        file.read(reinterpret_cast<char*>(bytes_.data()), kBytes);
        num_read_ = static_cast<std::size_t>(file.gcount());
    }

    std::size_t num_read() const { return num_read_; }
    bool is_cut_short() const {
        return num_read_ < kBytes && kMagic.starts_with(magic().substr(0, num_read_));
    }
    bool is_whole() const { return num_read_ == kBytes && magic() == kMagic; }

    /// Whether a writer began the file and did not end it in order.
    bool expects_log() const { return is_whole() && byte(18) == 2; }
    /// None when the file does not say it: the number of pages at 28 counts only when the change
    /// counter at 24 equals the one at 92.
    std::optional<int64_t> promised_bytes() const {
        if (!is_whole() || word(24) != word(92)) return std::nullopt;
        const int64_t page_bytes = byte(16) << 8 | byte(17);
        return word(28) * (page_bytes == 1 ? 65536 : page_bytes);
    }

private:
    std::string_view magic() const {
        return {reinterpret_cast<const char*>(bytes_.data()), kMagic.size()};
    }
    int64_t byte(std::size_t offset) const { return bytes_[offset]; }
    int64_t word(std::size_t offset) const {
        return byte(offset) << 24 | byte(offset + 1) << 16 | byte(offset + 2) << 8 |
               byte(offset + 3);
    }

    std::array<unsigned char, kBytes> bytes_{};
    std::size_t num_read_ = 0;
};

/// Whether a log lies beside the file. SQLite takes no notice of one that does not begin as a log
/// does (SQLite file format, 4.1).
bool has_log(const fs::path& path) {
    std::array<char, 4> first{};
    std::ifstream(sqlite::side_file(path, "-wal"), std::ios::binary).read(first.data(), 4);
    const std::string_view magic(first.data(), first.size());
    return magic == "\x37\x7f\x06\x82" || magic == "\x37\x7f\x06\x83";
}

std::string log_name(const fs::path& path) {
    return sqlite::side_file(path, "-wal").filename().string();
}

/// A capture that is killed early leaves everything, the schema too, in the log beside the file.
struct LogMissing {};

void check_header(Database& db, bool expects_log) {
    if (expects_log && db.integer("PRAGMA application_id") == 0 &&
        db.integer("SELECT count(*) FROM sqlite_master") == 0) {
        throw LogMissing();
    }
    if (db.integer("PRAGMA application_id") != schema::kApplicationId) {
        throw FileError("it is an SQLite file of another program; open a .tscope file");
    }
    const int64_t version = db.integer("PRAGMA user_version");
    if (version > kTraceFormatVersion) {
        throw FileError(
            fmt::format("its format is version {} and this Temposcope reads up to version {}; "
                        "update Temposcope",
                        version, kTraceFormatVersion));
    }
    if (version < kOldestTraceFormatVersion) {
        throw FileError(fmt::format(
            "its format is version {}, which is no longer read; repeat the capture", version));
    }
}

void check_table(Database& db, std::string_view table,
                 const std::vector<std::string_view>& columns) {
    if (!has_table(db, table)) damaged("the table {} is missing", table);
    Statement statement(db, fmt::format("SELECT count(*) FROM pragma_table_xinfo('{}') "
                                        "WHERE hidden = 0 AND name = ?1",
                                        table));
    for (const std::string_view column : columns) {
        sqlite3_bind_text(statement.get(), 1, column.data(), static_cast<int>(column.size()),
                          SQLITE_STATIC);
        if (!statement.step() || sqlite3_column_int64(statement.get(), 0) != 1) {
            damaged("the table {} lacks the column {}", table, column);
        }
        statement.reset();
    }
}

void check_schema(Database& db) {
    check_table(db, "string", {"id", "text"});
    const int64_t version = db.integer("PRAGMA user_version");
    const Trace trace;
    Trace::for_each_table(trace, [&]<typename Row>(std::string_view name, const Table<Row>& table) {
        // The file may be older than the table, which is then empty.
        if (table_since<Row>() > 1 && !has_table(db, name)) return;
        std::vector<std::string_view> columns{"id"};
        table.for_each_column([&](const auto& column, const auto&) {
            if (column.since <= version) columns.push_back(column.name);
        });
        check_table(db, name, columns);
    });
}

void read_strings(Database& db, std::size_t num_strings, StringTable& strings,
                  ReadProgress& progress) {
    Statement statement(db, "SELECT id, text FROM string ORDER BY id");
    std::size_t row = 0;
    while (statement.step()) {
        if (sqlite3_column_int64(statement.get(), 0) != static_cast<int64_t>(row)) {
            damaged("the rows of table string are not numbered from 0 without gaps");
        }
        if (sqlite3_column_type(statement.get(), 1) != SQLITE_TEXT) {
            damaged("table string, row {}: the text is of another type", row);
        }
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 1));
        if (text == nullptr) throw std::bad_alloc();
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement.get(), 1));
        if (!is_utf8({text, size})) damaged("table string, row {}: the text is not UTF-8", row);
        if (strings.intern({text, size}).index() != row)
            damaged("table string, row {}: the text repeats", row);
        ++row;
    }
    if (row != num_strings)
        damaged("table string has {} rows where {} were announced", row, num_strings);
    progress.add(row);
}

Trace read_tables(Snapshot& file, bool expects_log, const ReadOptions& options) {
    Database& db = file.database();
    db.execute("BEGIN");  // one state of the file, even if its writer continues
    check_header(db, expects_log);
    check_schema(db);
    const RowCounts counts(file);
    ReadProgress progress(options, counts.total());
    Trace trace;
    read_strings(db, counts.of<Text>(), trace.strings, progress);
    read_all_tables(file, counts, trace, progress);
    if (trace.runs.size() > 1) damaged("it holds {} runs instead of one", trace.runs.size());
    if (trace.runs.empty()) {
        throw FileError("its capture ended before the first step, and nothing is in it; repeat it");
    }
    return trace;
}

/// Refuses a file without a log that is shorter than its own header says.
Result<void> check_length(const fs::path& path) {
    std::error_code error;
    const fs::path log = sqlite::side_file(path, "-wal");
    if (fs::exists(log, error)) return {};
    // The name of the trace may be as long as names can be; then it has no log.
    if (error && error != std::errc::filename_too_long) throw fs::filesystem_error("", log, error);
    const FileHeader header(path);
    if (header.is_cut_short()) {
        return fail(
            "{} is truncated: its {} bytes are less than the header of a trace; copy it again or "
            "repeat the capture.",
            path.string(), header.num_read());
    }
    const auto size_bytes = static_cast<int64_t>(fs::file_size(path));
    const int64_t promised_bytes = header.promised_bytes().value_or(0);
    if (size_bytes >= promised_bytes) return {};
    return fail(
        "{} is truncated: it has only {} of its {} bytes; copy it again or repeat the capture.",
        path.string(), size_bytes, promised_bytes);
}

/// A log that is not there may hold the last steps of a killed capture.
void add_missing_log(const fs::path& path, Trace& trace) {
    add_diagnostic(trace, {.code = "missing_log",
                           .severity = Severity::kWarning,
                           .explanation = fmt::format(
                               "The log {} of this capture is missing or damaged, so its last "
                               "steps may be missing: put the log beside the file under this "
                               "name.",
                               log_name(path))});
}

tl::unexpected<models::Error> refused_by_sqlite(const fs::path& path, const sqlite::Error& error) {
    if (error.out_of_memory()) return not_enough_memory(path);
    switch (error.primary_code()) {
        case SQLITE_NOTADB:
            return fail(
                "{} is not a Temposcope trace: it is not an SQLite file; name a .tscope file.",
                path.string());
        case SQLITE_CANTOPEN:
        case SQLITE_PERM:
            return fail("Cannot open {}: {}; check the permissions of the file and its folder.",
                        path.string(),
                        error.system_error() != 0
                            ? std::generic_category().message(error.system_error())
                            : std::string(error.what()));
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return fail(
                "Cannot open {}: another program has locked it; close it there and try again.",
                path.string());
        default:
            break;
    }
    return fail("{} is damaged: {}; copy it again or repeat the capture.", path.string(),
                error.what());
}

/// Finds what is wrong with a path before SQLite opens it.
Result<void> check_path(const fs::path& path) {
    std::error_code error;
    const fs::path partial = path.string() + ".partial";
    if (!fs::exists(path, error) && fs::exists(partial, error)) {
        return fail("{} does not exist, but its capture left {}; open that.", path.string(),
                    partial.string());
    }
    if (auto readable = check_readable(path); !readable) return readable;
    if (fs::file_size(path, error) == 0 && !fs::exists(sqlite::side_file(path, "-wal"), error)) {
        return fail("{} is empty; repeat the capture.", path.string());
    }
    return {};
}

}  // namespace

bool looks_like_trace(std::string_view first_bytes) {
    const std::string_view magic = first_bytes.substr(0, kMagic.size());
    return !magic.empty() && kMagic.starts_with(magic);
}

bool holds_committed_rows(const fs::path& partial) {
    try {
        Snapshot file(partial);
        return file.database().integer("SELECT count(*) FROM run") > 0;
    } catch (const sqlite::Error& error) {
        return error.primary_code() != SQLITE_ERROR;  // this code means that there is no table yet
    } catch (const std::exception&) {
        return true;
    }
}

Result<Trace> read_trace(const fs::path& path, const ReadOptions& options) {
    if (auto found = check_path(path); !found) return tl::unexpected(found.error());
    try {
        if (auto whole = check_length(path); !whole) return tl::unexpected(whole.error());
        // Before SQLite opens the file: to close it again would release SQLite's locks.
        const bool expects_log = FileHeader(path).expects_log();
        const bool lacks_log = expects_log && !has_log(path);
        Snapshot file(path);
        Trace trace = read_tables(file, expects_log, options);
        const bool is_killed = trace.run().state == RunState::kIncomplete;
        if (is_killed && lacks_log) add_missing_log(path, trace);
        return trace;
    } catch (const LogMissing&) {
        return fail(
            "{} cannot be read: its log {} is missing or damaged; put it beside the file under "
            "this name, or repeat the capture.",
            path.string(), log_name(path));
    } catch (const FileError& error) {
        return fail("{} cannot be read: {}.", path.string(), error.what());
    } catch (const ReadCancelled&) {
        return fail("Reading {} was cancelled.", path.string());
    } catch (const sqlite::Error& error) {
        return refused_by_sqlite(path, error);
    } catch (const fs::filesystem_error& error) {
        return cannot_read(error.path1(), error.code().value());  // the file or its log
    } catch (const std::bad_alloc&) {
        return not_enough_memory(path);
    }
}

}  // namespace profiler
