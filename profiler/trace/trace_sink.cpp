#include "profiler/trace/trace_sink.h"

#include "profiler/trace/schema.h"
#include "profiler/trace/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
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

template <typename Row>
void put_row(Statement& statement, const Table<Row>& table, std::size_t row) {
    sqlite3_stmt* const handle = statement.get();
    int index = 1;
    sqlite3_bind_int64(handle, index++, static_cast<int64_t>(row));
    table.for_each_column(
        [&](const auto&, const auto& values) { bind(handle, index++, values[row]); });
    statement.step();
    statement.reset();
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
        state(index++).num_rows = table.size();
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
    if (!state.insert) {
        std::size_t num_columns = 0;
        table.for_each_column([&](const auto&, const auto&) { ++num_columns; });
        state.insert.emplace(db_, schema::insert_statement("INSERT", name, num_columns));
        state.replace.emplace(db_, schema::insert_statement("REPLACE", name, num_columns));
    }
    std::vector<Id<Row>> changed(table.changed().begin(), table.changed().end());
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (const Id<Row> row : changed) {
        if (row.index() < state.num_rows) put_row(*state.replace, table, row.index());
    }
    for (std::size_t row = state.num_rows; row < table.size(); ++row) {
        put_row(*state.insert, table, row);
    }
}

}  // namespace profiler
