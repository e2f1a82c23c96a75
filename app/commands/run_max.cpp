#include "app/commands/run_max.h"

#include "app/commands/console/csv_writer.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/terminal.h"
#include "app/commands/options/list_option.h"
#include "app/commands/reports/reports.h"
#include "app/commands/worker/batch_search.h"
#include "profiler/trace/units.h"
#include "profiler/trace/write_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;

std::string size_text(int64_t bytes) { return bytes < 0 ? "–" : format_bytes(bytes); }

/// "activation 30.1 GiB, parameter 1.2 GiB": the two largest.
std::string what_filled(const CategoryBytes& by_category) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < by_category.size(); ++i) {
        if (by_category[i] > 0) order.push_back(i);
    }
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return by_category[a] > by_category[b]; });
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 2); ++i) {
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", kCategoryNames[order[i]],
                            format_bytes(by_category[order[i]]));
    }
    return text;
}

/// " 2.00 GiB were requested when 1.10 GiB were free."
std::string failed_request(const BatchTry& above) {
    if (above.requested_bytes < 0) return {};
    return fmt::format(" {} were requested{}.", format_bytes(above.requested_bytes),
                       above.free_bytes < 0
                           ? ""
                           : fmt::format(" when {} were free", format_bytes(above.free_bytes)));
}

/// " Largest: logits 8.00 GiB, addmm_output 6.00 GiB."
std::string largest_tensors(const BatchTry& above) {
    std::string text;
    for (const LiveTensor& tensor : above.largest) {
        text += fmt::format("{}{} {}", text.empty() ? " Largest: " : ", ", tensor.name,
                            format_bytes(tensor.size_bytes));
    }
    return text.empty() ? text : text + ".";
}

/// "a100-40gb", "a100-40gb, SEQ=512"
std::string name_of(const ProgramCase& one) {
    std::string text = one.gpu;
    for (const auto& [name, value] : one.values) text += fmt::format(", {}={}", name, value);
    return text;
}

/// What is known of the first batch that does not fit.
std::string why_not(const LargestBatch& found) {
    if (!found.first_above) {
        return fmt::format("{}: the search ended at {}; larger batches fit, too.",
                           name_of(found.of), found.largest->batch_size);
    }
    const BatchTry& above = *found.first_above;
    if (above.peak_allocated_bytes < 0) {
        return fmt::format("{}: a batch of {} runs out of memory before its first step.",
                           name_of(found.of), above.batch_size);
    }
    return fmt::format("{}: a batch of {} runs out of memory at {} ({}){}.{}{}", name_of(found.of),
                       above.batch_size, format_bytes(above.peak_allocated_bytes),
                       what_filled(above.by_category),
                       above.place.empty() ? "" : ", in " + above.place, failed_request(above),
                       largest_tensors(above));
}

