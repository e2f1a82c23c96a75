#include "app/commands/reports/reports.h"

#include "app/commands/console/json_values.h"
#include "app/commands/console/trace_files.h"
#include "profiler/analysis/step/attention_calls.h"
#include "profiler/analysis/step/closed_form.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/keepers.h"
#include "profiler/analysis/step/ledger_match.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/units.h"
#include "profiler/view/kernels/kernels_view.h"
#include "profiler/view/peak/ledger_view.h"
#include "profiler/view/ranks/ranks_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace app {

using namespace profiler;
using Json = nlohmann::json;

// ---- parts of several reports -------------------------------------------------------------------

Json by_class_json(const CategoryBytes& by_category) {
    Json json = Json::object();
    for (std::size_t category = 0; category < by_category.size(); ++category) {
        json[std::string(kCategoryNames[category]) + "_bytes"] = by_category[category];
    }
    return json;
}

Json value_reads_json(const std::vector<ValueReadLine>& lines) {
    Json rows = Json::array();
    for (const ValueReadLine& line : lines) {
        rows.push_back({{"place", line.place},
                        {"op", known_json(line.op)},
                        {"kind", name_of(line.kind)},
                        {"count", line.count},
                        {"answer", line.answer}});
    }
    return rows;
}

Json failure_json(const Trace& trace, Id<profiler::Failure> id) {
    const profiler::Failure failure = trace.failures[id];
    const FailurePlace place = place_of(trace, failure);
    const Id<Device> device = failure.device;
    const Id<Step> step = failure.step;
    const Id<Phase> phase = failure.phase;
    return {
        {"error", known_json(trace.text(failure.error))},
        {"message", known_json(trace.text(failure.message))},
        {"sentence", failure_sentence(trace, id)},
        {"requested_bytes", known_json(failure.requested_bytes)},
        {"allocated_bytes", known_json(failure.allocated_bytes)},
        {"reserved_bytes", known_json(failure.reserved_bytes)},
        {"free_bytes", known_json(failure.free_bytes)},
        {"limit_bytes", known_json(failure.limit_bytes)},
        {"device", device.valid() ? known_json(trace.text(trace.devices.get<&Device::name>(device)))
                                  : Json()},
        {"step", step.valid() ? Json(step.index() + 1) : Json()},
        {"phase", phase.valid() ? Json(name_of(trace.phases.get<&Phase::kind>(phase))) : Json()},
        {"op", known_json(place.op)},
        {"module", known_json(place.module_path)},
        {"line", known_json(place.line)},
        {"code", known_json(place.code)},
        {"outcome", name_of(failure.outcome)}};
}

Json growing_lines_json(const std::vector<GrowingLine>& lines) {
    Json rows = Json::array();
    for (const GrowingLine& line : lines) {
        rows.push_back({{"line", line.line},
                        {"code", known_json(line.code)},
                        {"bytes_per_step", line.bytes_per_step},
                        {"bytes_by_step", line.bytes_by_step},
                        {"held_by", known_json(line.held_by)},
                        {"steps_until_full", or_null(line.steps_until_full)}});
    }
    return rows;
}

Json group_json(const BreakdownRow& group) {
    return {{"name", group.name}, {"size_bytes", group.size_bytes}, {"count", group.count}};
}

/// Rows of a report of groups.
Json groups_json(const std::vector<BreakdownRow>& rows) {
    Json json = Json::array();
    for (const BreakdownRow& row : rows) {
        Json& group = json.emplace_back(group_json(row));
        group["by_class"] = by_class_json(row.by_category);
        if (!row.code.empty()) group["code"] = row.code;
    }
    return json;
}

constexpr std::size_t kMaxRows = 40;        // of groups in a report
constexpr std::size_t kMaxCodeLength = 60;  // characters of a line of code that a table shows

