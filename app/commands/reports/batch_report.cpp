#include "app/commands/reports/batch_report.h"

#include "app/commands/console/json_values.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/step/throughput.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/units.h"
#include "profiler/view/programs/compare_figures.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;

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
std::string failed_request(const BatchRun& above) {
    if (above.requested_bytes < 0) return {};
    return fmt::format(" {} were requested{}.", format_bytes(above.requested_bytes),
                       above.free_bytes < 0
                           ? ""
                           : fmt::format(" when {} were free", format_bytes(above.free_bytes)));
}

/// " Largest: logits 8.00 GiB, addmm_output 6.00 GiB."
std::string largest_tensors(const BatchRun& above) {
    std::string text;
    for (const LiveTensor& tensor : above.largest) {
        text += fmt::format("{}{} {}", text.empty() ? " Largest: " : ", ", tensor.name,
                            format_bytes(tensor.size_bytes));
    }
    return text.empty() ? text : text + ".";
}

Json tensors_json(const std::vector<LiveTensor>& tensors) {
    Json json = Json::array();
    for (const LiveTensor& tensor : tensors) {
        json.push_back({{"name", tensor.name}, {"size_bytes", tensor.size_bytes}});
    }
    return json;
}

std::string csv_text(const Json& value) {
    if (value.is_null()) return {};
    return value.is_string() ? value.get<std::string>() : value.dump();
}

/// "–" for -1: not known.
std::string size_text(int64_t bytes) { return bytes < 0 ? "–" : format_bytes(bytes); }

/// "a100-40gb", "a100-40gb, SEQ=512"
std::string name_of(const ProgramCase& one) {
    std::string text = one.gpu;
    for (const auto& [name, value] : one.values) text += fmt::format(", {}={}", name, value);
    return text;
}

/// Why the first batch that does not fit does not. The sentence begins with `subject`.
std::string why_not(const LargestBatch& found, std::string_view subject) {
    if (!found.first_above) {
        const int64_t batch_size = found.largest->batch_size;
        if (!found.of.why_most.empty()) {
            return fmt::format("{}: {}", subject,
                               not_limited_by_memory(batch_size, found.of.why_most));
        }
        return fmt::format("{}: the search ended at {}; larger batches fit, too.", subject,
                           batch_size);
    }
    const BatchRun& above = *found.first_above;
    if (above.peak_allocated_bytes < 0) {
        return fmt::format("{}: a batch of {} runs out of memory before its first step.", subject,
                           above.batch_size);
    }
    return fmt::format("{}: a batch of {} runs out of memory at {} ({}){}.{}{}", subject,
                       above.batch_size, format_bytes(above.peak_allocated_bytes),
                       what_filled(above.by_category),
                       above.place.empty() ? "" : ", in " + above.place, failed_request(above),
                       largest_tensors(above));
}

Json batch_json(const LargestBatch& row) {
    Json json{{"gpu", row.of.gpu},
              {"values", Json::object()},
              {"max_batch_size", Json()},
              {"peak_allocated_bytes", Json()},
              {"peak_reserved_bytes", Json()},
              {"step_time_ns", Json()},
              {"failing_batch_size", Json()},
              {"failing_place", Json()},
              {"failing_requested_bytes", Json()},
              {"failing_free_bytes", Json()},
              {"failing_by_class", Json()},
              {"failing_tensors", Json()}};
    for (const auto& [name, value] : row.of.values) json["values"][name] = value;
    if (row.largest) {
        json["max_batch_size"] = row.largest->batch_size;
        json["peak_allocated_bytes"] = known_or_null(row.largest->peak_allocated_bytes);
        json["peak_reserved_bytes"] = known_or_null(row.largest->peak_reserved_bytes);
        json["step_time_ns"] = known_or_null(row.largest->step_time_ns);
    }
    if (row.first_above) {
        json["failing_batch_size"] = row.first_above->batch_size;
        json["failing_place"] = row.first_above->place;
        json["failing_requested_bytes"] = known_or_null(row.first_above->requested_bytes);
        json["failing_free_bytes"] = known_or_null(row.first_above->free_bytes);
        json["failing_by_class"] = by_class_json(row.first_above->by_category);
        json["failing_tensors"] = tensors_json(row.first_above->largest);
    }
    return json;
}

