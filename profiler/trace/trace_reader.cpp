#include "profiler/trace/schema.h"
#include "profiler/trace/snapshot.h"
#include "profiler/trace/sqlite.h"
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

constexpr std::size_t kProgressRows = 65536;

/// What is wrong with a file, without its name: "table op lacks the column flop".
class FileError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Cancelled : public std::exception {};

template <typename... Args>
[[noreturn]] void damaged(fmt::format_string<Args...> text, Args&&... args) {
    throw FileError(fmt::format(text, std::forward<Args>(args)...) +
                    "; copy it again or repeat the capture");
}

/// Rows of each table, known before any row is read so that ids can be checked while reading.
class RowCounts {
  public:
    RowCounts(Snapshot& file) : file_(file) {
        const Trace trace;
        num_strings_ = count("string", 1);
        Trace::for_each_table(
            trace, [&]<typename Row>(std::string_view name, const Table<Row>& table) {
                std::size_t num_columns = 0;
                table.for_each_column([&](const auto&, const auto&) { ++num_columns; });
                counts_.push_back(count(name, num_columns));
                total_ += counts_.back();
            });
        total_ += num_strings_;
    }

    template <typename Row>
    std::size_t of() const {
        if constexpr (std::is_same_v<Row, Text>) {
            return num_strings_;
        } else {
            return counts_[position<Row>()];
        }
    }
    std::size_t total() const { return total_; }

  private:
    template <typename Row>
    static std::size_t position() {
        std::size_t found = 0;
        std::size_t index = 0;
        const Trace trace;
        Trace::for_each_table(trace, [&](std::string_view, const auto& table) {
            if constexpr (std::is_same_v<std::decay_t<decltype(table)>, Table<Row>>) found = index;
            ++index;
        });
        return found;
    }

    /// Ids count from 0 without gaps, so the last one tells. A hostile id must not make us reserve
    /// memory: a row takes at least a byte per column and two of its own.
    std::size_t count(std::string_view table, std::size_t num_columns) {
        const int64_t rows = file_.database().integer(
            fmt::format("SELECT max(id) + 1 FROM {}", sqlite::quoted(table)));
        const int64_t most = file_.size_bytes() / static_cast<int64_t>(num_columns + 2);
        if (rows < 0 || rows > most || rows > std::numeric_limits<int32_t>::max()) {
            damaged("table {} has a row with the id {}", table, rows - 1);
        }
        return static_cast<std::size_t>(rows);
    }

    Snapshot& file_;
    std::vector<std::size_t> counts_;  // in file order
    std::size_t num_strings_ = 0;
    std::size_t total_ = 0;
};

void check_header(Database& db) {
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

/// Real tables only: a view or a virtual table of that name could compute forever.
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

class Progress {
  public:
    Progress(const ReadOptions& options, std::size_t total) : options_(options), total_(total) {}

    void add(std::size_t rows) {
        done_ += rows;
        const double share =
            total_ == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(total_);
        if (options_.progress && !options_.progress(share)) throw Cancelled();
    }

  private:
    const ReadOptions& options_;
    std::size_t total_;
    std::size_t done_ = 0;
};

void check_row_id(sqlite3_stmt* statement, std::string_view table, std::size_t row) {
    if (sqlite3_column_int64(statement, 0) != static_cast<int64_t>(row)) {
        damaged("the rows of table {} are not numbered from 0 without gaps", table);
    }
}

[[noreturn]] void wrong_type(std::string_view table, std::string_view column, std::size_t row) {
    damaged("table {}, row {}: the column {} has a value of the wrong type", table, row, column);
}

[[noreturn]] void out_of_range(std::string_view table, std::string_view column, std::size_t row,
                               int64_t value) {
    damaged("table {}, row {}: the column {} is {}, which does not exist", table, row, column,
            value);
}

/// Reads the rows of one table into its columns.
template <typename Row>
class RowReader {
  public:
    RowReader(Database& db, std::string_view name, const RowCounts& counts)
        : name_(name), counts_(counts), statement_(db, select(name)) {}

    void read(Table<Row>& table, Progress& progress) {
        const std::size_t num_rows = counts_.of<Row>();
        fill_limits(table);
        table.for_each_column([&](const auto&, auto& values) { values.resize(num_rows); });
        std::size_t row = 0;
        while (statement_.step()) {
            if (row == num_rows)
                damaged("the rows of table {} are not numbered from 0 without gaps", name_);
            check_row_id(statement_.get(), name_, row);
            int index = 1;
            table.for_each_column([&](const auto& column, auto& values) {
                read_value(column.name, index++, row, values[row]);
            });
            if (++row % kProgressRows == 0) progress.add(kProgressRows);
        }
        if (row != num_rows)
            damaged("table {} has {} rows where {} were announced", name_, row, num_rows);
        progress.add(row % kProgressRows);
    }

  private:
    static std::string select(std::string_view name) {
        std::string sql = "SELECT id";
        const Table<Row> table;
        table.for_each_column(
            [&](const auto& column, const auto&) { sql += ", " + sqlite::quoted(column.name); });
        return sql + " FROM " + sqlite::quoted(name) + " ORDER BY id";
    }

    /// The number of values that each id or enumeration column can take.
    void fill_limits(const Table<Row>& table) {
        limits_ = {0};
        table.for_each_column([&]<typename T>(const Column<Row, T>&, const auto&) {
            if constexpr (schema::is_id<T>) {
                limits_.push_back(
                    static_cast<int64_t>(counts_.of<typename schema::Reference<T>::Target>()));
            } else if constexpr (std::is_enum_v<T>) {
                limits_.push_back(static_cast<int64_t>(schema::names_of(T{}).size()));
            } else {
                limits_.push_back(0);
            }
        });
    }

    template <typename T>
    void read_value(std::string_view column, int index, std::size_t row, T& value) {
        sqlite3_stmt* const statement = statement_.get();
        const int type = sqlite3_column_type(statement, index);
        if constexpr (std::is_floating_point_v<T>) {
            if (type == SQLITE_FLOAT || type == SQLITE_INTEGER) {
                value = sqlite3_column_double(statement, index);
            } else if (type == SQLITE_NULL) {
                value = std::numeric_limits<T>::quiet_NaN();
            } else {
                wrong_type(name_, column, row);
            }
            return;
        } else {
            int64_t integer = -1;
            if (type == SQLITE_INTEGER) {
                integer = sqlite3_column_int64(statement, index);
            } else if (type != SQLITE_NULL) {
                wrong_type(name_, column, row);
            }
            if constexpr (schema::is_id<T> || std::is_enum_v<T>) {
                const bool none = schema::is_id<T> && integer == -1;
                if (!none && (integer < 0 || integer >= limits_[static_cast<std::size_t>(index)])) {
                    out_of_range(name_, column, row, integer);
                }
            }
            if constexpr (schema::is_id<T>) {
                value.value = static_cast<int32_t>(integer);
            } else {
                value = static_cast<T>(integer);
            }
        }
    }

    std::string_view name_;
    const RowCounts& counts_;
    Statement statement_;
    std::vector<int64_t> limits_;
};

void read_strings(Database& db, std::size_t num_strings, StringTable& strings, Progress& progress) {
    Statement statement(db, "SELECT id, text FROM string ORDER BY id");
    std::size_t row = 0;
    while (statement.step()) {
        check_row_id(statement.get(), "string", row);
        if (sqlite3_column_type(statement.get(), 1) != SQLITE_TEXT)
            wrong_type("string", "text", row);
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 1));
        if (text == nullptr) throw std::bad_alloc();
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement.get(), 1));
        if (strings.intern({text, size}).index() != row)
            damaged("table string, row {}: the text repeats", row);
        ++row;
    }
    if (row != num_strings)
        damaged("table string has {} rows where {} were announced", row, num_strings);
    progress.add(row);
}

