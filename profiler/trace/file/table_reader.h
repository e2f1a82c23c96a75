#pragma once

#include "profiler/trace/file/page_scan.h"
#include "profiler/trace/file/schema.h"
#include "profiler/trace/file/snapshot.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/value_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// Reads and checks the rows of a trace file. Private to profiler/trace.
namespace profiler {

using sqlite::FileError;

template <typename... Args>
[[noreturn]] void damaged(fmt::format_string<Args...> text, Args&&... args) {
    throw FileError(fmt::format(text, std::forward<Args>(args)...) +
                    "; copy it again or repeat the capture");
}

/// Whether the file has the table: a view or a virtual table of that name could compute forever.
inline bool has_table(sqlite::Database& db, std::string_view name) {
    return db.integer(fmt::format("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND "
                                  "rootpage > 0 AND name = '{}'",
                                  name)) == 1;
}

class ReadCancelled : public std::exception {};

/// Reports progress to the caller of read_trace, from any thread.
class ReadProgress {
public:
    static constexpr std::size_t kInterval = 65536;  // rows

    ReadProgress(const ReadOptions& options, std::size_t total)
        : options_(options), total_(total) {}

    void add(std::size_t rows) {
        const std::scoped_lock lock(mutex_);
        done_ += rows;
        const double share = static_cast<double>(done_) / static_cast<double>(total_ + 1);
        if (options_.progress && !options_.progress(std::min(share, 1.0))) throw ReadCancelled();
    }

private:
    const ReadOptions& options_;
    std::size_t total_;
    std::mutex mutex_;
    std::size_t done_ = 0;
};

/// The number of rows of each table. It is known before any row is read, so that ids can be checked
/// while reading.
class RowCounts {
public:
    explicit RowCounts(sqlite::Snapshot& file) : file_(file) {
        num_strings_ = count("string", 1);
        total_ = num_strings_;
        const Trace trace;
        Trace::for_each_table(
            trace, [&]<typename Row>(std::string_view name, const Table<Row>& table) {
                std::size_t num_columns = 0;
                table.for_each_column([&](const auto&, const auto&) { ++num_columns; });
                counts_.push_back(count(name, num_columns));
                total_ += counts_.back();
            });
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

    /// Ids count from 0 without gaps, so the last one gives the count. A hostile id must not make
    /// the reader reserve memory: a row takes at least one byte per column and two more.
    std::size_t count(std::string_view table, std::size_t num_columns) {
        if (!has_table(file_.database(), table)) return 0;  // a newer one: check_schema knows
        const int64_t last = file_.database().integer(
            fmt::format("SELECT ifnull(max(id), -1) FROM {}", sqlite::quoted_name(table)));
        const int64_t most = std::min<int64_t>(
            file_.size_bytes() / static_cast<int64_t>(num_columns + 2), int64_t{1} << 31);
        if (last < -1 || last >= most) damaged("table {} has a row with the id {}", table, last);
        return static_cast<std::size_t>(last + 1);
    }

    sqlite::Snapshot& file_;
    std::vector<std::size_t> counts_;  // in file order
    std::size_t num_strings_ = 0;
    std::size_t total_ = 0;
};

enum class CellFault : uint8_t { kNone, kWrongType, kOutOfRange };

/// Stores the value of a cell; NULL means "none". `limit` is the number of values that an id or an
/// enumeration can have.
template <typename T>
CellFault store_integer(int64_t integer, bool is_null, int64_t limit, T& value) {
    if (is_null) integer = -1;
    if constexpr (std::is_floating_point_v<T>) {
        value = is_null ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(integer);
    } else if constexpr (schema::is_id<T>) {
        if (integer < -1 || integer >= limit) return CellFault::kOutOfRange;
        value.value = static_cast<int32_t>(integer);
    } else if constexpr (std::is_enum_v<T>) {
        if (integer < 0 || integer >= limit) return CellFault::kOutOfRange;
        value = static_cast<T>(integer);
    } else {
        value = integer;
    }
    return CellFault::kNone;
}

/// Refuses numbers that analyses could not add up. It makes one pass over each such column after
/// its table is read. Compilers vectorize this pass, so it costs little compared to the reading.
template <typename Row>
void check_ranges(std::string_view table_name, const Table<Row>& table) {
    table.for_each_column([&]<typename T>(const Column<Row, T>& column, const auto& values) {
        if constexpr (std::is_same_v<T, int64_t>) {
            const ValueRange range = range_of_column(column.name);
            if (range.holds_everything()) return;
            bool inside = true;
            for (const int64_t value : values) inside &= range.holds(value);
            if (!inside) {
                const auto bad = std::find_if_not(values.begin(), values.end(), [&](int64_t value) {
                    return range.holds(value);
                });
                damaged("table {}, row {}: the column {} is {}, which cannot be", table_name,
                        bad - values.begin(), column.name, *bad);
            }
            if (!range.is_summed) return;
            double sum = 0;
            for (const int64_t value : values) sum += static_cast<double>(value);
            if (sum > kMaxColumnSum) {
                damaged("table {}: the column {} adds up to {:.3g}, which cannot be", table_name,
                        column.name, sum);
            }
        }
    });
}

/// Reads one table from the pages (`scan`, on any thread) if it can, else through SQLite (`query`,
/// on the thread of the database). `scan` comes first.
template <typename Row>
class TableReader {
public:
    TableReader(sqlite::Snapshot& file, std::string_view name, const RowCounts& counts)
        : file_(file), name_(name), num_rows_(counts.of<Row>()) {
        const int64_t version = file.database().integer("PRAGMA user_version");
        const Table<Row> table;
        table.for_each_column([&]<typename T>(const Column<Row, T>& column, const auto&) {
            columns_.push_back(column.name);
            is_in_file_.push_back(column.since <= version);
            // An enumeration is never NULL: its first value is that of rows that say nothing.
            absent_.push_back(std::is_enum_v<T> ? "0" : "NULL");
            if constexpr (schema::is_id<T>) {
                using Target = typename schema::Reference<T>::Target;
                limits_.push_back(static_cast<int64_t>(counts.of<Target>()));
            } else if constexpr (std::is_enum_v<T>) {
                limits_.push_back(static_cast<int64_t>(schema::names_of(T{}).size()));
            } else {
                limits_.push_back(0);
            }
        });
        root_page_ = file_.root_page(name_, columns_);
    }