TextTable breakdown_table(const std::vector<BreakdownRow>& rows, std::string_view title,
                          std::size_t max_rows, std::string_view counted) {
    TextTable table;
    table.columns = {{std::string(title), Align::kLeft},
                     {std::string(counted), Align::kRight},
                     {"bytes", Align::kRight},
                     {"size", Align::kRight},
                     {"share", Align::kRight}};
    const bool has_code =
        std::ranges::any_of(rows, [](const BreakdownRow& row) { return !row.code.empty(); });
    if (has_code) table.columns.push_back({"code", Align::kLeft});
    const auto sum_from = [&](std::size_t first, std::string name) {
        BreakdownRow sum{.name = std::move(name)};
        for (std::size_t i = first; i < rows.size(); ++i) {
            sum.count += rows[i].count;
            sum.size_bytes += rows[i].size_bytes;
        }
        return sum;
    };
    const BreakdownRow total = sum_from(0, "total");
    const auto add = [&](const BreakdownRow& row) {
        const double share = total.size_bytes > 0 ? static_cast<double>(row.size_bytes) /
                                                        static_cast<double>(total.size_bytes)
                                                  : 0;
        table.rows.push_back({row.name, format_count(row.count), format_count(row.size_bytes),
                              format_bytes(row.size_bytes), format_percent(share)});
        if (has_code) table.rows.back().push_back(row.code.substr(0, kMaxCodeLength));
    };
    for (std::size_t i = 0; i < std::min(max_rows, rows.size()); ++i) add(rows[i]);
    if (rows.size() > max_rows) {
        add(sum_from(max_rows, fmt::format("{} more", rows.size() - max_rows)));
    }
    add(total);
    return table;
}

DataTable sweep_data(const std::vector<ThroughputPoint>& curve) {
    using Row = ThroughputPoint;
    const auto outcome = [](const Row& point) {
        return name_of(point.out_of_memory ? SweepOutcome::kOutOfMemory : SweepOutcome::kOk);
    };
    static const std::vector<TableColumn<Row>> kColumns{
        {.id = "batch_size", .value = &Row::batch_size},
        {.id = "outcome", .value = outcome},
        {.id = "peak_allocated_bytes", .value = &Row::peak_allocated_bytes},
        {.id = "step_time_ns", .value = &Row::step_time_ns},
        {.id = "step_time_min_ns", .value = &Row::step_time_min_ns},
        {.id = "step_time_max_ns", .value = &Row::step_time_max_ns},
        {.id = "throughput_sequences_per_s", .value = &Row::sequences_per_s}};
    return data_table(kColumns, curve);
}

Json max_batch_json(const ComparisonColumn& column) {
    return {{"max_batch_size", or_null(column.max_batch.exact())},
            {"max_batch_size_at_least", or_null(column.max_batch.at_least)},
            {"max_batch_size_below", or_null(column.max_batch.below)}};
}

Json saved_bytes_json(const ComparisonColumn& column) {
    return column.knows_saved ? Json(column.saved_bytes) : Json();
}

Json closed_form_json(const models::Result<ClosedFormCheck>& check) {
    if (!check) return nullptr;
    return {{"layer", check->layer},
            {"formula", check->form.formula},
            {"ledger_bytes", check->ledger_bytes},
            {"closed_form_bytes", check->form.total_bytes},
            {"equal", check->equal()}};
}

// ---- the ledger ---------------------------------------------------------------------------------

namespace {

/// "eT", and its bytes when they differ from the row's.
std::string formula_text(const ClosedFormRow& formula, const LedgerRow& row) {
    if (formula.size_bytes == row.size_bytes) return formula.formula;
    return fmt::format("{} = {}", formula.formula, format_count(formula.size_bytes));
}

/// "[128, 512, 64]" as an array of numbers; another text as it is.
Json shape_json(std::string_view shape) {
    auto json = Json::parse(shape, nullptr, /*allow_exceptions=*/false);
    return json.is_array() ? json : Json(shape);
}

void print_ledger_heading(Output& output, const NamedTrace& named) {
    output.line(output.styled(fmt::format("Saved for backward: {}", named.file), Style::kBold));
    output.line(describe_run(*named.trace));
    output.line();
}

std::string why_empty(const Trace& trace, const std::string& module_path) {
    if (!records_saves(trace)) {
        return "Saved tensors are not recorded in this file: record the program with "
               "temposcope run to see them.";
    }
    return module_path.empty()
               ? "Nothing is saved: no op saved a tensor in the last recorded forward."
               : fmt::format("Nothing is saved in {}.", module_path);
}

}  // namespace

