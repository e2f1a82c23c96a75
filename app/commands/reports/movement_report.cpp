#include "app/commands/reports/movement_report.h"

#include "app/commands/console/json_values.h"
#include "app/commands/console/trace_files.h"
#include "models/config/names.h"
#include "profiler/analysis/ops/logical_ops.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

namespace app {
namespace {

using namespace profiler;

std::optional<int64_t> known_time(const MovementWork& work) {
    return work.time_ns > 0 ? std::optional(work.time_ns) : std::nullopt;
}

nlohmann::json work_json(const MovementWork& work) {
    return {{"flop", work.flop},
            {"read_words", work.words_read},
            {"written_words", work.words_written},
            {"flop_per_word", or_null(rates_of(work, {}).flop_per_word)},
            {"time_ns", or_null(known_time(work))}};
}

/// In the order of the CSV's columns.
DataTable rows_table(const std::vector<MovementViewRow>& rows) {
    return data_table(
        pick(movement_columns(),
             {"phase", "module", "name", "class", "calls", "flop", "read_words", "written_words",
              "bytes", "flop_per_word", "flop_per_byte", "time_ns", "flop_per_s", "peak_share",
              "bandwidth_bytes_per_s", "mue", "compute_limit_ns", "memory_limit_ns", "bound"}),
        rows);
}

nlohmann::json class_json(const MovementClassRow& row) {
    return {{"class", name_of(row.op_class)},
            {"flop_share", row.flop_share},
            {"time_share", or_null(row.time_share)},
            {"ivanov_flop_share", or_null(row.ivanov_flop_share)},
            {"ivanov_time_share", or_null(row.ivanov_time_share)}};
}

/// One layer of the logical ops.
MovementWork layer_of(const models::Workload& workload) {
    models::Workload one = workload;
    one.model.num_layers = 1;
    one.gradient_accumulation_steps = 1;
    return total_of(logical_movement(one).rows);
}

MovementWork attention_of_layer(const models::Workload& workload) {
    return attention_of(logical_ops(workload), workload.precision);
}

bool is_logical(const MovementDocument& document) {
    return document.ops == MovementOps::kLogical && document.workload.has_value();
}

std::vector<MovementViewRow> rows_of(const MovementDocument& document) {
    return movement_rows(rows_by(document.report, document.by), document.peaks.peaks,
                         document.peaks.fit_its_times);
}

std::vector<MovementClassRow> classes_of(const MovementDocument& document) {
    return movement_classes(document.report, document.workload ? &*document.workload : nullptr,
                            document.scope);
}

std::optional<double> bound_share(const MovementDocument& document) {
    if (!document.peaks.fit_its_times) return std::nullopt;
    return memory_bound_share(document.report, document.peaks.peaks);
}

const std::vector<std::string>& notes_of(const MovementDocument& document) {
    static const std::vector<std::string> kNone;
    return document.ops == MovementOps::kLogical ? kNone : document.peaks.notes;
}

std::string what_is_listed(const MovementDocument& document) {
    if (document.ops == MovementOps::kLogical) {
        const int64_t num_layers = document.report.num_layers;
        return fmt::format(
            "Logical ops of {}, forward and backward: bias, dropout and residual are passes of "
            "their own, and nothing is recomputed.",
            num_layers == 1 ? "the layer" : fmt::format("all {} layers", num_layers));
    }
    const bool is_predicted = document.named.trace->run().source == Source::kPredicted;
    const char* const times =
        is_predicted ? "Times are predicted for kernels and copies: they may be 20 % off."
        : document.report.has_device_times ? "Times are those of kernels and copies."
                                           : "Times are those of calls.";
    return fmt::format("The ops of one {}step, {}. {}", is_predicted ? "predicted " : "",
                       document.scope == MovementScope::kLayers
                           ? "forward and backward in the layers"
                           : "with loss, head and optimizer",
                       times);
}

std::string peaks_sentence(const DevicePeaks& peaks) {
    const std::string bandwidth = format_amount(peaks.bytes_per_s, "B/s");
    if (peaks.flop_per_s <= 0) return fmt::format("Peak of {}: {}.", peaks.name, bandwidth);
    return fmt::format("Peaks of {}: {} and {}.", peaks.name,
                       format_amount(peaks.flop_per_s, "flop/s"), bandwidth);
}

}  // namespace

void print_movement(Output& output, const MovementDocument& document) {
    const Trace& trace = *document.named.trace;
    output.line(output.styled(fmt::format("Data movement: {}", document.named.file), Style::kBold));
    output.line(describe_run(trace));
    output.line(what_is_listed(document));
    if (!document.peaks.peaks.name.empty()) output.line(peaks_sentence(document.peaks.peaks));
    output.line();
    output.table(movement_table(rows_of(document), document.by));
    output.line();
    const auto add_sum = [&](const char* what, const MovementWork& work) {
        output.line(fmt::format("{}: {}.", what, sum_text(work)));
    };
    add_sum("Sum", total_of(document.report.rows));
    if (is_logical(document)) {
        add_sum("One layer", layer_of(*document.workload));
        add_sum("Its attention, forward", attention_of_layer(*document.workload));
    }
    if (const auto share = bound_share(document)) {
        output.line(fmt::format("Memory-bound ops take {} of the time.", format_percent(*share)));
    }
    if (document.report.other_time_ns > 0) {
        output.line(fmt::format("Ops that are not counted take another {}.",
                                format_duration(document.report.other_time_ns)));
    }
    output.line();
    output.table(movement_class_table(classes_of(document)));
    for (const std::string& note : notes_of(document)) {
        output.line();
        output.line(note);
    }
    if (document.files.empty()) return;
    output.line();
    for (const std::string& file : document.files) output.line("wrote " + file);
}

nlohmann::json movement_json(const MovementDocument& document) {
    nlohmann::json json = describe_trace(document.named);
    const DevicePeaks& peaks = document.peaks.peaks;
    const auto positive = [](double value) {
        return value > 0 ? nlohmann::json(value) : nlohmann::json();
    };
    json["ops"] = kMovementOpsNames[static_cast<std::size_t>(document.ops)];
    json["scope"] = kMovementScopeNames[static_cast<std::size_t>(document.scope)];
    json["by"] = kMovementByNames[static_cast<std::size_t>(document.by)];
    json["gpu"] = peaks.gpu.empty() ? nlohmann::json() : nlohmann::json(peaks.gpu);
    json["peak_flop_per_s"] = positive(peaks.flop_per_s);
    json["peak_bandwidth_bytes_per_s"] = positive(peaks.bytes_per_s);
    json["memory_bound_time_share"] = or_null(bound_share(document));
    json["other_time_ns"] = document.report.other_time_ns;
    json["total"] = work_json(total_of(document.report.rows));
    json["layer"] =
        is_logical(document) ? work_json(layer_of(*document.workload)) : nlohmann::json();
    json["attention"] =
        is_logical(document) ? work_json(attention_of_layer(*document.workload)) : nlohmann::json();
    json["classes"] = nlohmann::json::array();
    for (const MovementClassRow& row : classes_of(document)) {
        json["classes"].push_back(class_json(row));
    }
    json["notes"] = notes_of(document);
    json["charts"] = document.charts;
    json["rows"] = json_rows(rows_table(rows_of(document)));
    return json;
}

std::string movement_csv(const MovementDocument& document) {
    return to_csv(rows_table(rows_of(document)), Decimals::kAsJson);
}

}  // namespace app
