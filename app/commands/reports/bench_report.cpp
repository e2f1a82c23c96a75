#include "app/commands/reports/bench_report.h"

#include "app/commands/console/csv_writer.h"
#include "app/commands/console/json_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;
using models::BenchmarkKind;

/// In the order of the CSV's columns.
constexpr std::array<std::string_view, 25> kKeys{"benchmark",
                                                 "device",
                                                 "source",
                                                 "setup",
                                                 "status",
                                                 "reason",
                                                 "model",
                                                 "head",
                                                 "recipe",
                                                 "precision",
                                                 "seq_len",
                                                 "batch_size",
                                                 "gradient_accumulation_steps",
                                                 "num_layers",
                                                 "pass",
                                                 "size",
                                                 "time_ns",
                                                 "samples",
                                                 "model_flop",
                                                 "hardware_flop",
                                                 "model_tflops",
                                                 "hardware_tflops",
                                                 "bandwidth_bytes_per_s",
                                                 "throughput_sequences_per_s",
                                                 "peak_allocated_bytes"};

/// What a rate and the time make of the work; null without them.
Json flop_of(const BenchRow& row, const std::optional<double>& tflops) {
    if (!tflops) return {};
    return static_cast<int64_t>(*tflops * static_cast<double>(row.time.time_ns) * 1e3 + 0.5);
}

Json row_json(const BenchRow& row) {
    const models::Benchmark& b = row.benchmark;
    const models::Workload& w = b.workload;
    const bool is_model = b.kind == BenchmarkKind::kModel;
    const bool has_workload = is_model || b.kind == BenchmarkKind::kLayer;
    const auto of_workload = [&](Json value) { return has_workload ? std::move(value) : Json(); };
    const auto of_model = [&](Json value) { return is_model ? std::move(value) : Json(); };
    const auto known = [](int64_t value) { return value > 0 ? Json(value) : Json(); };
    const BenchRates rates = rates_of(row);
    return {{"benchmark", name_of(b.kind)},
            {"device", row.device},
            {"source", name_of(row.source)},
            {"setup", row.setup.empty() ? Json() : Json(row.setup)},
            {"status", status_of(row)},
            {"reason", row.reason},
            {"model", of_workload(w.model.name)},
            {"head", of_model(name_of(w.head))},
            {"recipe", of_workload(w.recipe_name)},
            {"precision", precision_of(b)},
            {"seq_len", of_workload(w.seq_len)},
            {"batch_size", of_workload(w.batch_size)},
            {"gradient_accumulation_steps", of_model(w.gradient_accumulation_steps)},
            {"num_layers", of_model(w.model.num_layers)},
            {"pass", has_workload && !is_model ? Json(pass_of(b)) : Json()},
            {"size", known(b.size)},
            {"time_ns", known(row.time.time_ns)},
            {"samples", known(row.time.samples)},
            {"model_flop", flop_of(row, rates.model_tflops)},
            {"hardware_flop", flop_of(row, rates.hardware_tflops)},
            {"model_tflops", or_null(rates.model_tflops)},
            {"hardware_tflops", or_null(rates.hardware_tflops)},
            {"bandwidth_bytes_per_s", or_null(rates.bytes_per_s)},
            {"throughput_sequences_per_s", or_null(rates.sequences_per_s)},
            {"peak_allocated_bytes", known(row.time.peak_allocated_bytes)},
            {"notes", row.notes}};
}

std::string cell_of(const Json& value) {
    if (value.is_null()) return {};
    return value.is_string() ? value.get<std::string>() : value.dump();
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
    Json json{{"charts", document.charts}, {"rows", Json::array()}};
    for (const BenchRow& row : document.rows) json["rows"].push_back(row_json(row));
    return json;
}

std::string bench_csv(const BenchDocument& document) {
    CsvWriter csv;
    csv.row(std::vector<std::string>(kKeys.begin(), kKeys.end()));
    for (const BenchRow& row : document.rows) {
        const Json json = row_json(row);
        std::vector<std::string> cells;
        for (const std::string_view key : kKeys) cells.push_back(cell_of(json.at(key)));
        csv.row(cells);
    }
    return csv.take();
}

}  // namespace app
