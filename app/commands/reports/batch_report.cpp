#include "app/commands/reports/batch_report.h"

#include "app/commands/reports/reports.h"
#include "profiler/analysis/step/throughput.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/units.h"

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
    std::ranges::sort(
        order, [&](std::size_t a, std::size_t b) { return by_category[a] > by_category[b]; });
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

/// "–" for -1: not known.
std::string size_text(int64_t bytes) { return bytes < 0 ? kNoValue : format_bytes(bytes); }

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

/// A figure of a run, where both are known.
Cell figure_of(const auto& run, int64_t BatchRun::*figure) {
    return run && (*run).*figure >= 0 ? Cell((*run).*figure) : Cell();
}

std::vector<TableColumn<LargestBatch>> batch_columns() {
    using enum Unit;
    using Row = LargestBatch;
    const auto of_largest = [](int64_t BatchRun::*figure) {
        return [figure](const Row& row) { return figure_of(row.largest, figure); };
    };
    const auto of_next = [](int64_t BatchRun::*figure) {
        return [figure](const Row& row) { return figure_of(row.first_above, figure); };
    };
    const auto how_many = [](const Row& row) {
        return row.largest ? format_count(row.largest->batch_size) : std::string("none");
    };
    const auto place = [](const Row& row) {
        return row.first_above ? Cell(row.first_above->place) : Cell();
    };
    return std::vector<TableColumn<Row>>{
        {"max_batch_size", "largest batch", kCount, "", of_largest(&BatchRun::batch_size),
         how_many},
        {"peak_allocated_bytes", "peak", kBytes, "", of_largest(&BatchRun::peak_allocated_bytes)},
        {"peak_reserved_bytes", "reserved", kBytes, "", of_largest(&BatchRun::peak_reserved_bytes)},
        {"step_time_ns", "", kNanoseconds, "", of_largest(&BatchRun::step_time_ns)},
        {"failing_batch_size", "", kCount, "", of_next(&BatchRun::batch_size)},
        {"failing_place", "", kText, "", place},
        {"failing_requested_bytes", "", kBytes, "", of_next(&BatchRun::requested_bytes)},
        {"failing_free_bytes", "", kBytes, "", of_next(&BatchRun::free_bytes)}};
}

/// What filled the memory of the first batch that does not fit, in JSON.
void add_what_filled(Json& json, const std::optional<BatchRun>& above) {
    json["failing_by_class"] = above ? by_class_json(above->by_category) : Json();
    json["failing_tensors"] = above ? tensors_json(above->largest) : Json();
}

/// The same in CSV: a column for each class, and one for the tensors: "logits 8589934592;
/// gelu_output 4294967296".
std::vector<TableColumn<LargestBatch>> columns_of_what_filled() {
    using Row = LargestBatch;
    std::vector<TableColumn<Row>> columns;
    for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
        const auto bytes = [i](const Row& row) {
            return row.first_above ? Cell(row.first_above->by_category[i]) : Cell();
        };
        columns.push_back(
            {.id = fmt::format("failing_{}_bytes", kCategoryNames[i]), .value = bytes});
    }
    const auto tensors = [](const Row& row) {
        std::string text;
        for (const LiveTensor& one : row.first_above.value_or(BatchRun{}).largest) {
            text += fmt::format("{}{} {}", text.empty() ? "" : "; ", one.name, one.size_bytes);
        }
        return text;
    };
    columns.push_back({.id = "failing_tensors", .value = tensors});
    return columns;
}

// ---- programs ----------------------------------------------------------------------------------

std::vector<TableColumn<LargestBatch>> program_columns(const std::vector<LargestBatch>& rows) {
    using Row = LargestBatch;
    std::vector<TableColumn<Row>> columns{
        {"gpu", "gpu", Unit::kText, "", [](const Row& row) { return row.of.gpu; }}};
    for (std::size_t i = 0; i < rows.front().of.values.size(); ++i) {
        const std::string& name = rows.front().of.values[i].first;
        const auto value = [i](const Row& row) { return row.of.values[i].second; };
        columns.push_back({name, name, Unit::kNumber, "", value, value});
    }
    return join<Row>({columns, batch_columns()});
}

Json program_json(const std::vector<LargestBatch>& rows) {
    Json json = json_rows(data_table(batch_columns(), rows));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        json[i]["gpu"] = rows[i].of.gpu;
        json[i]["values"] = Json::object();
        for (const auto& [name, value] : rows[i].of.values) json[i]["values"][name] = value;
        add_what_filled(json[i], rows[i].first_above);
    }
    return {{"rows", std::move(json)}};
}