/// The columns are the keys of a row, `more_keys` before those of batch_json. Classes have a column
/// each, and so do the values, in the order of `value_names`; the tensors stand in one: "logits
/// 8589934592; gelu_output 4294967296".
std::string batches_csv(const Json& rows, const std::vector<std::string>& value_names,
                        const std::vector<std::string>& more_keys = {}) {
    DataTable table;
    for (const Json& row : rows) {
        table.columns.clear();
        std::vector<Cell>& cells = table.rows.emplace_back();
        const auto add = [&](std::string name, const Json& value) {
            table.columns.push_back(std::move(name));
            cells.push_back(csv_text(value));
        };
        add("gpu", row["gpu"]);
        for (const std::string& name : value_names) add(name, row["values"].value(name, Json()));
        for (const std::string& key : more_keys) add(key, row[key]);
        for (const char* key : {"max_batch_size", "peak_allocated_bytes", "peak_reserved_bytes",
                                "step_time_ns", "failing_batch_size", "failing_place",
                                "failing_requested_bytes", "failing_free_bytes"}) {
            add(key, row[key]);
        }
        for (const std::string_view category : kCategoryNames) {
            const std::string key = fmt::format("{}_bytes", category);
            const Json& by_class = row["failing_by_class"];
            add("failing_" + key, by_class.is_null() ? Json() : by_class.value(key, Json()));
        }
        std::string tensors;
        for (const Json& tensor : row["failing_tensors"]) {
            tensors += fmt::format("{}{} {}", tensors.empty() ? "" : "; ",
                                   tensor["name"].get<std::string>(), tensor["size_bytes"].dump());
        }
        add("failing_tensors", tensors);
    }
    return to_csv(table);
}

// ---- programs ----------------------------------------------------------------------------------

TextTable program_table(const std::vector<LargestBatch>& rows) {
    TextTable table;
    table.columns = {{"gpu", Align::kLeft}};
    for (const auto& [name, value] : rows.front().of.values) {
        table.columns.push_back({name, Align::kRight});
    }
    for (const char* title : {"largest batch", "peak", "reserved"}) {
        table.columns.push_back({title, Align::kRight});
    }
    for (const LargestBatch& row : rows) {
        std::vector<std::string>& cells = table.rows.emplace_back(1, row.of.gpu);
        for (const auto& [name, value] : row.of.values) cells.push_back(value);
        const BatchRun largest = row.largest.value_or(BatchRun{});
        cells.push_back(row.largest ? format_count(largest.batch_size) : "none");
        cells.push_back(size_text(largest.peak_allocated_bytes));
        cells.push_back(size_text(largest.peak_reserved_bytes));
    }
    return table;
}

Json program_json(const std::vector<LargestBatch>& rows) {
    Json json{{"rows", Json::array()}};
    for (const LargestBatch& row : rows) json["rows"].push_back(batch_json(row));
    return json;
}

// ---- models over many GPUs ---------------------------------------------------------------------

/// "8 x rtx4090"
std::string gpus_of(const ParallelRow& row) {
    return fmt::format("{} x {}", row.world_size, row.gpu->id);
}

/// What the step of all GPUs trains at this batch of one GPU.
int64_t sequences_per_step(const ParallelRow& row, const BatchRun& at) {
    models::Workload workload = row.workload;
    workload.batch_size = at.batch_size;
    return models::sequences_per_step(workload, row.parallel, row.world_size);
}

/// Of all GPUs together; none: the time of the step is not known.
std::optional<double> rate_of(const ParallelRow& row, const BatchRun& at) {
    if (at.step_time_ns <= 0) return std::nullopt;
    return sequences_per_s(sequences_per_step(row, at), at.step_time_ns);
}

std::string rate_cell(const std::optional<double>& rate) { return rate ? format_rate(*rate) : "–"; }

/// In place of a batch.
std::string why_none(const ParallelRow& row) {
    if (!row.impossible.empty()) return "impossible";
    return row.failure.empty() ? "does not fit" : "failed";
}