const std::vector<TableColumn<LedgerRow>>& ledger_columns() {
    using Row = LedgerRow;
    const auto all_savers = [](const Row& row) {
        return fmt::format("{}", fmt::join(row.saved_by, ";"));
    };
    const auto savers = [](const Row& row) {
        std::vector<std::string_view> names = row.saved_by;
        names.erase(std::unique(names.begin(), names.end()), names.end());
        return fmt::format("{}", fmt::join(names, ", "));
    };
    static const std::vector<TableColumn<Row>> kColumns{
        {"scope", "module", Unit::kText, "", &Row::module_path},
        {"op", "op", Unit::kText, "", &Row::op},
        {"tensor", "tensor", Unit::kText, "", &Row::tensor},
        {"shape", "shape", Unit::kText, "", &Row::shape},
        {"dtype", "dtype", Unit::kText, "", [](const Row& row) { return name_of(row.dtype); }},
        {"role", "category", Unit::kText, "", [](const Row& row) { return name_of(row.category); }},
        {"size_bytes", "bytes", Unit::kCount, "", &Row::size_bytes},
        {"saved_by", "saved by", Unit::kText, "", all_savers, savers}};
    return kColumns;
}

void print_ledger(Output& output, const NamedTrace& named, const LedgerOptions& options) {
    const Trace& trace = *named.trace;
    const auto report = report_of(named);
    const auto& check = report->closed_form;
    const Ledger ledger = build_ledger(trace, report->peak, options);
    const auto formula = check ? match_closed_form(ledger, check->form, trace.run().num_layers)
                               : std::vector<std::size_t>(ledger.rows.size(), kNoRow);
    print_ledger_heading(output, named);
    if (ledger.rows.empty()) {
        output.line(why_empty(trace, options.module_path));
        return;
    }
    const auto closed_form = [&](const LedgerRow& row) {
        const std::size_t of_row = formula[static_cast<std::size_t>(&row - ledger.rows.data())];
        return of_row == kNoRow ? Cell() : formula_text(check->form.rows[of_row], row);
    };
    auto columns = pick(ledger_columns(), {"scope", "tensor", "shape", "dtype", "size_bytes"});
    columns.push_back({"", "size", Unit::kBytes, "", &LedgerRow::size_bytes});
    columns.push_back({"", "formula", Unit::kText, "", closed_form});
    for (const auto& column : pick(ledger_columns(), {"saved_by", "role"})) {
        if (column.id != "role" || options.include_all) columns.push_back(column);
    }
    output.table(text_table(columns, ledger.rows));
    output.line();
    output.line(
        fmt::format("{} {}, {} ({}).", format_count(static_cast<int64_t>(ledger.rows.size())),
                    ledger.rows.size() == 1 ? "tensor" : "tensors",
                    format_exact_bytes(ledger.total_bytes), format_bytes(ledger.total_bytes)));
    if (check) output.line(to_sentence_below_rows(*check));
    if (!check && workload_of(trace)) output.line(check.error().message);
}

Json ledger_json(const NamedTrace& named, const LedgerOptions& options) {
    const Trace& trace = *named.trace;
    const auto report = report_of(named);
    const Ledger ledger = build_ledger(trace, report->peak, options);
    Json json = describe_trace(named);
    json["total_bytes"] = ledger.total_bytes;
    json["closed_form"] = closed_form_json(report->closed_form);
    json["rows"] = json_rows(data_table(ledger_columns(), ledger.rows));
    for (std::size_t i = 0; i < ledger.rows.size(); ++i) {
        json["rows"][i]["shape"] = shape_json(ledger.rows[i].shape);
        json["rows"][i]["saved_by"] = ledger.rows[i].saved_by;
    }
    return json;
}

