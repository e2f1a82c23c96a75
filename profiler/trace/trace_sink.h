#pragma once

#include "profiler/trace/sqlite.h"
#include "profiler/trace/trace.h"

#include <optional>
#include <string_view>
#include <vector>

/// Rows of a trace into a database. Private to profiler/trace.
namespace profiler {

/// Remembers what the database already holds: each `put` writes only what is new or changed.
class TraceSink {
public:
    explicit TraceSink(sqlite::Database& db) : db_(db) {}

    void create_schema();

    /// Writes rows inside the caller's transaction. The caller confirms with `accept` once the
    /// transaction is committed; without it the next `put` writes them again.
    void put(const Trace& trace);
    void accept(const Trace& trace);

private:
    /// What one table of the database holds, and how to add to it.
    struct TableState {
        std::size_t num_rows = 0;
        std::optional<sqlite::Statement> insert;
        std::optional<sqlite::Statement> replace;
    };
    TableState& state(std::size_t index);
    void put_strings(const StringTable& strings);
    template <typename Row>
    void put_table(std::string_view name, const Table<Row>& table, TableState& state);

    sqlite::Database& db_;
    std::size_t num_strings_ = 0;
    std::optional<sqlite::Statement> insert_string_;
    std::vector<TableState> tables_;  // in file order
};

}  // namespace profiler
