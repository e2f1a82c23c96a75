#include "profiler/view/kernels/bench_view.h"

#include "models/config/flop.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace profiler {
namespace {

using models::Benchmark;
using models::BenchmarkKind;

/// A column of figures: one device, measured, predicted or published.
struct Series {
    std::string device;
    BenchSource source = BenchSource::kMeasured;
    friend bool operator==(const Series&, const Series&) = default;
};

/// What was timed: a line of a table.
struct Line {
    Benchmark benchmark;
    std::string setup;
    friend bool operator==(const Line&, const Line&) = default;
};

Line line_of(const BenchRow& row) { return {row.benchmark, row.setup}; }

Series series_of(const BenchRow& row) { return {row.device, row.source}; }

std::string label_of(const Series& series) {
    return fmt::format("{}, {}", series.device, name_of(series.source));
}

std::vector<const BenchRow*> rows_of(const std::vector<BenchRow>& rows, BenchmarkKind kind) {
    std::vector<const BenchRow*> result;
    for (const BenchRow& row : rows) {
        if (row.benchmark.kind == kind) result.push_back(&row);
    }
    return result;
}

/// TFLOPS or GB/s: "136", "12.5", "0.0794".
std::string figure_text(double figure) {
    return figure >= 100 ? fmt::format("{:.0f}", figure)
           : figure >= 1 ? fmt::format("{:.1f}", figure)
                         : fmt::format("{:.3g}", figure);
}

/// What was timed, in columns: titles and cells.
using Cells = std::vector<std::pair<std::string, std::string>>;

Cells cells_of(const Line& line) {
    const Benchmark& b = line.benchmark;
    const models::Workload& w = b.workload;
    const auto number = [](int64_t n) { return format_count(n); };
    switch (b.kind) {
        case BenchmarkKind::kMatmul:
            return {{"matrices", fmt::format("{0} x {0}", b.size)},
                    {"precision", std::string(precision_of(b))}};
        case BenchmarkKind::kVector:
            return {{"elements", number(b.size)}};
        case BenchmarkKind::kLayer:
            return {{"layer of", w.model.name},
                    {"recipe", w.recipe_name},
                    {"precision", std::string(precision_of(b))},
                    {"S", number(w.seq_len)},
                    {"B", number(w.batch_size)},
                    {"pass", std::string(pass_of(b))}};
        case BenchmarkKind::kModel:
            return {{"model", w.model.name},
                    {"head", std::string(name_of(w.head))},
                    {"recipe", w.recipe_name},
                    {"precision", std::string(precision_of(b))},
                    {"S", number(w.seq_len)},
                    {"B", number(w.batch_size)},
                    {"micro-batches", number(w.gradient_accumulation_steps)},
                    {"software", line.setup}};
    }
    return {};
}

/// The figures of a row: titles and cells.
Cells figures_of(const BenchRow& row) {
    const std::string none = row.time.out_of_memory ? "out of memory"
                             : row.reason.empty()   ? kNoValue
                                                    : "not possible";
    const BenchRates rates = rates_of(row);
    const auto text = [&](const std::optional<double>& value, auto format) {
        return value ? format(*value) : none;
    };
    switch (row.benchmark.kind) {
        case BenchmarkKind::kMatmul:
            return {{"TFLOPS", text(rates.model_tflops, figure_text)}};
        case BenchmarkKind::kVector:
            return {
                {"GB/s", text(rates.bytes_per_s, [](double v) { return figure_text(v / kGiga); })}};
        case BenchmarkKind::kLayer:
            return {{"TFLOPS", text(rates.model_tflops, figure_text)},
                    {"hardware", text(rates.hardware_tflops, figure_text)}};
        case BenchmarkKind::kModel:
            return {{"sequences/s", text(rates.sequences_per_s, format_rate)},
                    {"TFLOPS", text(rates.model_tflops, figure_text)},
                    {"hardware", text(rates.hardware_tflops, figure_text)},
                    {"peak", row.time.peak_allocated_bytes > 0
                                 ? format_bytes(row.time.peak_allocated_bytes)
                                 : none}};
    }
    return {};
}

const char* title_of(BenchmarkKind kind) {
    constexpr std::array<const char*, models::kBenchmarkNames.size()> kTitles{
        "Products of square matrices", "y = 1.2 x, fp32", "One layer", "Whole training steps"};
    return kTitles[static_cast<std::size_t>(kind)];
}

TextTable table_of(const std::vector<const BenchRow*>& rows) {
    TextTable table;
    std::vector<Series> series;
    std::vector<Line> lines;
    for (const BenchRow* row : rows) {
        index_in(series, series_of(*row));
        index_in(lines, line_of(*row));
    }
    for (const auto& [title, cell] : cells_of(lines.front())) {
        const bool is_number = !cell.empty() && cell.find_first_not_of("0123456789,") == cell.npos;
        table.columns.push_back({title, is_number ? Align::kRight : Align::kLeft});
    }
    const Cells figures = figures_of(*rows.front());
    for (const Series& one : series) {
        for (std::size_t i = 0; i < figures.size(); ++i) {
            table.columns.push_back(
                {i == 0 ? fmt::format("{}: {}", label_of(one), figures[i].first) : figures[i].first,
                 Align::kRight});
        }
    }
    for (const Line& line : lines) {
        std::vector<std::string>& cells = table.rows.emplace_back();
        for (auto& [title, cell] : cells_of(line)) cells.push_back(std::move(cell));
        cells.resize(cells.size() + series.size() * figures.size(), kNoValue);
    }
    const std::size_t first = table.columns.size() - series.size() * figures.size();
    for (const BenchRow* row : rows) {
        const std::size_t line = index_in(lines, line_of(*row));
        const std::size_t place = first + index_in(series, series_of(*row)) * figures.size();
        const Cells own = figures_of(*row);
        for (std::size_t i = 0; i < own.size(); ++i) table.rows[line][place + i] = own[i].second;
    }
    return table;
}

// ---- charts ----------------------------------------------------------------------------------

/// What a group of bars stands for: the benchmark without what panels tell apart.
std::string group_of(const Line& line) {
    const Benchmark& b = line.benchmark;
    const models::Workload& w = b.workload;
    switch (b.kind) {
        case BenchmarkKind::kMatmul:
            return fmt::format("{0} x {0}", b.size);
        case BenchmarkKind::kVector:
            return fmt::format("{} elements", format_count(b.size));
        case BenchmarkKind::kLayer:
            return fmt::format("{}, S {} B {}{}", w.model.name, w.seq_len, w.batch_size,
                               w.recipe_name == "original" ? "" : ", " + w.recipe_name);
        case BenchmarkKind::kModel:
            return fmt::format("{}, {}, S {} B {}{}{}", w.model.name, name_of(w.precision),
                               w.seq_len, w.batch_size,
                               w.gradient_accumulation_steps > 1
                                   ? fmt::format(" x {}", w.gradient_accumulation_steps)
                                   : "",
                               w.recipe_name == "original" ? "" : ", " + w.recipe_name) +
                   (line.setup.empty() ? "" : ", " + line.setup);
    }
    return {};
}

/// "pure-fp16": the precisions of layers, which their groups do not name.
std::string subtitle_of(const std::vector<const BenchRow*>& rows, BenchmarkKind kind) {
    if (kind != BenchmarkKind::kLayer) return {};
    std::vector<std::string> precisions;
    for (const BenchRow* row : rows) {
        index_in(precisions, fmt::format("{} in {}", row->device, precision_of(row->benchmark)));
    }
    return fmt::format("{}", fmt::join(precisions, ", "));
}

/// A panel and the bar that a row has in it; nullopt: the row belongs to another panel.
struct PanelRule {
    std::string title, remark;
    AxisUnit unit = AxisUnit::kRate;
    std::function<std::optional<BarChart::Bar>(const BenchRow&)> bar;
};

BarChart::Bar bar_of(const BenchRow& row, const std::optional<double>& value, std::string text) {
    if (value && *value > 0) return {.value = *value, .text = std::move(text)};
    return {.text = row.time.out_of_memory ? "out of memory"
                    : row.reason.empty()   ? ""
                                           : "not possible"};
}

BarChart::Bar tflops_bar(const BenchRow& row, const std::optional<double>& value) {
    return bar_of(row, value, value ? figure_text(*value) : "");
}

std::vector<PanelRule> matmul_rules(const std::vector<const BenchRow*>& rows) {
    std::vector<models::Precision> precisions;
    for (const BenchRow* row : rows) index_in(precisions, row->benchmark.workload.precision);
    std::vector<PanelRule> rules;
    for (const models::Precision precision : precisions) {
        rules.push_back({fmt::format("{}", name_of(precision)), "TFLOPS", AxisUnit::kRate,
                         [precision](const BenchRow& row) -> std::optional<BarChart::Bar> {
                             if (row.benchmark.workload.precision != precision) return std::nullopt;
                             return tflops_bar(row, rates_of(row).model_tflops);
                         }});
    }
    return rules;
}

std::vector<PanelRule> layer_rules() {
    const auto pass = [](bool has_backward, auto value) {
        return [=](const BenchRow& row) -> std::optional<BarChart::Bar> {
            if (row.benchmark.has_backward != has_backward) return std::nullopt;
            return tflops_bar(row, value(rates_of(row)));
        };
    };
    return {{"Forward", "TFLOPS", AxisUnit::kRate,
             pass(false, [](const BenchRates& r) { return r.model_tflops; })},
            {"Forward and backward", "model TFLOPS: 3 x forward", AxisUnit::kRate,
             pass(true, [](const BenchRates& r) { return r.model_tflops; })},
            {"Forward and backward, as run", "hardware TFLOPS: every product that runs",
             AxisUnit::kRate, pass(true, [](const BenchRates& r) { return r.hardware_tflops; })}};
}

std::vector<PanelRule> model_rules() {
    return {{"Throughput", "sequences/s", AxisUnit::kRate,
             [](const BenchRow& row) {
                 const auto rate = rates_of(row).sequences_per_s;
                 return std::optional(bar_of(row, rate, rate ? format_rate(*rate) : ""));
             }},
            {"Model TFLOPS", "pale: hardware, with what is computed again", AxisUnit::kRate,
             [](const BenchRow& row) {
                 const BenchRates rates = rates_of(row);
                 BarChart::Bar bar = tflops_bar(row, rates.model_tflops);
                 if (rates.hardware_tflops > rates.model_tflops) bar.outer = *rates.hardware_tflops;
                 return std::optional(bar);
             }},
            {"Memory", "peak allocated bytes", AxisUnit::kBytes, [](const BenchRow& row) {
                 const int64_t bytes = row.time.peak_allocated_bytes;
                 return std::optional(bar_of(
                     row, bytes > 0 ? std::optional(static_cast<double>(bytes)) : std::nullopt,
                     bytes > 0 ? format_bytes(bytes) : ""));
             }}};
}

std::vector<PanelRule> rules_of(const std::vector<const BenchRow*>& rows, BenchmarkKind kind) {
    switch (kind) {
        case BenchmarkKind::kMatmul:
            return matmul_rules(rows);
        case BenchmarkKind::kVector:
            return {
                {"Bandwidth", "GB/s, read and written", AxisUnit::kRate, [](const BenchRow& row) {
                     const auto rate = rates_of(row).bytes_per_s;
                     return std::optional(bar_of(row,
                                                 rate ? std::optional(*rate / kGiga) : std::nullopt,
                                                 rate ? figure_text(*rate / kGiga) : ""));
                 }}};
        case BenchmarkKind::kLayer:
            return layer_rules();
        case BenchmarkKind::kModel:
            return model_rules();
    }
    return {};
}

/// What the figures are, below the chart.
std::vector<std::string> notes_of(BenchmarkKind kind, const std::vector<Series>& series) {
    std::vector<std::string> notes;
    if (kind == BenchmarkKind::kLayer || kind == BenchmarkKind::kModel) {
        notes.emplace_back(
            "Model TFLOPS take three times the products of forward. Hardware TFLOPS take every "
            "product that runs: with what is computed again, without gradients that nobody needs.");
    }
    const auto is_published = [](const Series& one) {
        return one.source == BenchSource::kPublished;
    };
    if (std::ranges::any_of(series, is_published)) {
        notes.emplace_back("Published: mli/transformers-benchmarks.");
        if (kind == BenchmarkKind::kModel) {
            notes.back() += " Its memory includes a counter of the host's memory.";
        }
    }
    return notes;
}

}  // namespace

