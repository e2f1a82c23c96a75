#include "app/commands/reports/bench_report.h"

#include "profiler/tables/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;
using models::BenchmarkKind;

bool is_model(const BenchRow& row) { return row.benchmark.kind == BenchmarkKind::kModel; }
bool is_layer(const BenchRow& row) { return row.benchmark.kind == BenchmarkKind::kLayer; }

/// What a rate and the time make of the work; none without them.
Cell flop_of(const BenchRow& row, const std::optional<double>& tflops) {
    if (!tflops) return {};
    return static_cast<int64_t>(*tflops * static_cast<double>(row.time.time_ns) * 1e3 + 0.5);
}

using BenchColumn = TableColumn<BenchRow>;

/// A value of benchmarks that have a workload.
template <typename Of>
BenchColumn of_workload(const char* id, const Of& of) {
    return {.id = id, .value = [of](const BenchRow& row) {
                const bool has_workload = is_model(row) || is_layer(row);
                return has_workload ? Cell(of(row.benchmark.workload)) : Cell();
            }};
}

template <typename Of>
BenchColumn of_model(const char* id, const Of& of) {
    return {.id = id, .value = [of](const BenchRow& row) {
                return is_model(row) ? Cell(of(row.benchmark.workload)) : Cell();
            }};
}

template <typename Of>
BenchColumn of_rates(const char* id, const Of& of) {
    return {.id = id, .value = [of](const BenchRow& row) { return Cell(of(row, rates_of(row))); }};
}

/// In the order of the CSV's columns.
std::vector<BenchColumn> bench_columns() {
    using Row = const BenchRow&;
    using Rates = const BenchRates&;
    const auto column = [](const char* id, auto value) {
        return BenchColumn{.id = id, .value = value};
    };
    return {
        column("benchmark", [](Row row) { return name_of(row.benchmark.kind); }),
        column("device", &BenchRow::device),
        column("source", [](Row row) { return name_of(row.source); }),
        column("setup", [](Row row) { return known(row.setup); }),
        column("status", status_of),
        column("reason", &BenchRow::reason),
        of_workload("model", [](auto& w) { return w.model.name; }),
        of_model("head", [](auto& w) { return name_of(w.head); }),
        of_workload("recipe", [](auto& w) { return w.recipe_name; }),
        column("precision", [](Row row) { return precision_of(row.benchmark); }),
        of_workload("seq_len", [](auto& w) { return w.seq_len; }),
        of_workload("batch_size", [](auto& w) { return w.batch_size; }),
        of_model("gradient_accumulation_steps",
                 [](auto& w) { return w.gradient_accumulation_steps; }),
        of_model("num_layers", [](auto& w) { return w.model.num_layers; }),
        column("pass",
               [](Row row) { return is_layer(row) ? Cell(pass_of(row.benchmark)) : Cell(); }),
        column("size", [](Row row) { return known(row.benchmark.size); }),
        column("time_ns", [](Row row) { return known(row.time.time_ns); }),
        column("samples", [](Row row) { return known(row.time.samples); }),
        of_rates("model_flop", [](Row row, Rates r) { return flop_of(row, r.model_tflops); }),
        of_rates("hardware_flop", [](Row row, Rates r) { return flop_of(row, r.hardware_tflops); }),
        of_rates("model_tflops", [](Row, Rates r) { return r.model_tflops; }),
        of_rates("hardware_tflops", [](Row, Rates r) { return r.hardware_tflops; }),
        of_rates("bandwidth_bytes_per_s", [](Row, Rates r) { return r.bytes_per_s; }),
        of_rates("throughput_sequences_per_s", [](Row, Rates r) { return r.sequences_per_s; }),
        column("peak_allocated_bytes",
               [](Row row) { return known(row.time.peak_allocated_bytes); }),
    };
}

/// Each sentence once, with the devices that it is about.
std::vector<std::pair<std::string, std::vector<std::string>>> sentences_of(
    const std::vector<BenchRow>& rows,
    const std::function<std::vector<std::string>(const BenchRow&)>& texts_of) {
    std::vector<std::pair<std::string, std::vector<std::string>>> sentences;
    for (const BenchRow& row : rows) {
        for (const std::string& text : texts_of(row)) {
            auto same = std::find_if(sentences.begin(), sentences.end(),
                                     [&](const auto& one) { return one.first == text; });
            if (same == sentences.end()) same = sentences.insert(same, {text, {}});
            std::vector<std::string>& devices = same->second;
            if (std::find(devices.begin(), devices.end(), row.device) == devices.end()) {
                devices.push_back(row.device);
            }
        }
    }
    return sentences;
}

void print_sentences(Output& output, const char* heading, const std::vector<BenchRow>& rows,
                     const std::function<std::vector<std::string>(const BenchRow&)>& texts_of) {
    const auto sentences = sentences_of(rows, texts_of);
    if (sentences.empty()) return;
    output.heading(heading);
    for (const auto& [text, devices] : sentences) {
        output.line(fmt::format("  {}: {}", fmt::join(devices, ", "), text));
    }
}

}  // namespace

void print_bench(Output& output, const BenchDocument& document) {
    for (const BenchTable& table : bench_tables(document.rows)) {
        output.heading(table.title);
        output.table(table.table);
    }
    print_sentences(output, "Why not", document.rows, [](const BenchRow& row) {
        return row.reason.empty() ? std::vector<std::string>() : std::vector{row.reason};
    });
    const auto notes_of = [](BenchSource source) {
        return [source](const BenchRow& row) {
            return row.source == source ? row.notes : std::vector<std::string>();
        };
    };
    print_sentences(output, "Measurements", document.rows, notes_of(BenchSource::kMeasured));
    print_sentences(output, "Assumptions", document.rows, notes_of(BenchSource::kPredicted));
    for (const std::string& file : document.charts) output.line("wrote " + file);
}

Json bench_json(const BenchDocument& document) {
    Json rows = json_rows(data_table(bench_columns(), document.rows));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["notes"] = document.rows[i].notes;
    return {{"charts", document.charts}, {"rows", std::move(rows)}};
}

std::string bench_csv(const BenchDocument& document) {
    return to_csv(data_table(bench_columns(), document.rows), Decimals::kAsJson);
}

}  // namespace app
