#include "profiler/view/rank_tables.h"

#include "profiler/trace/units.h"
#include "profiler/view/no_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace profiler {
namespace {

constexpr RankTimeColumn kTimeColumns[] = {
    {"step", "the last recorded one", "step_time_ns",
     [](const RankSummary& rank) { return rank.step_ns; }},
    {"compute", "kernels and copies, whatever else runs beside them", "compute_ns",
     [](const RankSummary& rank) {
         return rank.gpu_time ? std::optional(rank.gpu_time->compute_ns) : std::nullopt;
     }},
    {"exposed", "communication while nothing else runs; a predicted step has no time for it",
     "exposed_communication_ns",
     [](const RankSummary& rank) {
         return rank.gpu_time ? rank.gpu_time->exposed_communication_ns : std::nullopt;
     }},
    {"idle", "nothing runs on the GPU", "idle_ns",
     [](const RankSummary& rank) {
         return rank.gpu_time ? std::optional(rank.gpu_time->idle_ns) : std::nullopt;
     }},
    {"waits", "in collectives, for the rank that comes last; known where two ranks were measured",
     "wait_ns", [](const RankSummary& rank) { return rank.wait_ns; }}};

std::string time_text(std::optional<int64_t> ns) {
    return ns ? format_duration(*ns) : std::string(kNoValue);
}

int64_t bytes_of(const RankSummary& rank, Category category) {
    return rank.peak.by_category[static_cast<std::size_t>(category)];
}

/// No value where 0 bytes may mean that the file does not say which they are.
std::string bytes_at_peak(const RankSummary& rank, Category category) {
    const int64_t bytes = bytes_of(rank, category);
    const bool is_known = bytes > 0 || bytes_of(rank, Category::kUnknown) == 0;
    return is_known ? format_bytes(bytes) : std::string(kNoValue);
}

/// Temporary memory, workspaces and inputs.
int64_t other_bytes_at_peak(const RankSummary& rank) {
    return bytes_of(rank, Category::kTemporary) + bytes_of(rank, Category::kWorkspace) +
           bytes_of(rank, Category::kInput);
}

std::string text_unless_0(int64_t value, std::string (*format)(int64_t)) {
    return value > 0 ? format(value) : std::string(kNoValue);
}

}  // namespace

std::span<const RankTimeColumn> rank_time_columns() { return kTimeColumns; }

TextTable rank_memory_table(const RankRun& run) {
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
                     {"NCCL beside", Align::kRight, "what NCCL takes beside the allocator"},
                     {"collectives", Align::kRight, "in the last step"},
                     {"their bytes", Align::kRight, "of each the larger of what goes in and out"},
                     {"", Align::kLeft, {}}};
    for (const RankSummary& rank : run.ranks) {
        table.rows.push_back(
            {std::to_string(rank.rank), rank.device, format_bytes(rank.peak.allocated_bytes),
             format_bytes(rank.peak.reserved_bytes), bytes_at_peak(rank, Category::kParameter),
             bytes_at_peak(rank, Category::kGradient),
             bytes_at_peak(rank, Category::kOptimizerState),
             bytes_at_peak(rank, Category::kActivation), format_bytes(other_bytes_at_peak(rank)),
             bytes_at_peak(rank, Category::kUnknown), text_unless_0(rank.nccl_bytes, format_bytes),
             text_unless_0(rank.num_collectives, format_count),
             rank.num_collectives > 0 ? format_bytes(rank.collective_bytes) : std::string(kNoValue),
             rank.is_complete ? "" : "incomplete"});
    }
    return table;
}

TextTable rank_time_table(const RankRun& run) {
    TextTable table;
    const auto says_something = [](const RankSummary& rank) {
        return rank.gpu_time || rank.wait_ns;
    };
    if (std::ranges::none_of(run.ranks, says_something)) return table;
    table.columns.push_back({"rank", Align::kRight, {}});
    for (const RankTimeColumn& column : kTimeColumns) {
        table.columns.push_back({column.title, Align::kRight, column.explanation});
    }
    for (const RankSummary& rank : run.ranks) {
        std::vector<std::string> cells{std::to_string(rank.rank)};
        for (const RankTimeColumn& column : kTimeColumns) {
            cells.push_back(time_text(column.value_of(rank)));
        }
        table.rows.push_back(std::move(cells));
    }
    return table;
}

DataTable ranks_data(const RankRun& run) {
    DataTable table{
        .columns = {"rank", "file", "device", "peak_allocated_bytes", "peak_reserved_bytes"},
        .rows = {},
        .left_out = {}};
    for (const std::string_view category : kCategoryNames) {
        table.columns.push_back(fmt::format("{}_bytes", category));
    }
    for (const char* name : {"nccl_bytes", "collectives", "collective_bytes"}) {
        table.columns.emplace_back(name);
    }
    for (const RankTimeColumn& column : kTimeColumns) table.columns.emplace_back(column.key);
    for (const RankSummary& rank : run.ranks) {
        std::vector<DataTable::Cell> row{rank.rank, rank.file, rank.device,
                                         rank.peak.allocated_bytes, rank.peak.reserved_bytes};
        for (const int64_t bytes : rank.peak.by_category) row.emplace_back(bytes);
        for (const int64_t value : {rank.nccl_bytes, rank.num_collectives, rank.collective_bytes}) {
            row.emplace_back(value);
        }
        for (const RankTimeColumn& column : kTimeColumns) {
            const std::optional<int64_t> ns = column.value_of(rank);
            row.push_back(ns ? DataTable::Cell(*ns) : DataTable::Cell());
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

}  // namespace profiler
