#include "app/commands/console/trace_files.h"
#include "app/commands/reports/reports.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/trace/units.h"
#include "profiler/view/kernels/kernels_view.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace app {
namespace {

using namespace profiler;

constexpr std::size_t kMaxOpRows = 20;

/// The longest kernel and how many others there are: "flash_fwd_kernel", "reduce_kernel, 3 more".
std::string name_kernels(const std::vector<OpKernel>& kernels) {
    if (kernels.empty()) return {};
    const std::string first = short_name(kernels.front().name);
    return kernels.size() == 1 ? first : fmt::format("{}, {} more", first, kernels.size() - 1);
}

}  // namespace

TextTable ops_table(const std::vector<OpUsage>& usage) {
    TextTable table;
    table.columns = {{"phase", Align::kLeft},    {"op", Align::kLeft},
                     {"calls", Align::kRight},   {"time", Align::kRight},
                     {"scratch", Align::kRight}, {"kernels", Align::kLeft}};
    int64_t rest_ns = 0;
    int64_t rest_calls = 0;
    int64_t rest_scratch_bytes = 0;
    const auto add = [&](std::string_view phase, std::string op, int64_t calls, int64_t device_ns,
                         int64_t scratch_bytes, std::string kernels) {
        table.rows.push_back(
            {std::string(phase), std::move(op), format_count(calls), format_duration(device_ns),
             scratch_bytes > 0 ? format_bytes(scratch_bytes) : "–", std::move(kernels)});
    };
    for (std::size_t i = 0; i < usage.size(); ++i) {
        const OpUsage& row = usage[i];
        if (i < kMaxOpRows) {
            add(name_of(row.phase), std::string(row.op), row.num_calls, row.device_ns,
                row.scratch_bytes, name_kernels(row.kernels));
            continue;
        }
        rest_ns += row.device_ns;
        rest_calls += row.num_calls;
        rest_scratch_bytes = std::max(rest_scratch_bytes, row.scratch_bytes);
    }
    if (usage.size() > kMaxOpRows) {
        add("", fmt::format("{} more", usage.size() - kMaxOpRows), rest_calls, rest_ns,
            rest_scratch_bytes, "");
    }
    return table;
}

nlohmann::json ops_json(const std::vector<OpUsage>& usage) {
    nlohmann::json rows = nlohmann::json::array();
    for (const OpUsage& row : usage) {
        nlohmann::json kernels = nlohmann::json::array();
        for (const OpKernel& kernel : row.kernels) {
            kernels.push_back({{"name", kernel.name},
                               {"launches", kernel.num_launches},
                               {"device_time_ns", kernel.device_ns}});
        }
        rows.push_back({{"phase", name_of(row.phase)},
                        {"op", row.op},
                        {"calls", row.num_calls},
                        {"device_time_ns", row.device_ns},
                        {"scratch_bytes", row.scratch_bytes},
                        {"kernels", std::move(kernels)}});
    }
    return rows;
}

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
    if (has_host_times(*named.trace)) {
        output.line("No device ran anything: times are those of the host.");
    }
}

nlohmann::json ops_json(const NamedTrace& named) {
    nlohmann::json json = describe_trace(named);
    json["rows"] = ops_json(op_usage(*named.trace));
    return json;
}

}  // namespace app
