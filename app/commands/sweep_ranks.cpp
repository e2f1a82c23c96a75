#include "app/commands/sweep_ranks.h"

#include "app/commands/batch_report.h"
#include "app/commands/console/csv_writer.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/fits_report.h"
#include "app/commands/plan_request.h"
#include "app/commands/reports/chart_files.h"
#include "app/user/settings.h"
#include "profiler/trace/units.h"
#include "profiler/trace/write_file.h"
#include "profiler/view/compare_figures.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;
using models::Result;

constexpr std::string_view kPredict = "predict:";

/// The same rows as `plan --parallel` has on one card.
PlanOptions plan_options(const WorkloadOptions& workload, const SweepRanksOptions& options) {
    return {.workload = workload,
            .seq = std::to_string(workload.seq_len),
            .gpu = workload.device.substr(kPredict.size()),
            .parallel = options.parallel,
            .world_sizes = options.world_sizes};
}

std::string name_of(const FitRow& row) {
    return fmt::format("{}, {} with {}", row.workload.recipe_name, row.gpus(),
                       models::to_text(row.parallel));
}

TextTable table_of(const std::vector<FitRow>& rows) {
    TextTable table;
    table.columns = {{"recipe", Align::kLeft, {}},
                     {"GPUs", Align::kLeft, {}},
                     {"strategy", Align::kLeft, {}},
                     {"batch of a GPU", Align::kRight, {}},
                     {"peak", Align::kRight, "allocated, of the GPU that needs the most"},
                     {"reserved", Align::kRight, {}},
                     {"step", Align::kRight, "modelled, with communication"},
                     {"sequences/s", Align::kRight, "of all GPUs"},
                     {"", Align::kLeft, {}}};
    for (const FitRow& row : rows) {
        if (!row.found) continue;
        for (const BatchTry& one : row.found->tries) {
            const auto rate = row.sequences_per_s(one);
            table.rows.push_back({row.workload.recipe_name, row.gpus(),
                                  models::to_text(row.parallel), format_count(one.batch_size),
                                  size_text(one.peak_allocated_bytes),
                                  size_text(one.peak_reserved_bytes),
                                  one.step_time_ns > 0 ? format_duration(one.step_time_ns) : "–",
                                  rate ? rate_text(*rate) : "–", one.fits ? "" : "out of memory"});
        }
    }
    return table;
}

/// A row for each recipe, strategy and batch; one without a batch says why there is none.
Json rows_json(const std::vector<FitRow>& rows) {
    Json json = Json::array();
    for (const FitRow& row : rows) {
        const auto add = [&](const std::optional<BatchTry>& one) {
            const BatchTry at = one.value_or(BatchTry{});
            const std::string& why = row.impossible.empty() ? row.failure : row.impossible;
            json.push_back({{"recipe", row.workload.recipe_name},
                            {"gpu", row.gpu->id},
                            {"world_size", row.world_size},
                            {"parallel", models::to_text(row.parallel)},
                            {"batch_size", one ? Json(at.batch_size) : Json()},
                            {"fits", one ? Json(at.fits) : Json()},
                            {"peak_allocated_bytes", known_or_null(at.peak_allocated_bytes)},
                            {"peak_reserved_bytes", known_or_null(at.peak_reserved_bytes)},
                            {"step_time_ns", known_or_null(at.step_time_ns)},
                            {"throughput_sequences_per_s", or_null(row.sequences_per_s(at))},
                            {"reason", one ? Json() : Json(why)}});
        };
        if (!row.found) add(std::nullopt);
        if (!row.found) continue;
        for (const BatchTry& one : row.found->tries) add(one);
    }
    return json;
}

std::string rows_csv(const Json& rows) {
    constexpr std::array kKeys{"recipe",
                               "gpu",
                               "world_size",
                               "parallel",
                               "batch_size",
                               "fits",
                               "peak_allocated_bytes",
                               "peak_reserved_bytes",
                               "step_time_ns",
                               "throughput_sequences_per_s",
                               "reason"};
    CsvWriter csv;
    csv.row(std::vector<std::string>(kKeys.begin(), kKeys.end()));
    for (const Json& row : rows) {
        std::vector<std::string> cells;
        for (const char* key : kKeys) {
            const Json& value = row[key];
            cells.push_back(value.is_null()     ? std::string()
                            : value.is_string() ? value.get<std::string>()
                                                : value.dump());
        }
        csv.row(cells);
    }
    return csv.take();
}

Result<void> write_files(const std::string& file, const std::string& chart,
                         const std::vector<FitRow>& rows, const Json& document) {
    if (!file.empty()) {
        const std::string text =
            file.ends_with(".csv") ? rows_csv(document["rows"]) : json_text(document);
        if (auto ok = write_file(file, text); !ok) return ok;
    }
    return chart.empty() ? Result<void>() : write_bar_chart(fits_chart(rows), chart);
}

void print(Output& output, const std::vector<FitRow>& rows) {
    output.table(table_of(rows));
    output.line();
    for (const FitRow& row : rows) {
        const std::string& why = row.failure.empty() ? row.impossible : row.failure;
        output.line(row.found ? why_not(*row.found, name_of(row))
                              : fmt::format("{}: {}: {}", name_of(row), why_none(row), why));
    }
}

}  // namespace

Result<void> check_sweep_ranks_options(const Command& command) {
    for (const char* name : {"--model", "--world-size"}) {
        if (!command.is_given(name)) {
            return models::fail("--parallel trains a model on many GPUs: add {}.", name);
        }
    }
    for (const char* name : {"--batch", "--steps", "--warmup", "--seed", "--memory-limit",
                             "--overwrite", "--setup", "--auto", "--calibrate"}) {
        if (!command.is_given(name)) continue;
        return models::fail(
            "With --parallel a sweep runs every batch on whole virtual GPUs: leave {} out.", name);
    }
    return {};
}

Outcome sweep_ranks(const WorkloadOptions& workload, const SweepRanksOptions& options,
                    Output& output) {
    if (!workload.device.starts_with(kPredict)) {
        return wrong_usage(
            {"--parallel runs ranks on virtual GPUs: add --device predict:GPU, such as "
             "predict:a100-80gb."});
    }
    const std::string& file = workload.output;
    if (!file.empty() && !file.ends_with(".csv") && !file.ends_with(".json")) {
        return wrong_usage({fmt::format(
            "With --parallel, -o names a file that ends in .csv or .json, not {}.", file)});
    }
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto spreads = parse_spreads(options.parallel, options.world_sizes);
    if (!spreads) return wrong_usage(spreads.error());
    const auto request = make_plan_request(plan_options(workload, options), *data);
    if (!request) return wrong_usage(request.error());
    if (!options.chart.empty()) {
        if (const auto ok = check_chart_file(options.chart); !ok) return wrong_usage(ok.error());
    }
    for (const std::string& name : {file, options.chart}) {
        if (const auto ok = check_result_file(name); !ok) return failed(ok.error());
    }
    std::vector<FitRow> rows = make_fit_rows(*request, *data, *spreads);
    if (const auto ok = search_fits(rows, BatchOrder::kDoubled); !ok) return failed(ok.error());
    const Json document{{"rows", rows_json(rows)}};
    if (const auto ok = write_files(file, options.chart, rows, document); !ok) {
        return failed(ok.error());
    }
    if (output.json()) {
        output.document(document);
    } else {
        print(output, rows);
    }
    const bool any_fits = std::ranges::any_of(rows, [](const FitRow& row) { return row.fits(); });
    return any_fits ? ExitCode::kOk : ExitCode::kFailed;
}

}  // namespace app
