#pragma once

#include "profiler/tables/data_table.h"
#include "profiler/tables/text_table.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

/// A row type and the list of its columns. Every writer reads this list, so a column has the same
/// name, unit and value as text, as CSV, as JSON, on the clipboard and in a panel.
///
///     const std::vector<TableColumn<Run>> columns{
///         {"recipe", "recipe", Unit::kText, "", &Run::recipe},
///         {"peak_bytes", "peak", Unit::kBytes, "of a step", [](const Run& run) { ... }}};
///     output.table(text_table(columns, runs));
///     write_file("runs.csv", to_csv(data_table(columns, runs)));
///
/// Rows of a file have such lists in profiler/trace/table.h.
namespace profiler {

/// What a value is, which decides how people read it.
enum class Unit : uint8_t {
    kText,
    kNumber,  // 1024, such as a rank
    kCount,   // 1,024
    kBytes,
    kBytesPerSecond,
    kNanoseconds,
    kRate,   // sequences/s, TFLOPS
    kShare,  // of 1
    kYesNo,
};

/// "14.0 MiB", "12.9", "–" without a value.
std::string text_of(Unit unit, const Cell& cell);

template <typename Row>
struct TableColumn {
    std::string id = {};     // key in JSON, header in CSV: "peak_reserved_bytes"
    std::string title = {};  // over the column of a table for people: "reserved"
    Unit unit = Unit::kText;
    std::string explanation = {};  // empty where the title says all
    std::function<Cell(const Row&)> value = nullptr;
    std::function<std::string(const Row&)> text = nullptr;  // null: the value in its unit
};

template <typename Row>
std::string text_of(const TableColumn<Row>& column, const Row& row) {
    return column.text ? column.text(row) : text_of(column.unit, column.value(row));
}

/// The columns with these ids, in their order.
template <typename Row>
std::vector<TableColumn<Row>> pick(const std::vector<TableColumn<Row>>& columns,
                                   std::initializer_list<std::string_view> ids) {
    std::vector<TableColumn<Row>> picked;
    for (const std::string_view id : ids) {
        for (const TableColumn<Row>& column : columns) {
            if (column.id == id) picked.push_back(column);
        }
    }
    return picked;
}

/// Several lists as one.
template <typename Row>
std::vector<TableColumn<Row>> join(std::initializer_list<std::vector<TableColumn<Row>>> lists) {
    std::vector<TableColumn<Row>> all;
    for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
}

template <typename Row>
DataTable data_table(const std::vector<TableColumn<Row>>& columns, const std::vector<Row>& rows) {
    DataTable table;
    for (const TableColumn<Row>& column : columns) table.columns.push_back(column.id);
    for (const Row& row : rows) {
        std::vector<Cell>& cells = table.rows.emplace_back();
        for (const TableColumn<Row>& column : columns) cells.push_back(column.value(row));
    }
    return table;
}

/// Numbers stand at the right.
template <typename Row>
TextTable text_table(const std::vector<TableColumn<Row>>& columns, const std::vector<Row>& rows) {
    TextTable table;
    for (const TableColumn<Row>& column : columns) {
        const bool is_text = column.unit == Unit::kText;
        table.columns.push_back(
            {column.title, is_text ? Align::kLeft : Align::kRight, column.explanation});
    }
    for (const Row& row : rows) {
        std::vector<std::string>& cells = table.rows.emplace_back();
        for (const TableColumn<Row>& column : columns) cells.push_back(text_of(column, row));
    }
    return table;
}

}  // namespace profiler