void print_reason(Output& output, const ParallelRow& row, const std::string& subject) {
    const std::string& why = row.failure.empty() ? row.impossible : row.failure;
    output.line(row.found ? why_not(*row.found, subject)
                          : fmt::format("{}: {}: {}", subject, why_none(row), why));
}

/// "bert-large, 24 layers, mlm head, S=512, fp32, recipe tempo"
std::string step_of(const ParallelRow& row) {
    const models::Workload& w = row.workload;
    return fmt::format("{}, {} layers, {} head, S={}, {}, recipe {}", w.model.name,
                       w.model.num_layers, models::name_of(w.head), w.seq_len,
                       models::name_of(w.precision), w.recipe_name);
}

bool has_several_steps(const std::vector<ParallelRow>& rows) {
    return std::ranges::any_of(
        rows, [&](const ParallelRow& row) { return step_of(row) != step_of(rows.front()); });
}

/// "8 x rtx4090 with fsdp2"; "1 x rtx4090".
std::string subject_of(const ParallelRow& row, bool with_step) {
    std::string text = gpus_of(row);
    if (row.world_size > 1) text += " with " + models::to_text(row.parallel);
    return with_step ? fmt::format("{} ({})", text, step_of(row)) : text;
}

/// The way to fit on the least memory of all cards together; of several the largest step. Null:
/// none fits, or rows train different steps.
const ParallelRow* least_of(const std::vector<ParallelRow>& rows) {
    if (has_several_steps(rows)) return nullptr;
    const auto rank = [](const ParallelRow& row) {
        return std::tuple(!row.fits(),
                          static_cast<double>(row.world_size) * row.gpu->memory_bytes.value,
                          row.fits() ? -sequences_per_step(row, *row.found->largest) : 0);
    };
    const auto least = std::ranges::min_element(rows, {}, rank);
    return least != rows.end() && least->fits() ? &*least : nullptr;
}

TextTable largest_table(const std::vector<ParallelRow>& rows) {
    TextTable table;
    table.columns = {{"GPUs", Align::kLeft},
                     {"step", Align::kLeft},
                     {"strategy", Align::kLeft},
                     {"batch of a GPU", Align::kRight},
                     {"sequences of a step", Align::kRight},
                     {"sequences/s", Align::kRight, "of all GPUs, modelled with communication"},
                     {"peak", Align::kRight, "allocated, of the GPU that needs the most"},
                     {"by closed terms", Align::kRight, "the same by the planner's formulas"}};
    const bool with_step = has_several_steps(rows);
    for (const ParallelRow& row : rows) {
        const BatchRun largest = row.fits() ? *row.found->largest : BatchRun{};
        table.rows.push_back(
            {gpus_of(row), with_step ? step_of(row) : "", models::to_text(row.parallel),
             row.fits() ? format_count(largest.batch_size) : why_none(row),
             row.fits() ? format_count(sequences_per_step(row, largest)) : "–",
             rate_cell(rate_of(row, largest)), size_text(largest.peak_allocated_bytes),
             size_text(row.closed_terms_bytes.value_or(-1))});
    }
    return table;
}

Json largest_row_json(const ParallelRow& row) {
    Json json = batch_json(row.found.value_or(LargestBatch{.of = {.gpu = row.gpu->id}}));
    json["values"] = {{"model", row.workload.model.name},
                      {"recipe", row.workload.recipe_name},
                      {"precision", models::name_of(row.workload.precision)},
                      {"parallel", models::to_text(row.parallel)}};
    json["seq_len"] = row.workload.seq_len;
    json["world_size"] = row.world_size;
    const BatchRun largest = row.fits() ? *row.found->largest : BatchRun{};
    json["sequences_per_step"] = row.fits() ? Json(sequences_per_step(row, largest)) : Json();
    json["throughput_sequences_per_s"] = or_null(rate_of(row, largest));
    json["closed_terms_bytes"] = or_null(row.closed_terms_bytes);
    json["impossible"] = row.impossible.empty() ? Json() : Json(row.impossible);
    json["failure"] = row.failure.empty() ? Json() : Json(row.failure);
    return json;
}

