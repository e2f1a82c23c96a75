#include "app/commands/run_max.h"

#include "app/commands/batch_report.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/list_option.h"
#include "profiler/trace/units.h"
#include "profiler/trace/write_file.h"

#include <nlohmann/json.hpp>

namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;

TextTable table_of(const std::vector<LargestBatch>& rows) {
    TextTable table;
    table.columns = {{"gpu", Align::kLeft, {}}};
    for (const auto& [name, value] : rows.front().of.values) {
        table.columns.push_back({name, Align::kRight, {}});
    }
    for (const char* title : {"largest batch", "peak", "reserved"}) {
        table.columns.push_back({title, Align::kRight, {}});
    }
    for (const LargestBatch& row : rows) {
        std::vector<std::string>& cells = table.rows.emplace_back(1, row.of.gpu);
        for (const auto& [name, value] : row.of.values) cells.push_back(value);
        const BatchTry largest = row.largest.value_or(BatchTry{});
        cells.push_back(row.largest ? format_count(largest.batch_size) : "none");
        cells.push_back(size_text(largest.peak_allocated_bytes));
        cells.push_back(size_text(largest.peak_reserved_bytes));
    }
    return table;
}

/// "BATCH", also of "{BATCH}".
std::string name_of_placeholder(std::string_view text) {
    const bool has_braces = text.size() > 2 && text.starts_with('{') && text.ends_with('}');
    return std::string(has_braces ? text.substr(1, text.size() - 2) : text);
}

/// All combinations of GPUs and values. "512" after "SEQ=128" is another value of SEQ.
models::Result<std::vector<ProgramCase>> cases_of(const RunMaxOptions& options,
                                                  const std::string& placeholder) {
    std::vector<std::pair<std::string, std::vector<std::string>>> lists;
    for (const std::string& word : options.values) {
        const std::size_t equals = word.find('=');
        const std::string name =
            name_of_placeholder(word.substr(0, equals == word.npos ? 0 : equals));
        if (equals != word.npos) lists.push_back({name, {}});
        if (lists.empty() || lists.back().first.empty()) {
            return models::fail("--values {}: write NAME=VALUE,VALUE.", word);
        }
        if (name == placeholder) {
            return models::fail(
                "--values {}: {{{}}} is the batch size that --max looks for; give other "
                "placeholders their values.",
                word, name);
        }
        append_once(lists.back().second, word.substr(equals == word.npos ? 0 : equals + 1));
    }
    std::vector<ProgramCase> cases;
    for (const std::string& gpu : options.gpus) {
        cases.push_back({.gpu = gpu, .values = {}, .run = options.run});
    }
    for (const auto& [name, values] : lists) {
        std::vector<ProgramCase> longer;
        for (const ProgramCase& one : cases) {
            for (const std::string& value : values) {
                longer.push_back(one);
                longer.back().values.emplace_back(name, value);
                if (fill_in(longer.back().run.words, name, value)) continue;
                return models::fail(
                    "--values {}=...: no argument of the program holds {{{}}}; write it where the "
                    "value goes.",
                    name, name);
            }
        }
        cases = std::move(longer);
    }
    return cases;
}

}  // namespace

Outcome run_max(const RunMaxOptions& options, Output& output) {
    const std::string placeholder = name_of_placeholder(options.placeholder);
    const auto cases = cases_of(options, placeholder);
    if (!cases) return wrong_usage(cases.error());
    std::vector<std::string> words = cases->front().run.words;
    if (!fill_in(words, placeholder, "1")) {
        return wrong_usage({fmt::format(
            "--max {}: no argument of the program holds {{{}}}; write it where the batch size "
            "goes, as in --batch {{{}}}.",
            placeholder, placeholder, placeholder)});
    }
    if (const auto ok = check_result_file(options.output); !ok) return failed(ok.error());
    Progress progress;
    const auto tried = [&](const ProgramCase& of, const BatchTry& one) {
        progress.update(-1, about_try(of, one));
    };
    const auto rows = find_largest_batches(placeholder, *cases, tried);
    if (!rows) return failed(rows.error());
    for (const LargestBatch& row : *rows) {
        if (!row.error.empty()) return failed({row.error});
    }
    Json json{{"rows", Json::array()}};
    for (const LargestBatch& row : *rows) json["rows"].push_back(batch_json(row));
    if (!options.output.empty()) {
        const bool is_csv = options.output.ends_with(".csv");
        std::vector<std::string> names;
        for (const auto& [name, value] : cases->front().values) names.push_back(name);
        const std::string text = is_csv ? batches_csv(json["rows"], names) : json_text(json);
        if (const auto ok = write_file(options.output, text); !ok) return failed(ok.error());
    }
    if (output.json()) {
        output.document(json);
        return ExitCode::kOk;
    }
    output.table(table_of(*rows));
    output.line();
    for (const LargestBatch& row : *rows) output.line(why_not(row, name_of(row.of)));
    return ExitCode::kOk;
}

}  // namespace app