TextTable table_of(const std::vector<LargestBatch>& rows) {
    TextTable table;
    table.columns = {{"gpu", Align::kLeft, {}}};
    for (const auto& [name, value] : rows.front().of.values) {
        table.columns.push_back({name, Align::kRight, {}});
    }
    for (const char* title : {"max batch", "peak", "reserved"}) {
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

Json bytes_or_null(int64_t bytes) { return bytes < 0 ? Json() : Json(bytes); }

Json tensors_json(const std::vector<LiveTensor>& tensors) {
    Json json = Json::array();
    for (const LiveTensor& tensor : tensors) {
        json.push_back({{"name", tensor.name}, {"size_bytes", tensor.size_bytes}});
    }
    return json;
}

Json json_of(const LargestBatch& row) {
    Json json{{"gpu", row.of.gpu},
              {"values", Json::object()},
              {"max_batch_size", Json()},
              {"peak_allocated_bytes", Json()},
              {"peak_reserved_bytes", Json()},
              {"failing_batch_size", Json()},
              {"failing_place", Json()},
              {"failing_requested_bytes", Json()},
              {"failing_free_bytes", Json()},
              {"failing_by_class", Json()},
              {"failing_tensors", Json()}};
    for (const auto& [name, value] : row.of.values) json["values"][name] = value;
    if (row.largest) {
        json["max_batch_size"] = row.largest->batch_size;
        json["peak_allocated_bytes"] = bytes_or_null(row.largest->peak_allocated_bytes);
        json["peak_reserved_bytes"] = bytes_or_null(row.largest->peak_reserved_bytes);
    }
    if (row.first_above) {
        json["failing_batch_size"] = row.first_above->batch_size;
        json["failing_place"] = row.first_above->place;
        json["failing_requested_bytes"] = bytes_or_null(row.first_above->requested_bytes);
        json["failing_free_bytes"] = bytes_or_null(row.first_above->free_bytes);
        json["failing_by_class"] = by_class_json(row.first_above->by_category);
        json["failing_tensors"] = tensors_json(row.first_above->largest);
    }
    return json;
}

std::string csv_text(const Json& value) {
    if (value.is_null()) return {};
    return value.is_string() ? value.get<std::string>() : value.dump();
}

/// The columns are the keys of a row; values and classes have a column each, and the tensors stand
/// in one: "logits 8589934592; gelu_output 4294967296".
std::string csv_of(const std::vector<LargestBatch>& rows) {
    CsvWriter csv;
    for (std::size_t i = 0; i <= rows.size(); ++i) {
        const bool is_header = i == 0;
        const LargestBatch& row = rows[is_header ? 0 : i - 1];
        const Json json = json_of(row);
        std::vector<std::string> cells;
        const auto add = [&](std::string name, const Json& value) {
            cells.push_back(is_header ? std::move(name) : csv_text(value));
        };
        add("gpu", json["gpu"]);
        for (const auto& [name, value] : row.of.values) add(name, value);
        for (const char* key :
             {"max_batch_size", "peak_allocated_bytes", "peak_reserved_bytes", "failing_batch_size",
              "failing_place", "failing_requested_bytes", "failing_free_bytes"}) {
            add(key, json[key]);
        }
        for (const std::string_view category : kCategoryNames) {
            const std::string key = fmt::format("{}_bytes", category);
            const Json& by_class = json["failing_by_class"];
            add("failing_" + key, by_class.is_null() ? Json() : by_class.value(key, Json()));
        }
        std::string tensors;
        for (const Json& tensor : json["failing_tensors"]) {
            tensors += fmt::format("{}{} {}", tensors.empty() ? "" : "; ",
                                   tensor["name"].get<std::string>(), tensor["size_bytes"].dump());
        }
        add("failing_tensors", tensors);
        csv.row(cells);
    }
    return csv.take();
}

/// All combinations of GPUs and values. "512" after "SEQ=128" is another value of SEQ.
models::Result<std::vector<ProgramCase>> cases_of(const RunMaxOptions& options) {
    std::vector<std::pair<std::string, std::vector<std::string>>> lists;
    for (const std::string& word : options.values) {
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(0, equals == word.npos ? 0 : equals);
        if (equals != word.npos) lists.push_back({name, {}});
        if (lists.empty() || lists.back().first.empty()) {
            return models::fail("--values {}: write NAME=VALUE,VALUE.", word);
        }
        append_once(lists.back().second, word.substr(equals == word.npos ? 0 : equals + 1));
    }
    std::vector<ProgramCase> cases;
    for (const std::string& gpu : options.gpus) cases.push_back({.gpu = gpu, .values = {}});
    for (const auto& [name, values] : lists) {
        std::vector<ProgramCase> longer;
        for (const ProgramCase& one : cases) {
            for (const std::string& value : values) {
                longer.push_back(one);
                longer.back().values.emplace_back(name, value);
            }
        }
        cases = std::move(longer);
    }
    return cases;
}

}  // namespace

Outcome run_max(const RunMaxOptions& options, Output& output) {
    const auto cases = cases_of(options);
    if (!cases) return wrong_usage(cases.error());
    if (const auto ok = check_can_write(options.output); !ok) return failed(ok.error());
    Progress progress;
    const auto tried = [&](const ProgramCase& of, const BatchTry& one) {
        progress.update(-1, fmt::format("{}: a batch of {} {} ({})", name_of(of), one.batch_size,
                                        one.fits ? "fits" : "does not fit",
                                        size_text(one.peak_allocated_bytes)));
    };
    const auto rows = find_largest_batches(options.run, options.placeholder, *cases, tried);
    if (!rows) return failed(rows.error());
    Json json{{"rows", Json::array()}};
    for (const LargestBatch& row : *rows) json["rows"].push_back(json_of(row));
    if (!options.output.empty()) {
        const std::string text = options.output.ends_with(".csv") ? csv_of(*rows) : json_text(json);
        if (const auto ok = write_file(options.output, text); !ok) return failed(ok.error());
    }
    if (output.json()) {
        output.document(json);
        return ExitCode::kOk;
    }
    output.table(table_of(*rows));
    output.line();
    for (const LargestBatch& row : *rows) output.line(why_not(row));
    return ExitCode::kOk;
}

}  // namespace app