Json largest_json(const std::vector<ParallelRow>& rows) {
    Json json{{"rows", Json::array()}, {"least", Json()}};
    for (const ParallelRow& row : rows) json["rows"].push_back(largest_row_json(row));
    if (const ParallelRow* least = least_of(rows)) json["least"] = least - rows.data();
    return json;
}

void print_largest(Output& output, const std::vector<ParallelRow>& rows) {
    const bool with_step = has_several_steps(rows);
    if (!with_step) output.line(step_of(rows.front()));
    output.table(largest_table(rows));
    output.line();
    if (const ParallelRow* least = least_of(rows)) {
        output.line(fmt::format("On the least memory of cards: {} fits {} a GPU.",
                                subject_of(*least, with_step),
                                format_count(least->found->largest->batch_size)));
    }
    for (const ParallelRow& row : rows) print_reason(output, row, subject_of(row, with_step));
}

/// A batch that was tried; or none, and the row says why.
struct Try {
    const ParallelRow* row;
    const BatchRun* run;
};

std::vector<Try> tries_of(const std::vector<ParallelRow>& rows) {
    std::vector<Try> tries;
    for (const ParallelRow& row : rows) {
        if (!row.found) tries.push_back({&row, nullptr});
        if (!row.found) continue;
        for (const BatchRun& run : row.found->tries) tries.push_back({&row, &run});
    }
    return tries;
}

/// In the order of the CSV's columns.
std::vector<TableColumn<Try>> try_columns() {
    using enum Unit;
    const auto bytes = [](int64_t BatchRun::*member) {
        return [member](const Try& t) {
            return t.run && t.run->*member >= 0 ? Cell(t.run->*member) : Cell();
        };
    };
    const auto rate = [](const Try& t) { return t.run ? rate_of(*t.row, *t.run) : std::nullopt; };
    return std::vector<TableColumn<Try>>{
        {"recipe", "recipe", kText, "", [](auto& t) { return t.row->workload.recipe_name; }},
        {"gpu", "", kText, "", [](auto& t) { return t.row->gpu->id; }},
        {"world_size", "", kCount, "", [](auto& t) { return t.row->world_size; }},
        {"parallel", "strategy", kText, "",
         [](auto& t) { return models::to_text(t.row->parallel); }},
        {"batch_size", "batch of a GPU", kCount, "",
         [](auto& t) { return t.run ? Cell(t.run->batch_size) : Cell(); }},
        {"fits", "", kText, "", [](auto& t) { return t.run ? Cell(t.run->fits) : Cell(); },
         [](auto& t) { return t.run->fits ? "" : "out of memory"; }},
        {"peak_allocated_bytes", "peak", kBytes, "allocated, of the GPU that needs the most",
         bytes(&BatchRun::peak_allocated_bytes)},
        {"peak_reserved_bytes", "reserved", kBytes, "", bytes(&BatchRun::peak_reserved_bytes)},
        {"step_time_ns", "step", kNanoseconds, "modelled, with communication",
         bytes(&BatchRun::step_time_ns),
         [](auto& t) { return text_of(kNanoseconds, known(t.run->step_time_ns)); }},
        {"throughput_sequences_per_s", "sequences/s", kRate, "of all GPUs", rate,
         [rate](auto& t) { return rate_cell(rate(t)); }},
        {"reason", "", kText, "", [](auto& t) {
             const ParallelRow& row = *t.row;
             return t.run ? Cell() : row.impossible.empty() ? row.failure : row.impossible;
         }}};
}

TextTable tries_table(const std::vector<ParallelRow>& rows) {
    const auto all = try_columns();
    const TableColumn<Try> gpus{"", "GPUs", Unit::kText, "",
                                [](const Try& t) { return gpus_of(*t.row); }};
    std::vector<Try> tries = tries_of(rows);
    std::erase_if(tries, [](const Try& t) { return t.run == nullptr; });
    return text_table(join<Try>({pick(all, {"recipe"}),
                                 {gpus},
                                 pick(all, {"parallel", "batch_size", "peak_allocated_bytes",
                                            "peak_reserved_bytes", "step_time_ns",
                                            "throughput_sequences_per_s", "fits"})}),
                      tries);
}

