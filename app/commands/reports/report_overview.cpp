#include "app/commands/console/json_values.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/blocks/allocator_counts.h"
#include "profiler/analysis/blocks/device_memory.h"
#include "profiler/analysis/ranks/collectives.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/expert_routing.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/idle_blocks.h"
#include "profiler/analysis/step/offload.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace app {
namespace {

using namespace profiler;

/// The figures of one trace: a comparison with nothing.
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

/// "Allocator: 22,331 events, 10,941 allocations; at the end 234 segments and 1,032 live blocks."
void print_allocator(Output& output, const Trace& trace) {
    const AllocatorCounts counts = count_allocator_rows(trace);
    const auto number_of = [](int64_t count, std::string_view what) {
        return fmt::format("{} {}{}", format_count(count), what, count == 1 ? "" : "s");
    };
    const std::string segments =
        counts.segments == 0 ? "" : number_of(counts.segments, "segment") + " and ";
    output.line(fmt::format("Allocator: {}, {}; at the end {}{}.",
                            number_of(counts.events, "event"),
                            number_of(counts.allocations, "allocation"), segments,
                            number_of(counts.live_blocks, "live block")));
}

/// Whether figures are of the first step of the program, because it has no other.
bool is_first_step(const Trace& trace) {
    const Id<Step> step = last_step(trace);
    return step.valid() && kind_of(trace, step) == StepKind::kFirst;
}

/// What the experts of a mixture got, and what they take where one gets more than its share.
void add_experts(const ExpertRouting& experts, TextTable& figures) {
    if (experts.num_experts == 0) return;
    if (experts.imbalanced_peak_bytes >= 0) {
        figures.rows.push_back({"with uneven experts", format_bytes(experts.imbalanced_peak_bytes),
                                fmt::format("one expert has {} tokens",
                                            format_count(std::llround(experts.most_tokens)))});
    }
    figures.rows.push_back({"tokens per expert",
                            format_count(std::llround(experts.tokens_per_expert)),
                            fmt::format("{} experts, {} for each of {} tokens: {}, assumed",
                                        experts.num_experts, experts.experts_per_token,
                                        format_count(experts.num_tokens), experts.routing)});
}

/// null: no routing was assumed.
nlohmann::json experts_json(const std::optional<ExpertRouting>& experts) {
    if (!experts) return {};
    const bool has_range = experts->imbalanced_peak_bytes >= 0;
    const auto known = [&](const auto& value) {
        return has_range ? nlohmann::json(value) : nlohmann::json();
    };
    return {{"routing", experts->routing},
            {"num_tokens", experts->num_tokens},
            {"num_experts", experts->num_experts},
            {"experts_per_token", experts->experts_per_token},
            {"tokens_per_expert", experts->tokens_per_expert},
            {"imbalance", known(experts->imbalance)},
            {"most_tokens", known(experts->most_tokens)},
            {"imbalanced_peak_bytes", known(experts->imbalanced_peak_bytes)}};
}

void print_step(Output& output, const Trace& trace, const StepReport& report,
                const ComparisonColumn& column) {
    const PeakReport& peak = report.peak;
    TextTable figures;
    figures.columns = {{"", Align::kLeft}, {"", Align::kRight}, {"", Align::kLeft}};
    const auto add = [&](std::string name, std::string value, std::string detail) {
        figures.rows.push_back({std::move(name), std::move(value), std::move(detail)});
    };
    const bool has_memory = !trace.allocations.empty();
    const bool has_blocks = peak.reserved_bytes != peak.allocated_bytes;
    std::string detail = describe_peak_place(trace, peak);
    if (has_blocks) {
        detail += detail.empty() ? "" : "; ";
        detail += counts_block_bytes(trace) ? "bytes of blocks" : "requested bytes";
    }
    if (has_note(trace, kNoHistory)) {
        add("allocated at the end", format_bytes(peak.allocated_bytes),
            "there is no history, so the peak is not known: --health");
    } else if (has_memory) {
        add("peak allocated", format_bytes(peak.allocated_bytes), detail);
    } else {
        add("peak allocated", kNoValue, "the trace has no memory events: --health");
    }
    if (has_blocks) {
        add("reserved", format_bytes(peak.reserved_bytes), "held by the allocator");
    }
    if (const auto experts = expert_routing_of(trace)) add_experts(*experts, figures);
    if (!trace.steps.empty() && column.knows_saved) {
        const Id<Step> step = last_step(trace);
        const bool has_peak = !peak.step.valid() || peak.step == step;
        add("saved for backward", format_bytes(column.saved_bytes),
            fmt::format("from forward to backward{}: --saved",
                        has_peak ? "" : fmt::format(" of step {}", step.index() + 1)));
    }
    if (const Offload offload = offload_of(trace); offload.num_copies > 0) {
        add("offloaded", format_bytes(offload.size_bytes),
            fmt::format("on the host from forward to backward: {} copies out, as many back{}",
                        format_count(offload.num_copies),
                        offload.copy_ns > 0 ? ", " + format_duration(offload.copy_ns) : ""));
    }
    const bool is_predicted = column.source == Source::kPredicted;
    if (column.step_time_ns > 0) {
        add("step time", format_duration(column.step_time_ns),
            is_predicted           ? "modelled"
            : is_first_step(trace) ? "of the first step"
                                   : fmt::format("median of {}", column.steps));
        if (column.sequences_per_s > 0) {  // an imported step names no batch
            add("throughput", fmt::format("{:.2f}", column.sequences_per_s), "sequences/s");
        }
    }
    if (column.loss) add("loss", fmt::format("{:.6g}", *column.loss), "of the last step");
    output.table(figures);
    if (report.closed_form) output.line(to_sentence(*report.closed_form));
    if (!has_memory) return;
    print_allocator(output, trace);

    output.heading(has_note(trace, kNoHistory) ? "At the end" : "At the peak");
    const GroupBy by = default_group_by(trace);
    const std::size_t max_rows = by == GroupBy::kClass ? kCategoryNames.size() : 8;
    output.table(breakdown_table(break_down(trace, peak, by), name_of(by), max_rows));
    const auto idle = idle_at_peak(trace, peak);
    if (idle && idle->total_bytes > 0) output.line(idle_sentence(*idle));
}

/// The failure that ended the program, and how many it survived.
void print_failures(Output& output, const Trace& trace) {
    const Id<profiler::Failure> fatal = fatal_failure(trace);
    if (fatal.valid()) output.line(output.styled(failure_sentence(trace, fatal), Style::kBad));
    const std::string caught = profiler::caught_sentence(trace);
    if (!caught.empty()) output.line(output.styled(caught, Style::kWarning));
}

/// "mesh_shard"; "group 3" if torch has no description of it.
std::string group_name(const Trace& trace, Id<Communicator> communicator) {
    if (!communicator.valid()) return kNoValue;
    const Communicator row = trace.communicators[communicator];
    const std::string_view description = trace.text(row.description);
    if (!description.empty() && description != "undefined") return std::string(description);
    return fmt::format("group {}", trace.text(row.name));
}

std::vector<TableColumn<CollectiveTotal>> collective_columns(const Trace& trace) {
    using enum Unit;
    using Row = CollectiveTotal;
    const auto group = [&trace](const Row& row) { return group_name(trace, row.communicator); };
    const auto num_ranks = [&trace](const Row& row) -> int64_t {
        if (!row.communicator.valid()) return -1;
        return trace.communicators.get<&Communicator::num_ranks>(row.communicator);
    };
    const auto ranks_text = [num_ranks](const Row& row) {
        return text_of(kCount, known(num_ranks(row)));
    };
    const auto time_text = [](const Row& row) { return text_of(kNanoseconds, known(row.time_ns)); };
    return std::vector<TableColumn<Row>>{
        {"kind", "kind", kText, "", [](const Row& row) { return name_of(row.kind); }},
        {"group", "group", kText, "", group},
        {"num_ranks", "ranks", kCount, "", num_ranks, ranks_text},
        {"count", "calls", kCount, "", &Row::count},
        {"in_bytes", "in", kBytes, "", &Row::in_bytes},
        {"out_bytes", "out", kBytes, "", &Row::out_bytes},
        {"time_ns", "time", kNanoseconds, "", &Row::time_ns, time_text}};
}

/// Nothing if the step communicates nothing.
void print_collectives(Output& output, const Trace& trace) {
    const auto totals = collectives_of(trace, last_step(trace));
    if (totals.empty()) return;
    output.heading(trace.steps.empty() ? "Collectives" : "Collectives of a step");
    output.table(text_table(collective_columns(trace), totals));
}

nlohmann::json collectives_json(const Trace& trace) {
    return json_rows(
        data_table(collective_columns(trace), collectives_of(trace, last_step(trace))));
}

/// The ranges of one name: "Optimizer.step#AdamW.step", or "ProfilerStep#" of all steps.
struct AnnotationTotal {
    std::string name;
    int64_t count = 0;
    int64_t total_ns = 0;
};

/// The longest first.
std::vector<AnnotationTotal> annotation_totals(const Trace& trace) {
    std::map<std::string_view, AnnotationTotal> by_name;
    for (std::size_t i = 0; i < trace.annotations.size(); ++i) {
        const Annotation row = trace.annotations[Id<Annotation>(i)];
        std::string_view name = trace.text(row.text);
        const std::string_view without_number =
            name.substr(0, name.find_last_not_of("0123456789") + 1);
        if (without_number.ends_with('#')) name = without_number;  // "ProfilerStep#3"
        AnnotationTotal& total = by_name[name];
        total.name = total.count == 0 ? trace.text(row.text) : name;
        ++total.count;
        total.total_ns += std::max<int64_t>(row.end_ns - row.start_ns, 0);
    }
    std::vector<AnnotationTotal> totals;
    for (auto& [name, total] : by_name) totals.push_back(std::move(total));
    std::ranges::stable_sort(totals, std::greater(), &AnnotationTotal::total_ns);
    return totals;
}

std::vector<TableColumn<AnnotationTotal>> annotation_columns() {
    return std::vector<TableColumn<AnnotationTotal>>{
        {"name", "range", Unit::kText, "", &AnnotationTotal::name},
        {"count", "times", Unit::kCount, "", &AnnotationTotal::count},
        {"total_ns", "time", Unit::kNanoseconds, "", &AnnotationTotal::total_ns}};
}

void print_annotations(Output& output, const Trace& trace) {
    constexpr std::size_t kMostRows = 8;
    const auto totals = annotation_totals(trace);
    if (totals.empty()) return;
    output.heading("Annotations");
    TextTable table = text_table(annotation_columns(), totals);
    table.rows.resize(std::min(kMostRows, totals.size()));
    output.table(table);
    if (totals.size() <= kMostRows) return;
    output.line(fmt::format("{} more in the table annotation of the trace.",
                            format_count(std::ssize(totals) - std::ssize(table.rows))));
}

std::vector<TableColumn<DeviceMemory>> device_columns(const Trace& trace) {
    using enum Unit;
    using Row = DeviceMemory;
    const auto name = [&trace](const Row& row) {
        return trace.text(trace.devices.get<&Device::name>(row.device));
    };
    const auto refused_text = [](const Row& row) {
        return row.refused_bytes > 0
                   ? fmt::format("ran out of memory: {} asked for", format_bytes(row.refused_bytes))
                   : std::string();
    };
    return std::vector<TableColumn<Row>>{
        {"device", "device", kText, "", name},
        {"allocations", "allocations", kCount, "", &Row::num_allocations},
        {"peak_allocated_bytes", "peak allocated", kBytes, "", &Row::peak_bytes},
        {"end_allocated_bytes", "at the end", kBytes, "", &Row::end_bytes},
        {"refused_bytes", "", kText, "", &Row::refused_bytes, refused_text}};
}

/// Nothing for one device: the other figures are of it.
void print_devices(Output& output, const Trace& trace) {
    const std::vector<DeviceMemory> devices = memory_by_device(trace);
    if (devices.size() < 2) return;
    output.heading("Devices");
    output.table(text_table(device_columns(trace), devices));
    const Id<Device> shown = profiled_device(trace);
    if (!shown.valid()) return;
    output.line(fmt::format("The other figures are of {}. For another one: --device.",
                            trace.text(trace.devices.get<&Device::name>(shown))));
}

/// "fsdp2"; null: no built-in model over many GPUs.
nlohmann::json parallel_json(const Trace& trace) {
    const auto program = program_of(trace);
    const std::string strategy = program ? strategy_of(*program) : std::string();
    return strategy.empty() ? nlohmann::json() : nlohmann::json(strategy);
}

void print_sweep(Output& output, const ComparisonColumn& column) {
    if (column.curve.empty()) return;
    output.heading("Batch sizes of the sweep");
    TextTable table;
    table.columns = {{"batch", Align::kRight},     {"peak", Align::kRight},
                     {"step time", Align::kRight}, {"fastest", Align::kRight},
                     {"slowest", Align::kRight},   {"sequences/s", Align::kRight},
                     {"outcome", Align::kLeft}};
    for (const ThroughputPoint& point : column.curve) {
        if (point.out_of_memory) {
            table.rows.push_back({format_count(point.batch_size), kNoValue, kNoValue, kNoValue,
                                  kNoValue, kNoValue, "out of memory"});
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
            "The largest batch{} is not known: at least {}, below {}; sweep again to find it.",
            limit, bounds.at_least.value_or(0), *bounds.below));
    }
}

}  // namespace

