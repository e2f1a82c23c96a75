#pragma once

#include "profiler/trace/file/sqlite.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// Writes the rows of a trace into a database. Private to profiler/trace.
namespace profiler {

/// Remembers what the database already holds, so that each `put` writes only new and changed rows.
/// It keeps a 64-bit hash of each row for that, which costs one pass over the columns a commit.
class TraceSink {
public:
    explicit TraceSink(sqlite::Database& db) : db_(db) {}

    void create_schema();

    /// Writes rows inside the caller's transaction. Once it is committed the caller calls `accept`
    /// with the same trace; otherwise the next `put` writes the rows again.
    void put(const Trace& trace);
    void accept(const Trace& trace);

private:
    /// What one table of the database holds, and the statements that add to it.
    struct TableState {
        std::vector<uint64_t> row_hashes;  // of the rows that are committed
        std::vector<uint64_t> new_hashes;  // of the same rows, as the last `put` wrote them
        std::optional<sqlite::Statement> insert;
        std::optional<sqlite::Statement> insert_many;
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
