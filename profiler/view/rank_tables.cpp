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

/// A member of GpuTime, where the rank has one.
template <auto Member>
std::optional<int64_t> of_gpu(const RankSummary& rank) {
    return rank.gpu_time ? std::optional<int64_t>((*rank.gpu_time).*Member) : std::nullopt;
}
template <auto Member>
std::optional<int64_t> of_gpu_if_known(const RankSummary& rank) {
    return rank.gpu_time ? (*rank.gpu_time).*Member : std::nullopt;
}

template <auto Member>
std::optional<int64_t> of_waits(const RankSummary& rank) {
    return rank.waits ? std::optional<int64_t>((*rank.waits).*Member) : std::nullopt;
}

constexpr RankTimeColumn kTimeColumns[] = {
    {"step",
     "the last one that all ranks have whole: of a modelled pipeline, on the GPU, or without "
     "kernels on the host",
     "step_time_ns", [](const RankSummary& rank) { return rank.step_ns; }},
    {"compute", "kernels that are not NCCL's, and copies", "compute_ns",
     of_gpu<&GpuTime::compute_ns>},
    {"communication", "NCCL's kernels; in modelled steps from when all of their ranks are there",
     "communication_ns", of_gpu_if_known<&GpuTime::communication_ns>},
    {"exposed", "communication while nothing else runs", "exposed_communication_ns",
     of_gpu_if_known<&GpuTime::exposed_communication_ns>},
    {"idle", "nothing runs on the GPU, or a modelled stage of a pipeline waits for another one",
     "idle_ns", of_gpu<&GpuTime::idle_ns>},
    {"waits",
     "how long its collectives wait for the rank that comes last; known for those that two or more "
     "of these ranks measured",
     "wait_ns", of_waits<&RankWaits::wait_ns>},
    {"waited for", "how long other ranks wait for this one, where it comes last", "waited_for_ns",
     of_waits<&RankWaits::waited_for_ns>}};

/// Peaks that differ by less than this share are alike.
constexpr double kAlike = 0.005;

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

/// " In the last step, the others wait the most for rank 2: ..."; empty: none waits.
std::string about_waits(const RankRun& run) {
    const auto wait_of = of_waits<&RankWaits::wait_ns>;
    const auto waited_for_of = of_waits<&RankWaits::waited_for_ns>;
    const RankSummary& last = std::ranges::max(run.ranks, {}, waited_for_of);
    const RankSummary& patient = std::ranges::max(run.ranks, {}, wait_of);
    if (waited_for_of(last).value_or(0) == 0) return {};
    return fmt::format(
        " In {}, the others wait the most for rank {}: {}. Rank {} waits the most, {}.",
        name_of_shared_step(run), last.rank, format_duration(*waited_for_of(last)), patient.rank,
        format_duration(wait_of(patient).value_or(0)));
}

/// " A step of all stages lasts 55.4 ms: they idle 38 % of it."; empty: no pipeline is modelled.
std::string about_pipeline(const RankRun& run) {
    if (run.pipeline_step_ns.value_or(0) <= 0) return {};
    double idle_ns = 0;
    for (const RankSummary& rank : run.ranks) {
        idle_ns += static_cast<double>(of_gpu<&GpuTime::idle_ns>(rank).value_or(0));
    }
    const double all_ns =
        static_cast<double>(*run.pipeline_step_ns) * static_cast<double>(run.ranks.size());
    return fmt::format(" A step of all stages lasts {}: they idle {:.0f} % of it.",
                       format_duration(*run.pipeline_step_ns), 100 * idle_ns / all_ns);
}

std::string text_unless_0(int64_t value, std::string (*format)(int64_t)) {
    return value > 0 ? format(value) : std::string(kNoValue);
}

}  // namespace

std::string name_of_shared_step(const RankRun& run) {
    const int64_t number = run.shared_step_number();
    const bool is_last = std::ranges::all_of(run.ranks, [&](const RankSummary& rank) {
        return rank.num_steps == number && rank.num_whole_steps == number;
    });
    if (is_last || number == 0) return "the last step";
    const bool all_have_it = std::ranges::all_of(
        run.ranks, [](const RankSummary& rank) { return rank.num_whole_steps > 0; });
    return fmt::format("step {}, the last one that all ranks {}have whole", number,
                       all_have_it ? "" : "with a whole step ");
}

std::string rank_headline(const RankRun& run) {
    if (run.ranks.size() < 2) return {};
    const auto peak_of = [](const RankSummary& rank) { return rank.peak.allocated_bytes; };
    const RankSummary& largest = run.largest();
    const int64_t least = peak_of(std::ranges::min(run.ranks, {}, peak_of));
    const bool are_alike = static_cast<double>(peak_of(largest) - least) <=
                           kAlike * static_cast<double>(peak_of(largest));
    std::string text =
        are_alike ? fmt::format("All ranks need {}.", format_bytes(peak_of(largest)))
                  : fmt::format("Rank {} needs the most memory, {}: {:.2f} times the median.",
                                largest.rank, format_bytes(peak_of(largest)), run.imbalance());
    return text + about_waits(run) + about_pipeline(run);
}

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
                     {"collectives", Align::kRight, "in the last step that all ranks have whole"},
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
    const auto says_something = [](const RankSummary& rank) { return rank.gpu_time || rank.waits; };
    if (std::ranges::none_of(run.ranks, says_something)) return table;
    table.columns.push_back({"rank", Align::kRight, {}});
    std::vector<const RankTimeColumn*> known;  // of one rank at least; a CPU has no kernels
    for (const RankTimeColumn& column : kTimeColumns) {
        const auto has_value = [&](const RankSummary& rank) {
            return column.value_of(rank).has_value();
        };
        if (std::ranges::none_of(run.ranks, has_value)) continue;
        known.push_back(&column);
        table.columns.push_back({column.title, Align::kRight, column.explanation});
    }
    for (const RankSummary& rank : run.ranks) {
        std::vector<std::string> cells{std::to_string(rank.rank)};
        for (const RankTimeColumn* column : known) {
            cells.push_back(time_text(column->value_of(rank)));
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