void print_saved_by(Output& output, const NamedTrace& named, const LedgerOptions& options,
                    GroupBy by) {
    const Trace& trace = *named.trace;
    const Ledger ledger = build_ledger(trace, report_of(named)->peak, options);
    print_ledger_heading(output, named);
    if (ledger.rows.empty()) {
        output.line(why_empty(trace, options.module_path));
        return;
    }
    output.table(breakdown_table(break_down(trace, ledger, by), name_of(by), kMaxRows, "tensors"));
}

Json saved_by_json(const NamedTrace& named, const LedgerOptions& options, GroupBy by) {
    const Trace& trace = *named.trace;
    const Ledger ledger = build_ledger(trace, report_of(named)->peak, options);
    Json json = describe_trace(named);
    json["total_bytes"] = ledger.total_bytes;
    json["by"] = name_of(by);
    json["rows"] = groups_json(break_down(trace, ledger, by));
    return json;
}

// ---- the peak -----------------------------------------------------------------------------------

namespace {

std::string_view phase_name(const Trace& trace, const PeakReport& peak) {
    return peak.phase.valid() ? name_of(trace.phases.get<&Phase::kind>(peak.phase))
                              : std::string_view();
}

std::string_view op_name(const Trace& trace, const PeakReport& peak) {
    return peak.op.valid() ? trace.text(trace.ops.get<&Op::name>(peak.op)) : std::string_view();
}

/// A block at the peak of which the recorder found who keeps it.
struct KeptBlock {
    int64_t size_bytes = 0;
    std::string line;
    std::string held_by;
    Id<Allocation> allocation;
};

/// The largest first.
std::vector<KeptBlock> kept_blocks(const Trace& trace, const PeakReport& peak) {
    const Keepers keepers(trace);
    const CallSites sites(trace);
    std::vector<KeptBlock> blocks;
    for (const Id<Allocation> id : peak.live) {
        std::string held_by = keepers.text_of(id);
        if (held_by.empty()) continue;
        const Id<Stack> stack = trace.allocations.get<&Allocation::stack>(id);
        blocks.push_back({.size_bytes = trace.allocations.get<&Allocation::requested_bytes>(id),
                          .line = sites.is_of_python(stack) ? sites.of(stack) : std::string(),
                          .held_by = std::move(held_by),
                          .allocation = id});
    }
    return blocks;
}

const std::vector<TableColumn<KeptBlock>>& kept_columns() {
    using Row = KeptBlock;
    static const std::vector<TableColumn<Row>> kColumns{
        {"size_bytes", "size", Unit::kBytes, "", &Row::size_bytes},
        {"line", "made at", Unit::kText, "", &Row::line},
        {"held_by", "held by", Unit::kText, "", &Row::held_by}};
    return kColumns;
}

void print_keepers(Output& output, const Trace& trace, const PeakReport& peak) {
    constexpr std::size_t kMostBlocks = 8;
    std::vector<KeptBlock> blocks = kept_blocks(trace, peak);
    if (blocks.empty()) return;
    output.heading("Who keeps the largest blocks");
    blocks.resize(std::min(blocks.size(), kMostBlocks));
    output.table(text_table(kept_columns(), blocks));
}

Json keepers_json(const Trace& trace, const PeakReport& peak) {
    const Keepers keepers(trace);
    const std::vector<KeptBlock> blocks = kept_blocks(trace, peak);
    Json rows = json_rows(data_table(kept_columns(), blocks));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        Json& found = rows[i]["keepers"] = Json::array();
        for (const Id<Keeper> id : keepers.of(blocks[i].allocation)) {
            const Keeper keeper = trace.keepers[id];
            found.push_back({{"kind", name_of(keeper.kind)},
                             {"text", trace.text(keeper.text)},
                             {"file", trace.text(keeper.file)},
                             {"line", keeper.line < 0 ? Json() : Json(keeper.line)}});
        }
    }
    return rows;
}

}  // namespace

