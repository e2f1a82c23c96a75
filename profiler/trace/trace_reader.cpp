#include "profiler/trace/schema.h"
#include "profiler/trace/snapshot.h"
#include "profiler/trace/sqlite.h"
#include "profiler/trace/table_reader.h"
#include "profiler/trace/text.h"
#include "profiler/trace/trace_file.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
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

struct OtherProgram : FileError {
    using FileError::FileError;
};

void check_header(Database& db) {
    if (db.integer("PRAGMA application_id") != schema::kApplicationId) {
        throw OtherProgram("it is an SQLite file of another program; open a .tscope file");
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

/// Accepts real tables only: a view or a virtual table of that name could compute forever.
void check_table(Database& db, std::string_view table,
                 const std::vector<std::string_view>& columns) {
    const int64_t is_table = db.integer(fmt::format(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = '{}'",
        table));
    if (is_table != 1) damaged("the table {} is missing", table);
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
    const Trace trace;
    Trace::for_each_table(trace, [&]<typename Row>(std::string_view name, const Table<Row>& table) {
        std::vector<std::string_view> columns{"id"};
        table.for_each_column(
            [&](const auto& column, const auto&) { columns.push_back(column.name); });
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

/// Columns that refer to their own table (a parent) must not form a ring, because code follows
/// them.
template <typename Row>
void check_no_rings(std::string_view name, const Table<Row>& table) {
    table.for_each_column([&]<typename T>(const Column<Row, T>& column, const auto& parents) {
        if constexpr (std::is_same_v<T, Id<Row>>) {
            std::vector<Id<Row>> seen_from(
                parents.size());  // the row from which the walk first reached it
            for (std::size_t row = 0; row < parents.size(); ++row) {
                const Id<Row> start(row);
                Id<Row> id = start;
                while (id.valid() && !seen_from[id.index()].valid()) {
                    seen_from[id.index()] = start;
                    id = parents[id.index()];
                }
                if (id.valid() && seen_from[id.index()] == start) {
                    damaged("table {}, row {}: following the column {} never ends", name, row,
                            column.name);
                }
            }
        }
    });
}

Trace read_tables(Snapshot& file, const ReadOptions& options) {
    Database& db = file.database();
    db.execute("BEGIN");  // one state of the file, even if its writer continues
    check_header(db);
    check_schema(db);
    const RowCounts counts(file);
    ReadProgress progress(options, counts.total());
    Trace trace;
    read_strings(db, counts.of<Text>(), trace.strings, progress);
    Trace::for_each_table(trace, [&]<typename Row>(std::string_view name, Table<Row>& table) {
        TableReader<Row>(file, name, counts).read(table, progress);
        check_no_rings(name, table);
    });
    if (trace.runs.size() > 1) damaged("it holds {} runs instead of one", trace.runs.size());
    if (trace.runs.empty()) {
        throw FileError("its capture ended before the first step, and nothing is in it; repeat it");
    }
    return trace;
}

/// Refuses a file without a log that is shorter than its own header says.
/// SQLite file format, 1.3: page size at offset 16, number of pages at 28, which counts when the
/// change counter at 24 equals the one at 92.
Result<void> check_length(const fs::path& path) {
    if (fs::exists(sqlite::side_file(path, "-wal"))) return {};
    std::array<unsigned char, 100> header{};
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(header.data()), header.size());
    const auto byte = [&](std::size_t offset) { return static_cast<int64_t>(header[offset]); };
    const auto word = [&](std::size_t offset) {
        return byte(offset) << 24 | byte(offset + 1) << 16 | byte(offset + 2) << 8 |
               byte(offset + 3);
    };
    const std::string_view magic(reinterpret_cast<const char*>(header.data()), kMagic.size());
    const auto num_read = static_cast<std::size_t>(file.gcount());
    if (num_read < header.size() && kMagic.starts_with(magic.substr(0, num_read))) {
        return fail(
            "{} is truncated: its {} bytes are less than the header of a trace; copy it again or "
            "repeat the capture.",
            path.string(), num_read);
    }
    if (!file || magic != kMagic || word(24) != word(92)) return {};  // left to SQLite
    const int64_t page_bytes = byte(16) << 8 | byte(17);
    const int64_t promised_bytes = word(28) * (page_bytes == 1 ? 65536 : page_bytes);
    const auto size_bytes = static_cast<int64_t>(fs::file_size(path));
    if (size_bytes >= promised_bytes) return {};
    return fail(
        "{} is truncated: it has only {} of its {} bytes; copy it again or repeat the capture.",
        path.string(), size_bytes, promised_bytes);
}

tl::unexpected<models::Error> cannot_read(const fs::path& path, const sqlite::Error& error) {
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
    if (fs::is_directory(path, error)) {
        return fail("{} is a folder; name a .tscope file in it.", path.string());
    }
    if (!fs::exists(path, error)) {
        const fs::path partial = path.string() + ".partial";
        if (fs::exists(partial, error)) {
            return fail("{} does not exist, but its capture left {}; open that.", path.string(),
                        partial.string());
        }
        return fail("{} does not exist; check the name.", path.string());
    }
    if (!fs::is_regular_file(path, error)) {
        return fail("{} is not a file; name a .tscope file.", path.string());
    }
    if (fs::file_size(path, error) == 0 && !fs::exists(sqlite::side_file(path, "-wal"))) {
        return fail("{} is empty; repeat the capture.", path.string());
    }
    return {};
}

/// A capture that is killed early leaves its first pages, and the schema, in the log beside the
/// file.
bool is_only_first_pages(const fs::path& path) {
    std::error_code error;
    constexpr uintmax_t kFewPages = 8 * 4096;
    return fs::file_size(path, error) <= kFewPages && !error;
}

std::string missing_log(const fs::path& path) {
    return fmt::format(
        "its log {} is missing or damaged; put it beside the file, or repeat the capture",
        sqlite::side_file(path, "-wal").filename().string());
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
        Snapshot file(path);
        return read_tables(file, options);
    } catch (const OtherProgram& error) {
        const bool is_killed = path.extension() == ".partial" && is_only_first_pages(path);
        return fail("{} cannot be read: {}.", path.string(),
                    is_killed ? missing_log(path) : error.what());
    } catch (const FileError& error) {
        return fail("{} cannot be read: {}.", path.string(), error.what());
    } catch (const ReadCancelled&) {
        return fail("Reading {} was cancelled.", path.string());
    } catch (const sqlite::Error& error) {
        return cannot_read(path, error);
    } catch (const fs::filesystem_error& error) {
        return fail("Cannot open {}: {}.", path.string(), error.code().message());
    } catch (const std::bad_alloc&) {
        return fail("Cannot open {}: there is not enough memory for it.", path.string());
    }
}

}  // namespace profiler
