#include "app/commands/reports/rank_report.h"

#include "app/commands/reports/reports.h"
#include "profiler/view/ranks/rank_tables.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>

namespace app {

using profiler::RankRun;
using profiler::RankSummary;

void print_ranks(Output& output, const RankRun& run) {
    output.line(run.step);
    output.table(profiler::rank_memory_table(run));
    output.line();
    if (static_cast<int64_t>(run.ranks.size()) < run.world_size) {
        output.line(fmt::format("{} of {} ranks have a trace.", run.ranks.size(), run.world_size));
    }
    if (const std::string headline = profiler::rank_headline(run); !headline.empty())
        output.line(headline);
    const profiler::TextTable times = profiler::rank_time_table(run);
    if (times.rows.empty()) return;
    output.heading("Time of " + profiler::name_of_shared_step(run));
    output.table(times);
}

nlohmann::json ranks_json(const RankRun& run, const std::vector<std::string>& left_out) {
    nlohmann::json rows = json_rows(data_table(profiler::rank_columns(), run.ranks));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const RankSummary& rank = run.ranks[i];
        rows[i]["state"] = rank.is_complete ? "complete" : "incomplete";
        rows[i]["steps"] = rank.num_steps;
        rows[i]["by_class"] = by_class_json(rank.peak.by_category);
    }
    const int64_t number = run.shared_step_number();
    const nlohmann::json step = number > 0 ? nlohmann::json(number) : nlohmann::json();
    return {{"world_size", run.world_size}, {"shared_step", step},
            {"imbalance", run.imbalance()}, {"clocks", profiler::name_of(run.clocks.basis)},
            {"left_out", left_out},         {"rows", std::move(rows)}};
}

}  // namespace app