    std::size_t num_cells() const { return num_rows_ * (columns_.size() + 1); }  // with the id

    /// Makes room for the rows and reads them. False when the pages hold anything but plain rows of
    /// this table; the rows are then undefined.
    bool scan(sqlite::PageFile& pages, Table<Row>& table, ReadProgress& progress) {
        table.for_each_column([&](const auto&, auto& values) { values.resize(num_rows_); });
        if (num_rows_ == 0) return true;
        if (root_page_ == 0) return false;
        std::size_t row = 0;
        const auto visit = [&](const sqlite::Record& record) {
            if (row >= num_rows_ || record.row_id != static_cast<int64_t>(row)) return false;
            // The id is kept outside of the record (file format, section 2.3).
            if (record.types[0] != sqlite::kSerialNull) return false;
            const uint8_t* bytes = record.body.data();
            std::size_t index = 0;
            bool sound = true;
            table.for_each_column([&](const auto&, auto& values) {
                const uint8_t type = record.types[index + 1];
                sound &= store_serial(type, bytes, limits_[index++], values[row]);
                bytes += sqlite::kSerialBytes[type];
            });
            if (++row % ReadProgress::kInterval == 0) progress.add(ReadProgress::kInterval);
            return sound;
        };
        const bool is_plain = sqlite::TableScan(pages, columns_.size() + 1, visit).run(root_page_);
        progress.add(num_rows_ % ReadProgress::kInterval);
        return is_plain && row == num_rows_;
    }

    /// Reads through SQLite. It is slower, reads everything that SQLite reads, and explains errors.
    void query(Table<Row>& table, ReadProgress& progress) {
        table.for_each_column([&](const auto&, auto& values) { values.resize(num_rows_); });
        sqlite::Statement statement(file_.database(), select());
        std::size_t row = 0;
        while (statement.step()) {
            if (row == num_rows_ ||
                sqlite3_column_int64(statement.get(), 0) != static_cast<int64_t>(row)) {
                damaged("the rows of table {} are not numbered from 0 without gaps", name_);
            }
            std::size_t index = 0;
            table.for_each_column([&](const auto&, auto& values) {
                store_column(statement.get(), index++, row, values[row]);
            });
            if (++row % ReadProgress::kInterval == 0) progress.add(ReadProgress::kInterval);
        }
        progress.add(row % ReadProgress::kInterval);
        if (row != num_rows_) {
            damaged("table {} has {} rows where {} were announced", name_, row, num_rows_);
        }
    }

private:
    template <typename T>
    static bool store_serial(uint8_t type, const uint8_t* bytes, int64_t limit, T& value) {
        if (type == sqlite::kSerialReal) {
            if constexpr (std::is_floating_point_v<T>) {
                value = std::bit_cast<double>(sqlite::serial_integer(6, bytes));
                return true;
            } else {
                return false;
            }
        }
        const bool is_null = type == sqlite::kSerialNull;
        const int64_t integer = is_null ? 0 : sqlite::serial_integer(type, bytes);
        return store_integer(integer, is_null, limit, value) == CellFault::kNone;
    }

    std::string select() const {
        std::string sql = "SELECT id";
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            sql += ", " + (is_in_file_[i] ? sqlite::quoted_name(columns_[i]) : absent_[i]);
        }
        return sql + " FROM " + sqlite::quoted_name(name_) + " ORDER BY id";
    }

    template <typename T>
    void store_column(sqlite3_stmt* statement, std::size_t index, std::size_t row, T& value) {
        const int column = static_cast<int>(index) + 1;
        const int type = sqlite3_column_type(statement, column);
        const int64_t integer = sqlite3_column_int64(statement, column);
        CellFault fault = CellFault::kWrongType;
        if (type == SQLITE_INTEGER || type == SQLITE_NULL) {
            fault = store_integer(integer, type == SQLITE_NULL, limits_[index], value);
        } else if constexpr (std::is_floating_point_v<T>) {
            if (type == SQLITE_FLOAT) {
                value = sqlite3_column_double(statement, column);
                return;
            }
        }
        if (fault == CellFault::kWrongType) {
            damaged("table {}, row {}: the column {} has a value of the wrong type", name_, row,
                    columns_[index]);
        }
        if (fault == CellFault::kOutOfRange) {
            damaged("table {}, row {}: the column {} is {}, which does not exist", name_, row,
                    columns_[index], type == SQLITE_NULL ? "NULL" : std::to_string(integer));
        }
    }

    sqlite::Snapshot& file_;
    std::string_view name_;
    std::size_t num_rows_;
    uint32_t root_page_ = 0;
    std::vector<std::string_view> columns_;
    std::vector<bool> is_in_file_;     // false: a column of a newer version
    std::vector<std::string> absent_;  // SQL of the value that such a column has here
    std::vector<int64_t> limits_;      // per column
};

/// Fills and checks all tables of `trace` but its strings, several tables at a time. Throws
/// FileError, sqlite::Error, ReadCancelled or std::bad_alloc.
void read_all_tables(sqlite::Snapshot& file, const RowCounts& counts, Trace& trace,
                     ReadProgress& progress);

}  // namespace profiler
