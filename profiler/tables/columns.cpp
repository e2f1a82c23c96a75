#include "profiler/tables/columns.h"

#include "profiler/trace/printable.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace profiler {
namespace {

/// Empty for a number that is not finite.
std::string number_text(double value, Decimals decimals) {
    if (!std::isfinite(value)) return {};
    return decimals == Decimals::kAsJson ? nlohmann::json(value).dump() : fmt::format("{}", value);
}

/// `text_of` makes a text fit to stand between two separators.
std::string lines_of(const DataTable& table, char separator,
                     std::string (*text_of)(std::string_view), Decimals decimals) {
    std::string text;
    const auto add_line = [&](const auto& cells, const auto& text_of_cell) {
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (i > 0) text.push_back(separator);
            text += text_of_cell(cells[i]);
        }
        text.push_back('\n');
    };
    const auto text_of_cell = [&](const Cell& cell) -> std::string {
        if (const auto* words = std::get_if<std::string>(&cell)) return text_of(*words);
        if (const auto* count = std::get_if<int64_t>(&cell)) return fmt::format("{}", *count);
        if (const auto* number = std::get_if<double>(&cell)) return number_text(*number, decimals);
        if (const auto* is_so = std::get_if<bool>(&cell)) return *is_so ? "true" : "false";
        return {};
    };
    add_line(table.columns, text_of);
    for (const auto& row : table.rows) add_line(row, text_of_cell);
    if (!table.left_out.empty()) text += text_of(table.left_out) + '\n';
    return text;
}

template <typename Json>
Json rows_of(const DataTable& table) {
    Json rows = Json::array();
    for (const auto& row : table.rows) {
        Json object = Json::object();
        for (std::size_t i = 0; i < table.columns.size() && i < row.size(); ++i) {
            object[table.columns[i]] = json_of(row[i]);
        }
        rows.push_back(std::move(object));
    }
    return rows;
}

}  // namespace

std::string to_csv(const DataTable& table) { return to_csv(table, Decimals::kShortest); }

std::string to_csv(const DataTable& table, Decimals decimals) {
    return lines_of(table, ',', csv_cell, decimals);
}

std::string to_tsv(const DataTable& table) {
    return lines_of(table, '\t', spreadsheet_cell, Decimals::kShortest);
}

std::string to_json(const DataTable& table) {
    nlohmann::ordered_json document;
    document["rows"] = rows_of<nlohmann::ordered_json>(table);
    if (!table.left_out.empty()) document["left_out"] = table.left_out;
    // Bytes that are not UTF-8 are replaced instead of ending the export.
    return printable_json(document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)) +
           "\n";
}

nlohmann::json json_rows(const DataTable& table) { return rows_of<nlohmann::json>(table); }

nlohmann::json json_of(const Cell& cell) {
    if (const auto* text = std::get_if<std::string>(&cell)) return *text;
    if (const auto* count = std::get_if<int64_t>(&cell)) return *count;
    if (const auto* is_so = std::get_if<bool>(&cell)) return *is_so;
    const auto* value = std::get_if<double>(&cell);
    return value && std::isfinite(*value) ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

std::string text_of(Unit unit, const Cell& cell) {
    if (!cell.has_value()) return kNoValue;
    switch (unit) {
        case Unit::kText:
            return std::get<std::string>(cell);
        case Unit::kNumber:
            return std::to_string(std::get<int64_t>(cell));
        case Unit::kCount:
            return format_count(std::get<int64_t>(cell));
        case Unit::kBytes:
            return format_bytes(std::get<int64_t>(cell));
        case Unit::kBytesPerSecond:
            return format_bytes(std::llround(std::get<double>(cell))) + "/s";
        case Unit::kNanoseconds:
            return format_duration(std::get<int64_t>(cell));
        case Unit::kRate:
            return fmt::format("{:.1f}", std::get<double>(cell));
        case Unit::kShare:
            return format_percent(std::get<double>(cell));
        case Unit::kYesNo:
            return std::get<bool>(cell) ? "yes" : "no";
    }
    return kNoValue;
}

}  // namespace profiler