void print_programs(Output& output, const std::vector<LargestBatch>& rows) {
    auto columns = program_columns(rows);
    std::erase_if(columns, [](const auto& column) { return column.title.empty(); });
    output.table(text_table(columns, rows));
    output.line();
    for (const LargestBatch& row : rows) output.line(why_not(row, name_of(row.of)));
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

std::string rate_cell(const std::optional<double>& rate) {
    return rate ? format_rate(*rate) : kNoValue;
}

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
                     {"by formula", Align::kRight, "the same by the planner's formulas"}};
    const bool with_step = has_several_steps(rows);
    for (const ParallelRow& row : rows) {
        const BatchRun largest = row.fits() ? *row.found->largest : BatchRun{};
        table.rows.push_back(
            {gpus_of(row), with_step ? step_of(row) : "", models::to_text(row.parallel),
             row.fits() ? format_count(largest.batch_size) : why_none(row),
             row.fits() ? format_count(sequences_per_step(row, largest)) : kNoValue,
             rate_cell(rate_of(row, largest)), size_text(largest.peak_allocated_bytes),
             size_text(row.closed_terms_bytes.value_or(-1))});
    }
    return table;
}

/// Columns of a row whose search may not have begun.
std::vector<TableColumn<ParallelRow>> of_search(
    const std::vector<TableColumn<LargestBatch>>& columns) {
    std::vector<TableColumn<ParallelRow>> of_rows;
    for (const TableColumn<LargestBatch>& column : columns) {
        const auto value = [of = column.value](const ParallelRow& row) {
            return row.found ? of(*row.found) : Cell();
        };
        of_rows.push_back({.id = column.id, .value = value});
    }
    return of_rows;
}

std::vector<TableColumn<ParallelRow>> parallel_columns() {
    using Row = ParallelRow;
    const auto sequences = [](const Row& row) {
        return row.fits() ? Cell(sequences_per_step(row, *row.found->largest)) : Cell();
    };
    const auto rate = [](const Row& row) {
        return row.fits() ? Cell(rate_of(row, *row.found->largest)) : Cell();
    };
    const std::vector<TableColumn<Row>> columns{
        {.id = "gpu", .value = [](const Row& row) { return row.gpu->id; }},
        {.id = "seq_len", .value = [](const Row& row) { return row.workload.seq_len; }},
        {.id = "world_size", .value = &Row::world_size},
        {.id = "sequences_per_step", .value = sequences},
        {.id = "throughput_sequences_per_s", .value = rate},
        {.id = "closed_terms_bytes", .value = &Row::closed_terms_bytes},
        {.id = "impossible", .value = [](const Row& row) { return known(row.impossible); }},
        {.id = "failure", .value = [](const Row& row) { return known(row.failure); }}};
    return join<Row>({columns, of_search(batch_columns())});
}

Json largest_json(const std::vector<ParallelRow>& rows) {
    Json json = json_rows(data_table(parallel_columns(), rows));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const models::Workload& workload = rows[i].workload;
        json[i]["values"] = {{"model", workload.model.name},
                             {"recipe", workload.recipe_name},
                             {"precision", models::name_of(workload.precision)},
                             {"parallel", models::to_text(rows[i].parallel)}};
        add_what_filled(json[i], rows[i].found ? rows[i].found->first_above : std::nullopt);
    }
    const ParallelRow* const least = least_of(rows);
    return {{"rows", std::move(json)}, {"least", least ? Json(least - rows.data()) : Json()}};
}

std::string largest_csv(const std::vector<ParallelRow>& rows) {
    auto columns = join<ParallelRow>({parallel_columns(), of_search(columns_of_what_filled())});
    const auto parallel = [](const ParallelRow& row) { return models::to_text(row.parallel); };
    columns.insert(columns.begin() + 1, {.id = "parallel", .value = parallel});
    return to_csv(data_table(columns, rows), Decimals::kAsJson);
}

void print_largest(Output& output, const std::vector<ParallelRow>& rows) {
    const bool with_step = has_several_steps(rows);
    if (!with_step) output.line(step_of(rows.front()));
    output.table(largest_table(rows));
    output.line();
    if (const ParallelRow* least = least_of(rows)) {
        output.line(fmt::format("On the least memory of all GPUs together: {} fits {} a GPU.",
                                subject_of(*least, with_step),
                                format_count(least->found->largest->batch_size)));
    }
    for (const ParallelRow& row : rows) print_reason(output, row, subject_of(row, with_step));
}

/// A batch that was tried; or none, and the row says why.
struct BatchOfRow {
    const ParallelRow* row;
    const BatchRun* run;
};

std::vector<BatchOfRow> batches_of(const std::vector<ParallelRow>& rows) {
    std::vector<BatchOfRow> batches;
    for (const ParallelRow& row : rows) {
        if (!row.found) batches.push_back({&row, nullptr});
        if (!row.found) continue;
        for (const BatchRun& run : row.found->tries) batches.push_back({&row, &run});
    }
    return batches;
}

