#include "profiler/view/data_table.h"

#include "profiler/trace/printable.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace profiler {
namespace {

/// Empty for a number that is not finite.
std::string number_text(double value) {
    return std::isfinite(value) ? fmt::format("{}", value) : std::string();
}

template <typename TextOf>
std::string cell_text(const DataTable::Cell& cell, TextOf text_of) {
    if (const auto* text = std::get_if<std::string>(&cell)) return text_of(*text);
    if (const auto* count = std::get_if<int64_t>(&cell)) return fmt::format("{}", *count);
    if (const auto* value = std::get_if<double>(&cell)) return number_text(*value);
    return {};
}

template <typename TextOf>
std::string lines_of(const DataTable& table, char separator, TextOf text_of) {
    std::string text;
    const auto add_line = [&](const auto& cells, auto text_of_cell) {
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (i > 0) text.push_back(separator);
            text += text_of_cell(cells[i]);
        }
        text.push_back('\n');
    };
    add_line(table.columns, text_of);
    for (const auto& row : table.rows) {
        add_line(row, [&](const DataTable::Cell& cell) { return cell_text(cell, text_of); });
    }
    if (!table.left_out.empty()) text += text_of(table.left_out) + '\n';
    return text;
}

nlohmann::json json_of(const DataTable::Cell& cell) {
    if (const auto* text = std::get_if<std::string>(&cell)) return *text;
    if (const auto* count = std::get_if<int64_t>(&cell)) return *count;
    const auto* value = std::get_if<double>(&cell);
    return value && std::isfinite(*value) ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

std::string to_csv(const DataTable& table) { return lines_of(table, ',', csv_cell); }

std::string to_tsv(const DataTable& table) { return lines_of(table, '\t', spreadsheet_cell); }

std::string to_json(const DataTable& table) {
    nlohmann::ordered_json document;
    document["rows"] = nlohmann::ordered_json::array();
    for (const auto& row : table.rows) {
        nlohmann::ordered_json object;
        for (std::size_t i = 0; i < table.columns.size() && i < row.size(); ++i) {
            object[table.columns[i]] = json_of(row[i]);
        }
        document["rows"].push_back(std::move(object));
    }
    if (!table.left_out.empty()) document["left_out"] = table.left_out;
    // Bytes that are not UTF-8 are replaced instead of ending the export.
    return printable_json(document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)) +
           "\n";
}

}  // namespace profiler
