#include "app/commands/reports.h"
#include "profiler/analysis/closed_form.h"
#include "profiler/analysis/comparison_notes.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

namespace app {

using namespace profiler;

nlohmann::json by_class_json(const RoleBytes& by_role) {
    nlohmann::json json = nlohmann::json::object();
    for (std::size_t role = 0; role < by_role.size(); ++role) {
        json[std::string(kRoleNames[role]) + "_bytes"] = by_role[role];
    }
    return json;
}

TextTable breakdown_table(const std::vector<BreakdownRow>& rows, std::string_view title,
                          std::size_t max_rows) {
    TextTable table;
    table.columns = {{std::string(title), Align::kLeft, {}},
                     {"allocations", Align::kRight, {}},
                     {"bytes", Align::kRight, {}},
                     {"size", Align::kRight, {}},
                     {"share", Align::kRight, {}}};
    int64_t total_bytes = 0;
    for (const BreakdownRow& row : rows) total_bytes += row.size_bytes;
    const auto add = [&](std::string name, int64_t count, int64_t size_bytes) {
        const double share =
            total_bytes > 0 ? static_cast<double>(size_bytes) / static_cast<double>(total_bytes)
                            : 0;
        table.rows.push_back({std::move(name), format_count(count), format_count(size_bytes),
                              format_bytes(size_bytes), format_percent(share)});
    };
    BreakdownRow rest;
    BreakdownRow total;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i < max_rows) add(rows[i].name, rows[i].count, rows[i].size_bytes);
        BreakdownRow& sum = rest;
        if (i >= max_rows) {
            sum.count += rows[i].count;
            sum.size_bytes += rows[i].size_bytes;
        }
        total.count += rows[i].count;
        total.size_bytes += rows[i].size_bytes;
    }
    if (rows.size() > max_rows) {
        add(fmt::format("{} more", rows.size() - max_rows), rest.count, rest.size_bytes);
    }
    add("total", total.count, total.size_bytes);
    return table;
}

std::string describe_workload(const Trace& trace) {
    if (const auto workload = workload_of(trace)) return describe(*workload);
    const std::string_view model = trace.text(trace.run().model);
    return model.empty() ? "unknown workload" : std::string(model);
}

std::string describe_source(const Trace& trace) {
    const Run run = trace.run();
    const std::string_view device = trace.text(run.device_name);
    std::string text;
    switch (run.source) {
        case Source::kMeasuredCpu:
            text = "measured on the CPU";
            break;
        case Source::kMeasuredCuda:
            text = "measured on a GPU";
            break;
        case Source::kPredicted:
            text = "predicted";
            break;
        case Source::kImported:
            text = "imported";
            break;
    }
    if (!device.empty()) text += fmt::format(" ({})", device);
    if (run.num_threads > 0) {
        text +=
            fmt::format(", {} {}", run.num_threads, run.num_threads == 1 ? "thread" : "threads");
    }
    const auto software = nlohmann::json::parse(trace.text(run.software), nullptr, false);
    if (software.is_object() && software.contains("torch") && software["torch"].is_string()) {
        text += ", torch " + software["torch"].get<std::string>();
    }
    if (run.memory_limit_bytes > 0) {
        text += fmt::format(", limited to {}", format_bytes(run.memory_limit_bytes));
    }
    return text;
}

namespace {

/// The closed form that check_against_closed_form compared with.
std::string formula_of(const Trace& trace) {
    const auto workload = workload_of(trace);
    if (!workload) return {};
    const auto form = closed_form_of_layer(*workload, trace.run().source == Source::kMeasuredCpu);
    return form ? form->formula : std::string();
}

}  // namespace

std::string closed_form_sentence(const Trace& trace) {
    const auto check = check_against_closed_form(trace);
    if (!check) return {};
    if (check->equal()) {
        return fmt::format("Layer {} keeps {}, equal to the closed form {}.", check->layer,
                           format_exact_bytes(check->ledger_bytes), formula_of(trace));
    }
    return fmt::format("Layer {} keeps {}, the closed form {} says {}.", check->layer,
                       format_exact_bytes(check->ledger_bytes), formula_of(trace),
                       format_exact_bytes(check->closed_form_bytes));
}

nlohmann::json closed_form_json(const Trace& trace) {
    const auto check = check_against_closed_form(trace);
    if (!check) return nullptr;
    return {{"layer", check->layer},
            {"formula", formula_of(trace)},
            {"ledger_bytes", check->ledger_bytes},
            {"closed_form_bytes", check->closed_form_bytes},
            {"equal", check->equal()}};
}

}  // namespace app