void print_peak(Output& output, const NamedTrace& named, GroupBy by) {
    const Trace& trace = *named.trace;
    const auto report = report_of(named);
    const PeakReport& peak = report->peak;
    output.line(output.styled(fmt::format("Peak: {}", named.file), Style::kBold));
    output.line(describe_run(trace));
    const std::string moment =
        trace.run().time_basis == TimeBasis::kEventOrder
            ? fmt::format("event {}", format_count(peak.event))  // the file has no times
            : format_duration(std::max<int64_t>(peak.time_ns, 0));
    output.line(fmt::format("{} ({}) at {}{}{}", format_bytes(peak.allocated_bytes),
                            format_exact_bytes(peak.allocated_bytes), moment,
                            peak.phase.valid() ? fmt::format(", {}", phase_name(trace, peak)) : "",
                            peak.op.valid() ? fmt::format(", in {}", op_name(trace, peak)) : ""));
    output.line();
    if (by == GroupBy::kLine && trace.stacks.empty()) {
        output.line(kNoCallStacks);
        return;
    }
    output.table(breakdown_table(break_down(trace, peak, by), name_of(by), kMaxRows));
    print_keepers(output, trace, peak);
    if (by == GroupBy::kLine && has_lines_of_functions(trace)) output.line(kWhichLines);
    if (has_inferred_categories(trace)) output.line(classes_note(trace));
}

Json peak_json(const NamedTrace& named, GroupBy by) {
    const Trace& trace = *named.trace;
    const auto report = report_of(named);
    const PeakReport& peak = report->peak;
    Json json = describe_trace(named);
    json["peak_allocated_bytes"] = peak.allocated_bytes;
    json["peak_reserved_bytes"] = peak.reserved_bytes;
    json["event"] = peak.event;
    json["time_ns"] = peak.time_ns;
    json["phase"] = phase_name(trace, peak);
    json["op"] = op_name(trace, peak);
    json["by"] = name_of(by);
    json["classes_inferred"] = has_inferred_categories(trace);
    json["rows"] = groups_json(break_down(trace, peak, by));
    json["keepers"] = keepers_json(trace, peak);
    return json;
}

// ---- growth -------------------------------------------------------------------------------------

namespace {

int64_t num_whole_steps(const Trace& trace) {
    return static_cast<int64_t>(whole_steps(trace).size());
}

/// What stands in place of the table.
std::string why_nothing_grows(const Trace& trace) {
    const int64_t num_steps = num_whole_steps(trace);
    if (num_steps >= static_cast<int64_t>(kFewestRises)) {
        return fmt::format(
            "Nothing grows: no line of code keeps more after each of the last {} steps.",
            kFewestRises);
    }
    return fmt::format(
        "Growth shows in {} whole steps or more, and the trace has {}: record more with temposcope "
        "run --steps.",
        kFewestRises, num_steps);
}

/// "All of it: 149 MiB a step. The GPU is full in 214 steps."
std::string growth_sentence(const std::vector<GrowingLine>& lines) {
    int64_t bytes_per_step = 0;
    for (const GrowingLine& line : lines) bytes_per_step += line.bytes_per_step;
    std::string text = fmt::format("Memory grows by {} a step", format_bytes(bytes_per_step));
    const std::optional<int64_t> left = lines.front().steps_until_full;
    if (!left) return text + ".";
    if (*left == 0) return text + ", and it ran out.";
    return text + fmt::format(": in {} {} more it is full.", format_count(*left),
                              *left == 1 ? "step" : "steps");
}

const std::vector<TableColumn<GrowingLine>>& growth_columns() {
    using Row = GrowingLine;
    const auto code = [](const Row& row) { return row.code.substr(0, kMaxCodeLength); };
    static const std::vector<TableColumn<Row>> kColumns{
        {"line", "line", Unit::kText, "", &Row::line},
        {"bytes_per_step", "a step", Unit::kBytes, "", &Row::bytes_per_step},
        {"steps", "steps", Unit::kCount, "",
         [](const Row& row) { return std::ssize(row.bytes_by_step); }},
        {"code", "code", Unit::kText, "", code},
        {"held_by", "held by", Unit::kText, "", &Row::held_by}};
    return kColumns;
}

}  // namespace