void print_overview(Output& output, const NamedTrace& named) {
    const Trace& trace = *named.trace;
    const auto report = report_of(named);
    const ComparisonColumn column = column_of({named.file, named.trace, report});
    const bool incomplete = trace.run().state == RunState::kIncomplete;

    output.line(output.styled(named.file, Style::kBold));
    output.line(describe_run(trace));
    output.line(describe_source(trace));
    if (incomplete) {
        output.line(output.styled(
            fmt::format("incomplete, {} {}", column.steps, column.steps == 1 ? "step" : "steps"),
            Style::kWarning));
    }
    print_failures(output, trace);
    // When the batch of a sweep itself did not fit, the file has points but no step.
    if (column.step_trace) print_step(output, trace, *report, column);
    print_devices(output, trace);
    print_collectives(output, trace);
    print_annotations(output, trace);
    print_sweep(output, column);

    const auto items = report_diagnostics(trace, *report);
    output.line();
    output.line(items.empty() ? "Diagnostics: nothing to report."
                              : fmt::format("Diagnostics: {} {}, see --health.", items.size(),
                                            items.size() == 1 ? "note" : "notes"));
}

nlohmann::json overview_json(const NamedTrace& named) {
    const Trace& trace = *named.trace;
    const auto report = report_of(named);
    const ComparisonColumn column = column_of({named.file, named.trace, report});
    const AllocatorCounts counts = count_allocator_rows(trace);
    nlohmann::json json = describe_trace(named);
    const int64_t num_threads = trace.run().num_threads;  // 0: no processor was measured
    json["num_threads"] = num_threads > 0 ? nlohmann::json(num_threads) : nlohmann::json();
    json["seed"] = trace.run().seed;
    json["rank"] = trace.run().rank;
    json["world_size"] = trace.run().world_size;
    json["parallel"] = parallel_json(trace);
    json["memory_limit_bytes"] = trace.run().memory_limit_bytes;
    json["failures"] = nlohmann::json::array();
    for (const Id<profiler::Failure> id : trace.failures.ids()) {
        json["failures"].push_back(failure_json(trace, id));
    }
    json["value_reads"] = value_reads_json(value_read_lines(trace));
    json["experts"] = experts_json(expert_routing_of(trace));
    const auto idle = idle_at_peak(trace, report->peak);
    json["idle_bytes"] = idle ? nlohmann::json(idle->total_bytes) : nlohmann::json();
    json["peak_allocated_bytes"] = column.peak_allocated_bytes;
    json["peak_reserved_bytes"] = column.peak_reserved_bytes;
    json["kept_bytes"] = saved_bytes_json(column);
    json["offloaded_bytes"] = offload_of(trace).size_bytes;
    json["step_time_ns"] = column.step_time_ns;
    json["throughput_sequences_per_s"] = known_size(column.sequences_per_s);
    json["loss"] = or_null(column.loss);
    json.update(max_batch_json(column));
    json["closed_form"] = closed_form_json(report->closed_form);
    json["allocator"] = {{"events", counts.events},
                         {"allocations", counts.allocations},
                         {"live_blocks", counts.live_blocks},
                         {"segments", counts.segments}};
    json["devices"] = json_rows(data_table(device_columns(trace), memory_by_device(trace)));
    json["collectives"] = collectives_json(trace);
    json["annotations"] = json_rows(data_table(annotation_columns(), annotation_totals(trace)));
    json["health_notes"] = report_diagnostics(trace, *report).size();
    json["rows"] = nlohmann::json::array();
    for (const BreakdownRow& row : break_down(trace, report->peak, default_group_by(trace))) {
        json["rows"].push_back(group_json(row));
    }
    return json;
}

}  // namespace app
