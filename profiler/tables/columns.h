#pragma once

#include "profiler/trace/units.h"

#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
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

// What tables show in a cell without a value, and in one with a difference.

inline std::string or_no_value(const std::string& text) { return text.empty() ? kNoValue : text; }

/// "+2.03 ms", "-2.03 ms": how large a difference is, after its sign. 0 has no sign.
inline std::string with_sign(int64_t difference, const std::string& magnitude) {
    return (difference > 0 ? "+" : difference < 0 ? "-" : "") + magnitude;
}

/// "+64.0 MiB", "-64.0 MiB", "0 B".
inline std::string change_in_bytes(int64_t bytes) {
    return with_sign(bytes, format_bytes(std::abs(bytes)));
}

/// The same, but no value for 0.
inline std::string signed_bytes(int64_t bytes) {
    return bytes == 0 ? kNoValue : change_in_bytes(bytes);
}

// A table of text: for the panel, the HTML page and terminals.

/// How a value reads: less memory is good, less throughput is bad.
enum class Tone : uint8_t { kNeutral, kGood, kBad, kStrong };

enum class Align : uint8_t { kLeft, kRight };

struct TextTable {
    struct Column {
        std::string title;
        Align align = Align::kLeft;
        std::string explanation = {};  // what the number is and how it came about, for a (?) marker
    };
    std::vector<Column> columns;
    std::vector<std::vector<std::string>> rows = {};  // a cell per column
    std::vector<std::vector<Tone>> tones = {};        // the same shape; empty: all are neutral
};

// A table for other programs: raw numbers under column names that end in their unit.
//
// What panels and commands show as text ("64.0 MiB") leaves them through such a table: to the
// clipboard, as CSV or as JSON. The texts in it are written as profiler/trace/printable.h says.

/// A value of a row, or none: a row that does not fit has no step time.
struct Cell : std::variant<std::monostate, std::string, int64_t, double, bool> {
    Cell() = default;
    Cell(std::string text) : variant(std::move(text)) {}
    Cell(std::string_view text) : variant(std::string(text)) {}
    Cell(const char* text) : variant(std::string(text)) {}
    Cell(double number) : variant(number) {}
    template <std::integral T>
        requires(!std::same_as<T, bool>)
    Cell(T count) : variant(static_cast<int64_t>(count)) {}
    template <std::same_as<bool> T>
    Cell(T is_so) : variant(is_so) {}
    template <typename T>
    Cell(const std::optional<T>& value) : Cell(value ? Cell(*value) : Cell()) {}

    bool has_value() const { return index() != 0; }
};

/// A text that is known unless it is empty, and a figure that is known above 0.
inline Cell known(const std::string& text) { return text.empty() ? Cell() : Cell(text); }
template <typename T>
Cell known(T figure) {
    return figure > 0 ? Cell(figure) : Cell();
}

struct DataTable {
    std::vector<std::string> columns;  // "tensor", "size_bytes"
    std::vector<std::vector<Cell>> rows = {};
    std::string left_out = {};  // "12 more rows"; empty: the table is complete
};

/// How CSV writes 12: in the shortest way, or as in JSON.
enum class Decimals : uint8_t { kShortest /* 12 */, kAsJson /* 12.0 */ };

/// RFC 4180, with a header.
std::string to_csv(const DataTable& table);
std::string to_csv(const DataTable& table, Decimals decimals);
/// For the clipboard: cells between tabs, with a header.
std::string to_tsv(const DataTable& table);
/// {"rows": [{"tensor": ..., "size_bytes": ...}, ...]}; cells without a value are null.
std::string to_json(const DataTable& table);

/// [{"tensor": ..., "size_bytes": ...}, ...], for a document of more than these rows.
nlohmann::json json_rows(const DataTable& table);
nlohmann::json json_of(const Cell& cell);

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
