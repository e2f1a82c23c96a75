#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

/// A table for other programs: raw numbers under column names that end in their unit.
///
/// What panels show as text ("64.0 MiB") leaves the window through such a table: to the clipboard,
/// as CSV or as JSON. The texts in it are written as profiler/trace/printable.h says.
namespace profiler {

struct DataTable {
    using Cell = std::variant<std::monostate, std::string, int64_t, double>;  // monostate: no value

    std::vector<std::string> columns;  // "tensor", "size_bytes"
    std::vector<std::vector<Cell>> rows;
    std::string left_out;  // "12 more rows"; empty: the table is complete
};

/// RFC 4180, with a header.
std::string to_csv(const DataTable& table);
/// For the clipboard: cells between tabs, with a header.
std::string to_tsv(const DataTable& table);
/// {"rows": [{"tensor": ..., "size_bytes": ...}, ...]}; cells without a value are null.
std::string to_json(const DataTable& table);

}  // namespace profiler