void print_growth(Output& output, const NamedTrace& named) {
    const Trace& trace = *named.trace;
    output.line(output.styled(fmt::format("Growth: {}", named.file), Style::kBold));
    output.line(describe_run(trace));
    output.line();
    const std::vector<GrowingLine> lines = growing_lines(trace, report_of(named)->peak);
    if (lines.empty()) {
        output.line(why_nothing_grows(trace));
        return;
    }
    output.table(text_table(growth_columns(), lines));
    output.line(growth_sentence(lines));
}

Json growth_json(const NamedTrace& named) {
    const Trace& trace = *named.trace;
    Json json = describe_trace(named);
    json["whole_steps"] = num_whole_steps(trace);
    json["rows"] = growing_lines_json(growing_lines(trace, report_of(named)->peak));
    return json;
}

// ---- ops ----------------------------------------------------------------------------------------

namespace {

constexpr std::ptrdiff_t kMaxOpRows = 20;

/// The longest kernel and how many others there are: "flash_fwd_kernel", "reduce_kernel, 3 more".
std::string name_kernels(const std::vector<OpKernel>& kernels) {
    if (kernels.empty()) return {};
    const std::string first = short_name(kernels.front().name);
    return kernels.size() == 1 ? first : fmt::format("{}, {} more", first, kernels.size() - 1);
}

const std::vector<TableColumn<OpUsage>>& op_columns() {
    using enum Unit;
    using Row = OpUsage;
    static const std::vector<TableColumn<Row>> kColumns{
        {"phase", "phase", kText, "", [](const Row& row) { return name_of(row.phase); }},
        {"op", "op", kText, "", &Row::op},
        {"calls", "calls", kCount, "", &Row::num_calls},
        {"device_time_ns", "time", kNanoseconds, "", &Row::device_ns},
        {"scratch_bytes", "scratch", kBytes, "", &Row::scratch_bytes,
         [](const Row& row) { return text_of(kBytes, known(row.scratch_bytes)); }},
        {"kernels", "kernels", kText, "",
         [](const Row& row) { return name_kernels(row.kernels); }}};
    return kColumns;
}

}  // namespace

TextTable ops_table(const std::vector<OpUsage>& usage) {
    const auto shown_end = usage.begin() + std::min(std::ssize(usage), kMaxOpRows);
    TextTable table = text_table(op_columns(), {usage.begin(), shown_end});
    if (shown_end == usage.end()) return table;
    OpUsage rest;
    for (auto row = shown_end; row != usage.end(); ++row) {
        rest.device_ns += row->device_ns;
        rest.num_calls += row->num_calls;
        rest.scratch_bytes = std::max(rest.scratch_bytes, row->scratch_bytes);
    }
    std::vector<std::string> cells = text_table(op_columns(), {rest}).rows.front();
    cells[0] = "";  // of several phases
    cells[1] = fmt::format("{} more", usage.end() - shown_end);
    table.rows.push_back(std::move(cells));
    return table;
}

Json ops_json(const std::vector<OpUsage>& usage) {
    Json rows = json_rows(data_table(op_columns(), usage));
    for (std::size_t i = 0; i < usage.size(); ++i) {
        Json& kernels = rows[i]["kernels"] = Json::array();
        for (const OpKernel& kernel : usage[i].kernels) {
            kernels.push_back({{"name", kernel.name},
                               {"launches", kernel.num_launches},
                               {"device_time_ns", kernel.device_ns}});
        }
    }
    return rows;
}

namespace {

const std::vector<TableColumn<AttentionSite>>& attention_columns() {
    using Row = AttentionSite;
    const auto reasons = [](const Row& row) {
        return row.reasons.empty() ? Cell() : Cell(row.reasons);
    };
    static const std::vector<TableColumn<Row>> kColumns{
        {"line", "line", Unit::kText, "", &Row::line},
        {"modules", "modules", Unit::kText, "", &Row::modules},
        {"calls", "calls", Unit::kCount, "", &Row::num_calls},
        {"backend", "backend", Unit::kText, "", &Row::backend},
        {"reasons", "why not flash attention", Unit::kText, "", reasons}};
    return kColumns;
}

void print_attention(Output& output, const Trace& trace) {
    const std::vector<AttentionSite> sites = attention_sites(trace);
    if (sites.empty()) return;
    output.heading("Calls of scaled_dot_product_attention");
    output.table(text_table(attention_columns(), sites));
}

}  // namespace

