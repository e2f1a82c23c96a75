#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// A table for other programs: raw numbers under column names that end in their unit.
///
/// What panels and commands show as text ("64.0 MiB") leaves them through such a table: to the
/// clipboard, as CSV or as JSON. The texts in it are written as profiler/trace/printable.h says.
namespace profiler {

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
    std::vector<std::vector<Cell>> rows;
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

}  // namespace profiler