void print_tries(Output& output, const std::vector<ParallelRow>& rows) {
    output.table(tries_table(rows));
    output.line();
    for (const ParallelRow& row : rows) {
        print_reason(output, row,
                     fmt::format("{}, {} with {}", row.workload.recipe_name, gpus_of(row),
                                 models::to_text(row.parallel)));
    }
}

template <typename Value>
std::size_t place_of(std::vector<Value>& values, const Value& value) {
    const auto found = std::find(values.begin(), values.end(), value);
    if (found != values.end()) return static_cast<std::size_t>(found - values.begin());
    values.push_back(value);
    return values.size() - 1;
}

}  // namespace

std::string about_try(const ProgramCase& of, const BatchRun& one) {
    return fmt::format("{}: a batch of {} {} ({})", name_of(of), one.batch_size,
                       one.fits ? "fits" : "does not fit", size_text(one.peak_allocated_bytes));
}

Report program_report(const std::vector<LargestBatch>& rows) {
    return {.json = [&rows] { return program_json(rows); },
            .text =
                [&rows](Output& output) {
                    output.table(program_table(rows));
                    output.line();
                    for (const LargestBatch& row : rows) output.line(why_not(row, name_of(row.of)));
                },
            .csv =
                [&rows] {
                    std::vector<std::string> names;
                    for (const auto& [name, value] : rows.front().of.values) names.push_back(name);
                    return batches_csv(program_json(rows)["rows"], names);
                }};
}

Report parallel_plan_report(const std::vector<ParallelRow>& rows) {
    return {.json = [&rows] { return largest_json(rows); },
            .text = [&rows](Output& output) { print_largest(output, rows); },
            .csv =
                [&rows] {
                    return batches_csv(largest_json(rows)["rows"], {"GPUs", "parallel"},
                                       {"seq_len", "world_size", "sequences_per_step",
                                        "throughput_sequences_per_s", "closed_terms_bytes",
                                        "impossible", "failure"});
                }};
}

Report parallel_sweep_report(const std::vector<ParallelRow>& rows) {
    return {.json =
                [&rows] {
                    return Json{{"rows", json_rows(data_table(try_columns(), tries_of(rows)))}};
                },
            .text = [&rows](Output& output) { print_tries(output, rows); },
            .csv =
                [&rows] {
                    return to_csv(data_table(try_columns(), tries_of(rows)), Decimals::kAsJson);
                }};
}

BarChart parallel_chart(const std::vector<ParallelRow>& rows) {
    BarChart chart{.title = "What fits where", .subtitle = {}};
    chart.panels = {{.title = "Largest batch of a GPU", .unit = AxisUnit::kCount},
                    {.title = "Sequences of a step", .unit = AxisUnit::kCount},
                    {.title = "Sequences/s, modelled", .unit = AxisUnit::kRate}};
    const bool with_step = has_several_steps(rows);
    if (!with_step) chart.subtitle = step_of(rows.front());
    for (const ParallelRow& row : rows) {
        const std::size_t series = place_of(chart.series, models::to_text(row.parallel));
        const std::size_t group =
            place_of(chart.groups, with_step ? gpus_of(row) + ", " + step_of(row) : gpus_of(row));
        const auto add = [&](std::size_t panel, double value, const std::string& text) {
            chart.panels[panel].groups.resize(chart.groups.size());
            chart.panels[panel].groups[group].push_back(
                {.series = series, .value = value, .text = row.fits() ? text : why_none(row)});
        };
        const BatchRun largest = row.fits() ? *row.found->largest : BatchRun{};
        const int64_t sequences = row.fits() ? sequences_per_step(row, largest) : 0;
        const double rate = rate_of(row, largest).value_or(0);
        add(0, static_cast<double>(largest.batch_size), format_count(largest.batch_size));
        add(1, static_cast<double>(sequences), format_count(sequences));
        add(2, rate, rate > 0 ? format_rate(rate) : "not known");
    }
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
        chart.devices.push_back(i);
        chart.sources.push_back(BenchSource::kPredicted);
    }
    chart.table = largest_table(rows);
    return chart;
}

}  // namespace app
