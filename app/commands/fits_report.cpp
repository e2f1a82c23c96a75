#include "app/commands/fits_report.h"

#include "app/commands/batch_report.h"
#include "app/commands/console/json_values.h"
#include "profiler/trace/units.h"
#include "profiler/view/compare_figures.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>

namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;

/// "bert-large, mlm head, S=512, fp32, recipe tempo"
std::string step_of(const FitRow& row) {
    const models::Workload& w = row.workload;
    return fmt::format("{}, {} layers, {} head, S={}, {}, recipe {}", w.model.name,
                       w.model.num_layers, models::name_of(w.head), w.seq_len,
                       models::name_of(w.precision), w.recipe_name);
}

bool has_several_steps(const std::vector<FitRow>& rows) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const FitRow& row) { return step_of(row) != step_of(rows.front()); });
}

/// "8 x rtx4090 with fsdp2"; "1 x rtx4090".
std::string subject_of(const FitRow& row, bool with_step) {
    std::string text = row.gpus();
    if (row.world_size > 1) text += " with " + models::to_text(row.parallel);
    return with_step ? fmt::format("{} ({})", text, step_of(row)) : text;
}

double memory_of_cards(const FitRow& row) {
    return static_cast<double>(row.world_size) * row.gpu->memory_bytes.value;
}

/// The way to fit on the least memory of all cards together; of several the largest step. Null:
/// none fits, or rows train different steps.
const FitRow* least_of(const std::vector<FitRow>& rows) {
    if (has_several_steps(rows)) return nullptr;
    const auto rank = [](const FitRow& row) {
        return std::tuple(!row.fits(), memory_of_cards(row),
                          row.fits() ? -row.sequences_per_step(*row.found->largest) : 0);
    };
    const auto least =
        std::min_element(rows.begin(), rows.end(),
                         [&](const FitRow& a, const FitRow& b) { return rank(a) < rank(b); });
    return least != rows.end() && least->fits() ? &*least : nullptr;
}

TextTable table_of(const std::vector<FitRow>& rows) {
    TextTable table;
    table.columns = {{"GPUs", Align::kLeft, {}},
                     {"step", Align::kLeft, {}},
                     {"strategy", Align::kLeft, {}},
                     {"batch of a GPU", Align::kRight, {}},
                     {"sequences of a step", Align::kRight, {}},
                     {"sequences/s", Align::kRight, "of all GPUs, modelled with communication"},
                     {"peak", Align::kRight, "allocated, of the GPU that needs the most"},
                     {"by closed terms", Align::kRight, "the same by the planner's formulas"}};
    const bool with_step = has_several_steps(rows);
    for (const FitRow& row : rows) {
        const BatchTry largest = row.fits() ? *row.found->largest : BatchTry{};
        const std::optional<double> rate = row.sequences_per_s(largest);
        table.rows.push_back(
            {row.gpus(), with_step ? step_of(row) : "", models::to_text(row.parallel),
             row.fits() ? format_count(largest.batch_size) : why_none(row),
             row.fits() ? format_count(row.sequences_per_step(largest)) : "–",
             rate ? rate_text(*rate) : "–", size_text(largest.peak_allocated_bytes),
             size_text(row.closed_terms_bytes.value_or(-1))});
    }
    return table;
}

Json row_json(const FitRow& row) {
    Json json = batch_json(row.found.value_or(LargestBatch{.of = {.gpu = row.gpu->id}}));
    json["values"] = {{"model", row.workload.model.name},
                      {"recipe", row.workload.recipe_name},
                      {"precision", models::name_of(row.workload.precision)},
                      {"parallel", models::to_text(row.parallel)}};
    json["seq_len"] = row.workload.seq_len;
    json["world_size"] = row.world_size;
    const BatchTry largest = row.fits() ? *row.found->largest : BatchTry{};
    json["sequences_per_step"] = row.fits() ? Json(row.sequences_per_step(largest)) : Json();
    json["throughput_sequences_per_s"] = or_null(row.sequences_per_s(largest));
    json["closed_terms_bytes"] = row.closed_terms_bytes ? Json(*row.closed_terms_bytes) : Json();
    json["impossible"] = row.impossible.empty() ? Json() : Json(row.impossible);
    json["failure"] = row.failure.empty() ? Json() : Json(row.failure);
    return json;
}

template <typename Value>
std::size_t place_of(std::vector<Value>& values, const Value& value) {
    const auto found = std::find(values.begin(), values.end(), value);
    if (found != values.end()) return static_cast<std::size_t>(found - values.begin());
    values.push_back(value);
    return values.size() - 1;
}

}  // namespace

void print_fits(Output& output, const std::vector<FitRow>& rows) {
    const bool with_step = has_several_steps(rows);
    if (!with_step) output.line(step_of(rows.front()));
    output.table(table_of(rows));
    output.line();
    if (const FitRow* least = least_of(rows)) {
        output.line(fmt::format("On the least memory of cards: {} fits {} a GPU.",
                                subject_of(*least, with_step),
                                format_count(least->found->largest->batch_size)));
    }
    for (const FitRow& row : rows) {
        const std::string subject = subject_of(row, with_step);
        if (row.found) {
            output.line(why_not(*row.found, subject));
        } else {
            output.line(fmt::format("{}: {}: {}", subject, why_none(row),
                                    row.failure.empty() ? row.impossible : row.failure));
        }
    }
}

Json fits_json(const std::vector<FitRow>& rows) {
    Json json{{"rows", Json::array()}, {"least", Json()}};
    for (const FitRow& row : rows) json["rows"].push_back(row_json(row));
    if (const FitRow* least = least_of(rows)) json["least"] = least - rows.data();
    return json;
}

std::string fits_csv(const std::vector<FitRow>& rows) {
    return batches_csv(fits_json(rows)["rows"], {"GPUs", "parallel"},
                       {"seq_len", "world_size", "sequences_per_step", "throughput_sequences_per_s",
                        "closed_terms_bytes", "impossible", "failure"});
}

BarChart fits_chart(const std::vector<FitRow>& rows) {
    BarChart chart{.title = "What fits where", .subtitle = {}};
    chart.panels = {{.title = "Largest batch of a GPU", .unit = AxisUnit::kCount},
                    {.title = "Sequences of a step", .unit = AxisUnit::kCount},
                    {.title = "Sequences/s, modelled", .unit = AxisUnit::kRate}};
    const bool with_step = has_several_steps(rows);
    if (!with_step) chart.subtitle = step_of(rows.front());
    for (const FitRow& row : rows) {
        const std::size_t series = place_of(chart.series, models::to_text(row.parallel));
        const std::size_t group =
            place_of(chart.groups, with_step ? row.gpus() + ", " + step_of(row) : row.gpus());
        const auto add = [&](std::size_t panel, double value, const std::string& text) {
            chart.panels[panel].groups.resize(chart.groups.size());
            chart.panels[panel].groups[group].push_back(
                {.series = series, .value = value, .text = row.fits() ? text : why_none(row)});
        };
        const BatchTry largest = row.fits() ? *row.found->largest : BatchTry{};
        const int64_t sequences = row.fits() ? row.sequences_per_step(largest) : 0;
        const double rate = row.sequences_per_s(largest).value_or(0);
        add(0, static_cast<double>(largest.batch_size), format_count(largest.batch_size));
        add(1, static_cast<double>(sequences), format_count(sequences));
        add(2, rate, rate > 0 ? rate_text(rate) : "not known");
    }
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
        chart.devices.push_back(i);
        chart.sources.push_back(BenchSource::kPredicted);
    }
    chart.table = table_of(rows);
    return chart;
}

}  // namespace app
