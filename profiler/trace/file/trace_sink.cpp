#include "profiler/trace/file/trace_sink.h"

#include "profiler/trace/file/schema.h"
#include "profiler/trace/file/trace_file.h"

#include <fmt/format.h>

#include <bit>
#include <tuple>
#include <type_traits>

namespace profiler {

using sqlite::Statement;

namespace {

template <typename T>
void bind(sqlite3_stmt* statement, int index, T value) {
    if constexpr (std::is_floating_point_v<T>) {
        sqlite3_bind_double(statement, index, value);  // NaN becomes NULL
    } else if constexpr (std::is_enum_v<T>) {
        sqlite3_bind_int64(statement, index, static_cast<int64_t>(value));
    } else {
        int64_t integer = 0;
        if constexpr (schema::is_id<T>) {
            integer = value.value;
        } else {
            integer = value;
        }
        // "None" is NULL in the file, so that SQL's IS NULL, count() and sums do what they say.
        if (integer == -1) {
            sqlite3_bind_null(statement, index);
        } else {
            sqlite3_bind_int64(statement, index, integer);
        }
    }
}

/// A statement has a cost of its own, which many rows share.
constexpr std::size_t kRowsPerStatement = 32;

template <typename Row>
void put_rows(Statement& statement, const Table<Row>& table, std::size_t first,
              std::size_t num_rows = 1) {
    sqlite3_stmt* const handle = statement.get();
    int index = 1;
    for (std::size_t row = first; row < first + num_rows; ++row) {
        sqlite3_bind_int64(handle, index++, static_cast<int64_t>(row));
        table.for_each_column(
            [&](const auto&, const auto& values) { bind(handle, index++, values[row]); });
    }
    statement.step();
    statement.reset();
}

template <typename T>
uint64_t bits_of(T value) {
    if constexpr (std::is_floating_point_v<T>) {
        return std::bit_cast<uint64_t>(value);
    } else if constexpr (schema::is_id<T>) {
        return static_cast<uint64_t>(value.value);
    } else {
        return static_cast<uint64_t>(value);
    }
}

/// Adds the hashes of the rows [hashes.size(), end), column by column.
template <typename Row>
void hash_rows(const Table<Row>& table, std::size_t end, std::vector<uint64_t>& hashes) {
    constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads the bits
    const std::size_t begin = hashes.size();
    hashes.resize(end);
    table.for_each_column([&](const auto&, const auto& values) {
        for (std::size_t row = begin; row < end; ++row) {
            const uint64_t mixed = (hashes[row] ^ bits_of(values[row])) * kMultiplier;
            hashes[row] = mixed ^ mixed >> 32;
        }
    });
}

}  // namespace

void TraceSink::create_schema() {
    db_.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};",
                            schema::kApplicationId, kTraceFormatVersion));
    db_.execute(schema::create_statements());
}

void TraceSink::put(const Trace& trace) {
    put_strings(trace.strings);
    std::size_t index = 0;
    Trace::for_each_table(trace, [&](std::string_view name, const auto& table) {
        put_table(name, table, state(index++));
    });
}

void TraceSink::accept(const Trace& trace) {
    num_strings_ = trace.strings.size();
    std::size_t index = 0;
    Trace::for_each_table(trace, [&](std::string_view, const auto& table) {
        TableState& accepted = state(index++);
        accepted.row_hashes = std::move(accepted.new_hashes);
        hash_rows(table, table.size(), accepted.row_hashes);
    });
}

TraceSink::TableState& TraceSink::state(std::size_t index) {
    if (index >= tables_.size()) tables_.resize(index + 1);
    return tables_[index];
}

void TraceSink::put_strings(const StringTable& strings) {
    if (!insert_string_) {
        insert_string_.emplace(db_, schema::insert_statement("INSERT", "string", 1));
    }
    sqlite3_stmt* const handle = insert_string_->get();
    for (std::size_t i = num_strings_; i < strings.size(); ++i) {
        const std::string_view text = strings[StringId(i)];
        sqlite3_bind_int64(handle, 1, static_cast<int64_t>(i));
        sqlite3_bind_text64(handle, 2, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
        insert_string_->step();
        insert_string_->reset();
    }
}

template <typename Row>
void TraceSink::put_table(std::string_view name, const Table<Row>& table, TableState& state) {
    if (table.empty()) return;
    constexpr std::size_t kNumColumns = std::tuple_size_v<decltype(Row::columns())>;
    if (!state.insert) {
        state.insert.emplace(db_, schema::insert_statement("INSERT", name, kNumColumns));
        state.replace.emplace(db_, schema::insert_statement("REPLACE", name, kNumColumns));
    }
    const std::size_t num_written = state.row_hashes.size();
    state.new_hashes.clear();
    hash_rows(table, num_written, state.new_hashes);
    for (std::size_t row = 0; row < num_written; ++row) {
        if (state.new_hashes[row] != state.row_hashes[row]) put_rows(*state.replace, table, row);
    }
    std::size_t row = num_written;
    if (!state.insert_many && row + kRowsPerStatement <= table.size()) {
        state.insert_many.emplace(
            db_, schema::insert_statement("INSERT", name, kNumColumns, kRowsPerStatement));
    }
    for (; row + kRowsPerStatement <= table.size(); row += kRowsPerStatement) {
        put_rows(*state.insert_many, table, row, kRowsPerStatement);
    }
    for (; row < table.size(); ++row) put_rows(*state.insert, table, row);
}

}  // namespace profiler
