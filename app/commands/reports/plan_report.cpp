#include "app/commands/reports/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <vector>

namespace app {

using namespace profiler;
using Json = nlohmann::json;

namespace {

Json curve_json(const std::vector<PlanPoint>& curve) {
    Json json = Json::array();
    for (const PlanPoint& point : curve) {
        json.push_back({{"batch_size", point.batch_size},
                        {"step_time_ns", point.step_time_ns},
                        {"throughput_sequences_per_s", point.sequences_per_s}});
    }
    return json;
}

Json row_json(const std::vector<PlanColumn>& columns, const PlanViewRow& row) {
    Json json{{"curve", curve_json(row.row.curve)}, {"notes", row.row.notes}};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const PlanColumn& column = columns[i];
        if (column.is_of_request) continue;
        if (column.group.empty()) {
            json[column.id] = json_of(row.cells[i]);
            continue;
        }
        Json& group = json[column.group];  // null until one of its cells has a value
        if (Json value = json_of(row.cells[i]); !value.is_null()) {
            group[column.id] = std::move(value);
        }
    }
    return json;
}

void print_parts(Output& output, const char* heading, const char* unit,
                 const std::vector<PlanPart>& parts) {
    if (parts.empty()) return;
    output.heading(heading);
    TextTable table{.columns = {{"class", Align::kLeft}, {unit, Align::kRight}}};
    for (const PlanPart& part : parts) table.rows.push_back({part.name, part.text});
    output.table(table);
}

void print_sentences(Output& output, const char* heading,
                     const std::vector<PlanSentence>& sentences) {
    if (!sentences.empty()) output.heading(heading);
    for (const PlanSentence& sentence : sentences) {
        output.line(fmt::format("  {}{}{}", sentence.rows, sentence.rows.empty() ? "" : ": ",
                                sentence.text));
    }
}

}  // namespace

void print_plan(Output& output, const PlanView& view) {
    output.line(output.styled(view.common, Style::kBold));
    output.line(fmt::format("Predicted. Figures from \"at batch\" on are at {}.", view.batch));
    output.line();
    output.table(view.table);
    if (view.rows.size() == 1) {
        const PlanRow& row = view.rows.front().row;
        print_parts(output, "Memory when most is allocated", "bytes", memory_parts(row));
        print_parts(output, "Time of a step", "time", time_parts(row));
    }
    print_sentences(output, "Why not", view.reasons);
    print_sentences(output, "Assumptions", view.assumptions);
}

Json plan_json(const PlanView& view) {
    Json json{{"setup", view.environment}, {"rows", Json::array()}};
    for (std::size_t i = 0; i < view.columns.size() && !view.rows.empty(); ++i) {
        const PlanColumn& column = view.columns[i];
        if (column.is_of_request) json[column.id] = json_of(view.rows.front().cells[i]);
    }
    for (const PlanViewRow& row : view.rows) json["rows"].push_back(row_json(view.columns, row));
    return json;
}

std::string plan_csv(const PlanView& view) {
    DataTable table;
    for (const PlanColumn& column : view.columns) table.columns.push_back(column.id);
    table.columns.emplace_back("notes");
    for (const PlanViewRow& row : view.rows) {
        table.rows.push_back(row.cells);
        table.rows.back().push_back(fmt::format("{}", fmt::join(row.row.notes, "; ")));
    }
    return to_csv(table, Decimals::kAsJson);
}

std::string no_row_sentence(const PlanView& view) {
    std::string text = "No row of the plan is possible.";
    for (const PlanSentence& reason : view.reasons) {
        text += fmt::format(" {}{}{}", reason.rows, reason.rows.empty() ? "" : ": ", reason.text);
    }
    return text;
}

}  // namespace app