void print_ops(Output& output, const NamedTrace& named) {
    output.line(output.styled(fmt::format("Ops: {}", named.file), Style::kBold));
    output.line(describe_run(*named.trace));
    output.line(fmt::format(
        "{} Scratch is the most that one call takes and gives back itself.",
        named.trace->steps.empty() ? "All of the trace, which marks no steps." : "The last step."));
    output.line();
    const std::vector<OpUsage> usage = op_usage(*named.trace);
    if (usage.empty()) {
        output.line("No kernels and no scratch were recorded.");
        return;
    }
    output.table(ops_table(usage));
    print_attention(output, *named.trace);
    if (has_host_times(*named.trace)) {
        output.line("No device ran anything: times are host times.");
    }
}

Json ops_json(const NamedTrace& named) {
    Json json = describe_trace(named);
    json["rows"] = ops_json(op_usage(*named.trace));
    json["attention"] = json_rows(data_table(attention_columns(), attention_sites(*named.trace)));
    return json;
}

// ---- diagnostics --------------------------------------------------------------------------------

namespace {

Style style_of(Severity severity) {
    switch (severity) {
        case Severity::kInfo:
            return Style::kDim;
        case Severity::kWarning:
            return Style::kWarning;
        case Severity::kError:
            return Style::kBad;
    }
    return Style::kPlain;
}

}  // namespace

void print_diagnostics(Output& output, const NamedTrace& named) {
    output.line(output.styled(fmt::format("Diagnostics: {}", named.file), Style::kBold));
    const auto items = report_diagnostics(*named.trace, *report_of(named));
    if (items.empty()) output.line("Nothing to report: the trace is complete.");
    for (const DiagnosticItem& item : items) {
        const std::string count = count_text(item);
        output.line(fmt::format("{}  {}{}",
                                output.styled(name_of(item.severity), style_of(item.severity)),
                                item.code, count.empty() ? "" : " (" + count + ")"));
        output.line("    " + item.explanation);
    }
}

Json diagnostics_json(const NamedTrace& named) {
    Json json = describe_trace(named);
    json["rows"] = Json::array();
    for (const DiagnosticItem& item : report_diagnostics(*named.trace, *report_of(named))) {
        json["rows"].push_back({{"code", item.code},
                                {"severity", name_of(item.severity)},
                                {"count", item.count},
                                {"explanation", item.explanation}});
    }
    return json;
}

// ---- the ranks of a run -------------------------------------------------------------------------

void print_ranks(Output& output, const RankRun& run) {
    output.line(run.step);
    output.table(rank_memory_table(run));
    output.line();
    if (static_cast<int64_t>(run.ranks.size()) < run.world_size) {
        output.line(fmt::format("{} of {} ranks have a trace.", run.ranks.size(), run.world_size));
    }
    if (const std::string headline = rank_headline(run); !headline.empty()) output.line(headline);
    const TextTable times = rank_time_table(run);
    if (times.rows.empty()) return;
    output.heading("Time of " + name_of_shared_step(run));
    output.table(times);
}

Json ranks_json(const RankRun& run, const std::vector<std::string>& left_out) {
    Json rows = json_rows(data_table(rank_columns(), run.ranks));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const RankSummary& rank = run.ranks[i];
        rows[i]["state"] = rank.is_complete ? "complete" : "incomplete";
        rows[i]["steps"] = rank.num_steps;
        rows[i]["by_class"] = by_class_json(rank.peak.by_category);
    }
    const int64_t number = run.shared_step_number();
    const Json step = number > 0 ? Json(number) : Json();
    return {{"world_size", run.world_size}, {"shared_step", step},
            {"imbalance", run.imbalance()}, {"clocks", name_of(run.clocks.basis)},
            {"left_out", left_out},         {"rows", std::move(rows)}};
}

}  // namespace app