BenchRates rates_of(const BenchRow& row) {
    BenchRates rates;
    if (!row.has_time() || row.time.time_ns <= 0) return rates;
    const double seconds = static_cast<double>(row.time.time_ns) / kNsPerS;
    const Benchmark& b = row.benchmark;
    const auto tflops = [&](double flop) { return flop / seconds / kTera; };
    const auto size = static_cast<double>(b.size);
    switch (b.kind) {
        case BenchmarkKind::kMatmul:
            rates.model_tflops = rates.hardware_tflops = tflops(2 * size * size * size);
            break;
        case BenchmarkKind::kVector:
            rates.bytes_per_s = 2 * sizeof(float) * size / seconds;
            break;
        case BenchmarkKind::kLayer: {
            const auto forward = models::layer_forward_flop(b.workload);
            const models::Flop flop =
                b.has_backward ? models::layer_flop(b.workload) : models::Flop{forward, forward};
            rates.model_tflops = tflops(static_cast<double>(flop.model));
            rates.hardware_tflops = tflops(static_cast<double>(flop.hardware));
            break;
        }
        case BenchmarkKind::kModel: {
            const models::Flop flop = models::step_flop(b.workload);
            rates.model_tflops = tflops(static_cast<double>(flop.model));
            rates.hardware_tflops = tflops(static_cast<double>(flop.hardware));
            rates.sequences_per_s = static_cast<double>(sequences_per_step(b.workload)) / seconds;
            break;
        }
    }
    return rates;
}