/// Columns that point into their own table (a parent) must not form a ring: code follows them.
template <typename Row>
void check_no_rings(std::string_view name, const Table<Row>& table) {
    table.for_each_column([&]<typename T>(const Column<Row, T>& column, const auto& parents) {
        if constexpr (std::is_same_v<T, Id<Row>>) {
            std::vector<Id<Row>> seen_from(parents.size());  // the row whose walk came by first
            for (std::size_t row = 0; row < parents.size(); ++row) {
                const Id<Row> start(row);
                Id<Row> id = start;
                while (id.valid() && !seen_from[id.index()].valid()) {
                    seen_from[id.index()] = start;
                    id = parents[id.index()];
                }
                if (id.valid() && seen_from[id.index()] == start && parents[row].valid()) {
                    damaged("table {}, row {}: following the column {} never ends", name, row,
                            column.name);
                }
            }
        }
    });
}

Trace read_tables(Snapshot& file, const ReadOptions& options) {
    Database& db = file.database();
    db.execute("BEGIN");  // one state of the file, though its writer goes on
    check_header(db);
    check_schema(db);
    const RowCounts counts(file);
    Progress progress(options, counts.total());
    Trace trace;
    read_strings(db, counts.of<Text>(), trace.strings, progress);
    Trace::for_each_table(trace, [&]<typename Row>(std::string_view name, Table<Row>& table) {
        RowReader<Row>(db, name, counts).read(table, progress);
        check_no_rings(name, table);
    });
    if (trace.runs.size() > 1) damaged("it holds {} runs instead of one", trace.runs.size());
    return trace;
}

/// Bytes that the file's own header promises; 0 when the header is not SQLite's.
/// SQLite file format, 1.3: page size at offset 16, size of the database in pages at offset 28.
int64_t promised_bytes(const fs::path& path) {
    std::array<unsigned char, 100> header{};
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(header.data()), header.size());
    if (!file || std::string_view(reinterpret_cast<const char*>(header.data()), 16) !=
                     std::string_view("SQLite format 3\0", 16)) {
        return 0;
    }
    const auto byte = [&](std::size_t offset) { return static_cast<int64_t>(header[offset]); };
    const int64_t page_bytes = byte(16) << 8 | byte(17);
    const int64_t pages = byte(28) << 24 | byte(29) << 16 | byte(30) << 8 | byte(31);
    return pages * (page_bytes == 1 ? 65536 : page_bytes);
}

tl::unexpected<models::Error> cannot_read(const fs::path& path, const sqlite::Error& error) {
    switch (error.primary_code()) {
        case SQLITE_NOTADB:
            return fail(
                "{} is not a trace: it is no SQLite file; open a .tscope file, or bring other "
                "tools' "
                "files in with temposcope import.",
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
    std::error_code ignored;
    const auto size = static_cast<int64_t>(fs::file_size(path, ignored));
    if (!fs::exists(sqlite::side_file(path, "-wal")) && size < promised_bytes(path)) {
        return fail(
            "{} is truncated: {} of its {} bytes are there; copy it again or repeat the capture.",
            path.string(), size, promised_bytes(path));
    }
    return fail("{} is damaged: {}; copy it again or repeat the capture.", path.string(),
                error.what());
}

/// What can be said before SQLite looks at it.
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

}  // namespace

Result<Trace> read_trace(const fs::path& path, const ReadOptions& options) {
    if (auto found = check_path(path); !found) return tl::unexpected(found.error());
    try {
        Snapshot file(path);
        return read_tables(file, options);
    } catch (const FileError& error) {
        return fail("{} cannot be read: {}.", path.string(), error.what());
    } catch (const Cancelled&) {
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
