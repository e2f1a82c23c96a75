#include "app/commands/reports/rank_report.h"

#include "app/commands/reports/reports.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace app {
namespace {

using namespace profiler;

constexpr auto kUnknownCategory = static_cast<std::size_t>(Category::kUnknown);

/// "–" where 0 bytes may mean that the file does not say which they are.
std::string bytes_at_peak(const RankSummary& rank, Category category) {
    const int64_t bytes = rank.peak.by_category[static_cast<std::size_t>(category)];
    const bool is_known = bytes > 0 || rank.peak.by_category[kUnknownCategory] == 0;
    return is_known ? format_bytes(bytes) : "–";
}

/// Temporary memory, workspaces and inputs.
std::string other_bytes_at_peak(const RankSummary& rank) {
    int64_t bytes = 0;
    for (const Category category : {Category::kTemporary, Category::kWorkspace, Category::kInput}) {
        bytes += rank.peak.by_category[static_cast<std::size_t>(category)];
    }
    return format_bytes(bytes);
}

}  // namespace

void print_ranks(Output& output, const RankRun& run) {
    TextTable table;
    table.columns = {{"rank", Align::kRight, {}},
                     {"device", Align::kLeft, {}},
                     {"peak", Align::kRight, {}},
                     {"reserved", Align::kRight, {}},
                     {"parameters", Align::kRight, {}},
                     {"gradients", Align::kRight, {}},
                     {"optimizer", Align::kRight, {}},
                     {"activations", Align::kRight, {}},
                     {"other", Align::kRight, "temporaries, workspaces, inputs"},
                     {"unknown", Align::kRight, {}},
                     {"NCCL beside", Align::kRight, {}},
                     {"collectives", Align::kRight, {}},
                     {"their bytes", Align::kRight, {}},
                     {"", Align::kLeft, {}}};
    for (const RankSummary& rank : run.ranks) {
        table.rows.push_back(
            {std::to_string(rank.rank), rank.device, format_bytes(rank.peak.allocated_bytes),
             format_bytes(rank.peak.reserved_bytes), bytes_at_peak(rank, Category::kParameter),
             bytes_at_peak(rank, Category::kGradient),
             bytes_at_peak(rank, Category::kOptimizerState),
             bytes_at_peak(rank, Category::kActivation), other_bytes_at_peak(rank),
             bytes_at_peak(rank, Category::kUnknown),
             rank.nccl_bytes > 0 ? format_bytes(rank.nccl_bytes) : "–",
             rank.num_collectives > 0 ? format_count(rank.num_collectives) : "–",
             rank.num_collectives > 0 ? format_bytes(rank.collective_bytes) : "–",
             rank.is_complete ? "" : "incomplete"});
    }
    output.table(table);
    output.line();
    if (static_cast<int64_t>(run.ranks.size()) < run.world_size) {
        output.line(fmt::format("{} of {} ranks have a trace.", run.ranks.size(), run.world_size));
    }
    if (run.ranks.size() > 1) {
        output.line(fmt::format("Rank {} needs the most memory, {:.2f} times the median rank's.",
                                run.largest().rank, run.imbalance()));
    }
}

nlohmann::json ranks_json(const RankRun& run) {
    nlohmann::json rows = nlohmann::json::array();
    for (const RankSummary& rank : run.ranks) {
        rows.push_back({{"rank", rank.rank},
                        {"file", rank.file},
                        {"device", rank.device},
                        {"state", rank.is_complete ? "complete" : "incomplete"},
                        {"steps", rank.num_steps},
                        {"peak_allocated_bytes", rank.peak.allocated_bytes},
                        {"peak_reserved_bytes", rank.peak.reserved_bytes},
                        {"by_class", by_class_json(rank.peak.by_category)},
                        {"nccl_bytes", rank.nccl_bytes},
                        {"collectives", rank.num_collectives},
                        {"collective_bytes", rank.collective_bytes}});
    }
    return {
        {"world_size", run.world_size}, {"imbalance", run.imbalance()}, {"rows", std::move(rows)}};
}

}  // namespace app
