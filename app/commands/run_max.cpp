#include "app/commands/run_max.h"

#include "app/commands/console/csv_writer.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/terminal.h"
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

/// One sentence on the first batch that does not fit.
std::string why_not(const LargestBatch& found) {
    if (!found.first_above) {
        return fmt::format("{}: the search ended at {}; larger batches fit, too.", found.gpu,
                           found.largest->batch_size);
    }
    const BatchTry& above = *found.first_above;
    if (above.peak_allocated_bytes < 0) {
        return fmt::format("{}: a batch of {} runs out of memory before its first step.", found.gpu,
                           above.batch_size);
    }
    return fmt::format("{}: a batch of {} runs out of memory at {} ({}){}.", found.gpu,
                       above.batch_size, format_bytes(above.peak_allocated_bytes),
                       what_filled(above.by_category),
                       above.place.empty() ? "" : ", in " + above.place);
}

TextTable table_of(const std::vector<LargestBatch>& rows) {
    TextTable table;
    table.columns = {{"gpu", Align::kLeft, {}},
                     {"max batch", Align::kRight, {}},
                     {"peak", Align::kRight, {}},
                     {"reserved", Align::kRight, {}}};
    for (const LargestBatch& row : rows) {
        if (row.largest) {
            table.rows.push_back({row.gpu, format_count(row.largest->batch_size),
                                  size_text(row.largest->peak_allocated_bytes),
                                  size_text(row.largest->peak_reserved_bytes)});
        } else {
            table.rows.push_back({row.gpu, "none", "–", "–"});
        }
    }
    return table;
}

Json bytes_or_null(int64_t bytes) { return bytes < 0 ? Json() : Json(bytes); }

Json json_of(const LargestBatch& row) {
    Json json{{"gpu", row.gpu},
              {"max_batch_size", Json()},
              {"peak_allocated_bytes", Json()},
              {"peak_reserved_bytes", Json()},
              {"failing_batch_size", Json()},
              {"failing_place", Json()},
              {"failing_by_class", Json()}};
    if (row.largest) {
        json["max_batch_size"] = row.largest->batch_size;
        json["peak_allocated_bytes"] = bytes_or_null(row.largest->peak_allocated_bytes);
        json["peak_reserved_bytes"] = bytes_or_null(row.largest->peak_reserved_bytes);
    }
    if (row.first_above) {
        json["failing_batch_size"] = row.first_above->batch_size;
        json["failing_place"] = row.first_above->place;
        json["failing_by_class"] = by_class_json(row.first_above->by_category);
    }
    return json;
}

std::string csv_of(const Json& rows) {
    const std::vector<std::string> columns{"gpu",
                                           "max_batch_size",
                                           "peak_allocated_bytes",
                                           "peak_reserved_bytes",
                                           "failing_batch_size",
                                           "failing_place"};
    CsvWriter csv;
    csv.row(columns);
    for (const Json& row : rows) {
        std::vector<std::string> cells;
        for (const std::string& column : columns) {
            const Json& value = row[column];
            cells.push_back(value.is_null()     ? ""
                            : value.is_string() ? value.get<std::string>()
                                                : value.dump());
        }
        csv.row(cells);
    }
    return csv.take();
}

}  // namespace

Outcome run_max(const RunMaxOptions& options, Output& output) {
    if (const auto ok = check_can_write(options.output); !ok) return failed(ok.error());
    std::vector<LargestBatch> rows;
    Json json{{"rows", Json::array()}};
    Progress progress;
    for (const std::string& gpu : options.gpus) {
        ProgramRun run = options.run;
        run.gpu = gpu;
        const auto tried = [&](const BatchTry& one) {
            progress.update(-1, fmt::format("{}: a batch of {} {} ({})", gpu, one.batch_size,
                                            one.fits ? "fits" : "does not fit",
                                            size_text(one.peak_allocated_bytes)));
        };
        auto found = find_largest_batch(run, options.placeholder, tried);
        if (!found) return failed(found.error());
        json["rows"].push_back(json_of(*found));
        rows.push_back(std::move(*found));
    }
    if (!options.output.empty()) {
        const std::string text =
            options.output.ends_with(".csv") ? csv_of(json["rows"]) : json_text(json);
        if (const auto ok = write_file(options.output, text); !ok) return failed(ok.error());
    }
    if (output.json()) {
        output.document(json);
        return ExitCode::kOk;
    }
    output.table(table_of(rows));
    output.line();
    for (const LargestBatch& row : rows) output.line(why_not(row));
    return ExitCode::kOk;
}

}  // namespace app
