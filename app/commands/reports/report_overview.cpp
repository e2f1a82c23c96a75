#include "app/commands/console/json_values.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/diagnostics.h"
#include "profiler/analysis/run_text.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

namespace app {
namespace {

using namespace profiler;

/// compare() of one trace gives its figures.
ComparisonColumn column_of(const NamedTrace& named) {
    auto comparison = compare({named});
    return std::move(comparison.value().columns.front());
}

/// "in step 3, backward, at aten::bmm".
std::string describe_peak_place(const Trace& trace, const PeakReport& peak) {
    std::string text;
    if (peak.step.valid()) text += fmt::format("in step {}", peak.step.index() + 1);
    if (peak.phase.valid()) {
        text += fmt::format("{}{}", text.empty() ? "" : ", ",
                            name_of(trace.phases.get<&Phase::kind>(peak.phase)));
    }
    if (peak.op.valid()) {
        text += fmt::format("{}at {}", text.empty() ? "" : ", ",
                            trace.text(trace.ops.get<&Op::name>(peak.op)));
    }
    return text;
}

void print_step(Output& output, const Trace& trace, const ComparisonColumn& column) {
    const PeakReport peak = find_peak(trace);
    TextTable figures;
    figures.columns = {{"", Align::kLeft, {}}, {"", Align::kRight, {}}, {"", Align::kLeft, {}}};
    const auto add = [&](std::string name, std::string value, std::string detail) {
        figures.rows.push_back({std::move(name), std::move(value), std::move(detail)});
    };
    add("peak memory", format_bytes(peak.allocated_bytes), describe_peak_place(trace, peak));
    if (peak.reserved_bytes != peak.allocated_bytes) {
        add("reserved", format_bytes(peak.reserved_bytes), "held by the allocator");
    }
    add("saved for backward", format_bytes(column.saved_bytes),
        "from forward to backward: --ledger");
    const bool is_predicted = column.source == Source::kPredicted;
    if (column.step_time_ns > 0) {
        add("step time", format_duration(column.step_time_ns),
            is_predicted ? "modelled" : fmt::format("median of {}", column.steps));
        add("throughput", fmt::format("{:.2f}", column.sequences_per_s), "sequences/s");
    }
    if (column.loss) add("loss", fmt::format("{:.6g}", *column.loss), "of the last step");
    output.table(figures);
    if (const auto sentence = closed_form_sentence(trace); !sentence.empty()) output.line(sentence);

    output.heading("At the peak");
    output.table(breakdown_table(break_down(trace, peak, GroupBy::kClass), "class", 8));
}

void print_sweep(Output& output, const ComparisonColumn& column) {
    if (column.curve.empty()) return;
    output.heading("Batch sizes of the sweep");
    TextTable table;
    table.columns = {{"batch", Align::kRight, {}},     {"peak", Align::kRight, {}},
                     {"step time", Align::kRight, {}}, {"fastest", Align::kRight, {}},
                     {"slowest", Align::kRight, {}},   {"sequences/s", Align::kRight, {}},
                     {"outcome", Align::kLeft, {}}};
    for (const ThroughputPoint& point : column.curve) {
        if (point.out_of_memory) {
            table.rows.push_back(
                {format_count(point.batch_size), "–", "–", "–", "–", "–", "out of memory"});
            continue;
        }
        table.rows.push_back(
            {format_count(point.batch_size), format_bytes(point.peak_allocated_bytes),
             format_duration(point.step_time_ns), format_duration(point.step_time_min_ns),
             format_duration(point.step_time_max_ns), fmt::format("{:.2f}", point.sequences_per_s),
             "trained"});
    }
    output.table(table);
    const BatchBounds& bounds = column.max_batch;
    if (!bounds.below) return;
    const std::string limit = column.memory_limit_bytes > 0
                                  ? " within " + format_bytes(column.memory_limit_bytes)
                                  : std::string();
    if (const auto exact = bounds.exact()) {
        output.line(fmt::format("The largest batch that trained is {}{}.", *exact, limit));
    } else {
        output.line(fmt::format(
            "The maximum batch{} is not known: at least {}, below {}; sweep again to find it.",
            limit, bounds.at_least.value_or(0), *bounds.below));
    }
}

}  // namespace

void print_overview(Output& output, const NamedTrace& named) {
    const Trace& trace = *named.trace;
    const ComparisonColumn column = column_of(named);
    const bool incomplete = trace.run().state == RunState::kIncomplete;

    output.line(output.styled(named.file, Style::kBold));
    output.line(
        fmt::format("{}, recipe {}", describe_workload(trace), trace.text(trace.run().recipe)));
    output.line(describe_source(trace));
    if (incomplete) {
        output.line(output.styled(
            fmt::format("incomplete, {} {}", column.steps, column.steps == 1 ? "step" : "steps"),
            Style::kWarning));
    }
    // A sweep whose own batch did not fit has points, but no step to look into.
    if (column.step_trace) print_step(output, trace, column);
    print_sweep(output, column);

    const auto items = report_diagnostics(trace);
    output.line();
    output.line(items.empty() ? "Health: nothing to report."
                              : fmt::format("Health: {} {}, see --health.", items.size(),
                                            items.size() == 1 ? "note" : "notes"));
}

nlohmann::json overview_json(const NamedTrace& named) {
    const Trace& trace = *named.trace;
    const ComparisonColumn column = column_of(named);
    nlohmann::json json = describe_trace(named);
    const int64_t num_threads = trace.run().num_threads;  // 0: no processor was measured
    json["num_threads"] = num_threads > 0 ? nlohmann::json(num_threads) : nlohmann::json();
    json["seed"] = trace.run().seed;
    json["memory_limit_bytes"] = trace.run().memory_limit_bytes;
    json["peak_allocated_bytes"] = column.peak_allocated_bytes;
    json["peak_reserved_bytes"] = column.peak_reserved_bytes;
    json["kept_bytes"] = column.saved_bytes;
    json["step_time_ns"] = column.step_time_ns;
    json["throughput_sequences_per_s"] = column.sequences_per_s;
    json["loss"] = or_null(column.loss);
    json.update(max_batch_json(column));
    json["closed_form"] = closed_form_json(trace);
    json["health_notes"] = report_diagnostics(trace).size();
    json["rows"] = nlohmann::json::array();
    for (const BreakdownRow& row : break_down(trace, find_peak(trace), GroupBy::kClass)) {
        json["rows"].push_back(
            {{"name", row.name}, {"size_bytes", row.size_bytes}, {"count", row.count}});
    }
    return json;
}

}  // namespace app