std::string_view status_of(const BenchRow& row) {
    if (row.time.out_of_memory) return "out_of_memory";
    return row.reason.empty() ? "ok" : "not_possible";
}

std::string_view pass_of(const Benchmark& benchmark) {
    if (benchmark.kind != BenchmarkKind::kLayer) return {};
    return benchmark.has_backward ? "forward and backward" : "forward";
}

std::string_view precision_of(const Benchmark& benchmark) {
    return benchmark.kind == BenchmarkKind::kVector ? name_of(models::Precision::kFp32)
                                                    : name_of(benchmark.workload.precision);
}

std::vector<BenchTable> bench_tables(const std::vector<BenchRow>& rows) {
    std::vector<BenchTable> tables;
    for (std::size_t i = 0; i < models::kBenchmarkNames.size(); ++i) {
        const auto kind = static_cast<BenchmarkKind>(i);
        const auto own = rows_of(rows, kind);
        if (!own.empty()) tables.push_back({kind, title_of(kind), table_of(own)});
    }
    return tables;
}

BarChart bench_chart(const std::vector<BenchRow>& rows, BenchmarkKind kind) {
    const auto own = rows_of(rows, kind);
    BarChart chart;
    if (own.empty()) return chart;
    chart.title = title_of(kind);
    chart.subtitle = subtitle_of(own, kind);
    chart.table = table_of(own);
    std::vector<Series> series;
    std::vector<std::string> devices;
    for (const BenchRow* row : own) {
        index_in(series, series_of(*row));
        index_in(chart.groups, group_of(line_of(*row)));
    }
    for (const Series& one : series) {
        chart.series.push_back(label_of(one));
        chart.devices.push_back(index_in(devices, one.device));
        chart.sources.push_back(one.source);
    }
    chart.notes = notes_of(kind, series);
    for (const PanelRule& rule : rules_of(own, kind)) {
        BarChart::Panel panel{rule.title, rule.remark, rule.unit, {}};
        panel.groups.resize(chart.groups.size());
        for (const BenchRow* row : own) {
            auto bar = rule.bar(*row);
            if (!bar) continue;
            bar->series = index_in(series, series_of(*row));
            panel.groups[index_in(chart.groups, group_of(line_of(*row)))].push_back(
                std::move(*bar));
        }
        chart.panels.push_back(std::move(panel));
    }
    return chart;
}

}  // namespace profiler