/// In the order of the CSV's columns.
std::vector<TableColumn<BatchOfRow>> columns_of_batches() {
    using enum Unit;
    const auto figure = [](int64_t BatchRun::*member) {
        return [member](const BatchOfRow& t) { return figure_of(t.run, member); };
    };
    const auto rate = [](const BatchOfRow& t) {
        return t.run ? rate_of(*t.row, *t.run) : std::nullopt;
    };
    return std::vector<TableColumn<BatchOfRow>>{
        {"recipe", "recipe", kText, "", [](auto& t) { return t.row->workload.recipe_name; }},
        {"gpu", "", kText, "", [](auto& t) { return t.row->gpu->id; }},
        {"world_size", "", kCount, "", [](auto& t) { return t.row->world_size; }},
        {"parallel", "strategy", kText, "",
         [](auto& t) { return models::to_text(t.row->parallel); }},
        {"batch_size", "batch of a GPU", kCount, "", figure(&BatchRun::batch_size)},
        {"fits", "", kText, "", [](auto& t) { return t.run ? Cell(t.run->fits) : Cell(); },
         [](auto& t) { return t.run->fits ? "" : "out of memory"; }},
        {"peak_allocated_bytes", "peak", kBytes, "allocated, of the GPU that needs the most",
         figure(&BatchRun::peak_allocated_bytes)},
        {"peak_reserved_bytes", "reserved", kBytes, "", figure(&BatchRun::peak_reserved_bytes)},
        {"step_time_ns", "step", kNanoseconds, "modelled, with communication",
         figure(&BatchRun::step_time_ns),
         [](auto& t) { return text_of(kNanoseconds, known(t.run->step_time_ns)); }},
        {"throughput_sequences_per_s", "sequences/s", kRate, "of all GPUs", rate,
         [rate](auto& t) { return rate_cell(rate(t)); }},
        {"reason", "", kText, "", [](auto& t) {
             const ParallelRow& row = *t.row;
             return t.run ? Cell() : row.impossible.empty() ? row.failure : row.impossible;
         }}};
}

TextTable batch_table(const std::vector<ParallelRow>& rows) {
    const auto all = columns_of_batches();
    const TableColumn<BatchOfRow> gpus{"", "GPUs", Unit::kText, "",
                                       [](const BatchOfRow& t) { return gpus_of(*t.row); }};
    std::vector<BatchOfRow> batches = batches_of(rows);
    std::erase_if(batches, [](const BatchOfRow& t) { return t.run == nullptr; });
    return text_table(join<BatchOfRow>({pick(all, {"recipe"}),
                                        {gpus},
                                        pick(all, {"parallel", "batch_size", "peak_allocated_bytes",
                                                   "peak_reserved_bytes", "step_time_ns",
                                                   "throughput_sequences_per_s", "fits"})}),
                      batches);
}

void print_batches(Output& output, const std::vector<ParallelRow>& rows) {
    output.table(batch_table(rows));
    output.line();
    for (const ParallelRow& row : rows) {
        print_reason(output, row,
                     fmt::format("{}, {} with {}", row.workload.recipe_name, gpus_of(row),
                                 models::to_text(row.parallel)));
    }
}

}  // namespace

std::string about_try(const ProgramCase& of, const BatchRun& one) {
    return fmt::format("{}: a batch of {} {} ({})", name_of(of), one.batch_size,
                       one.fits ? "fits" : "does not fit", size_text(one.peak_allocated_bytes));
}

Report program_report(const std::vector<LargestBatch>& rows) {
    const auto csv = [&rows] {
        return to_csv(data_table(
            join<LargestBatch>({program_columns(rows), columns_of_what_filled()}), rows));
    };
    return {.json = [&rows] { return program_json(rows); },
            .text = [&rows](Output& output) { print_programs(output, rows); },
            .csv = csv};
}

Report parallel_plan_report(const std::vector<ParallelRow>& rows) {
    return {.json = [&rows] { return largest_json(rows); },
            .text = [&rows](Output& output) { print_largest(output, rows); },
            .csv = [&rows] { return largest_csv(rows); }};
}

Report parallel_sweep_report(const std::vector<ParallelRow>& rows) {
    return {.json =
                [&rows] {
                    return Json{
                        {"rows", json_rows(data_table(columns_of_batches(), batches_of(rows)))}};
                },
            .text = [&rows](Output& output) { print_batches(output, rows); },
            .csv =
                [&rows] {
                    return to_csv(data_table(columns_of_batches(), batches_of(rows)),
                                  Decimals::kAsJson);
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
        const std::size_t series = index_in(chart.series, models::to_text(row.parallel));
        const std::size_t group =
            index_in(chart.groups, with_step ? gpus_of(row) + ", " + step_of(row) : gpus_of(row));
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
