#include "profiler/view/ranks/rank_tables.h"

#include "profiler/tables/signed_text.h"
#include "profiler/trace/units.h"

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

using RankColumn = TableColumn<RankSummary>;

/// What the GPU does in the shared step.
const std::vector<RankColumn>& time_columns() {
    using enum Unit;
    static const std::vector<RankColumn> kColumns{
        {"step_time_ns", "step", kNanoseconds,
         "the last one that all ranks have whole: of a modelled pipeline, on the GPU, or without "
         "kernels on the host",
         &RankSummary::step_ns},
        {"compute_ns", "compute", kNanoseconds, "kernels that are not NCCL's, and copies",
         of_gpu<&GpuTime::compute_ns>},
        {"communication_ns", "communication", kNanoseconds,
         "NCCL's kernels; in modelled steps from when all of their ranks are there",
         of_gpu_if_known<&GpuTime::communication_ns>},
        {"exposed_communication_ns", "exposed", kNanoseconds,
         "communication while nothing else runs",
         of_gpu_if_known<&GpuTime::exposed_communication_ns>},
        {"idle_ns", "idle", kNanoseconds,
         "nothing runs on the GPU, or a modelled stage of a pipeline waits for another one",
         of_gpu<&GpuTime::idle_ns>},
        {"wait_ns", "waits", kNanoseconds,
         "how long its collectives wait for the rank that comes last; known for those that two or "
         "more of these ranks measured",
         of_waits<&RankWaits::wait_ns>},
        {"waited_for_ns", "waited for", kNanoseconds,
         "how long other ranks wait for this one, where it comes last",
         of_waits<&RankWaits::waited_for_ns>}};
    return kColumns;
}

/// Peaks that differ by less than this share are alike.
constexpr double kAlike = 0.005;

int64_t bytes_of(const RankSummary& rank, Category category) {
    return rank.peak.by_category[static_cast<std::size_t>(category)];
}

/// No value where 0 bytes may mean that the file does not say which they are.
RankColumn bytes_at_peak(std::string title, Category category) {
    const auto value = [category](const RankSummary& rank) {
        const int64_t bytes = bytes_of(rank, category);
        const bool is_known = bytes > 0 || bytes_of(rank, Category::kUnknown) == 0;
        return is_known ? Cell(bytes) : Cell();
    };
    return {"", std::move(title), Unit::kBytes, "", value};
}

/// Temporary memory, workspaces and inputs.
int64_t other_bytes_at_peak(const RankSummary& rank) {
    return bytes_of(rank, Category::kTemporary) + bytes_of(rank, Category::kWorkspace) +
           bytes_of(rank, Category::kInput);
}

const RankColumn kRank{"rank", "rank", Unit::kNumber, "", &RankSummary::rank};

const std::vector<RankColumn>& device_columns() {
    static const std::vector<RankColumn> kColumns{
        {"device", "device", Unit::kText, "", &RankSummary::device},
        {"peak_allocated_bytes", "peak", Unit::kBytes, "",
         [](const RankSummary& rank) { return rank.peak.allocated_bytes; }},
        {"peak_reserved_bytes", "reserved", Unit::kBytes, "",
         [](const RankSummary& rank) { return rank.peak.reserved_bytes; }}};
    return kColumns;
}

/// Texts show no value for 0.
const std::vector<RankColumn>& nccl_columns() {
    const auto text_unless_0 = [](Unit unit, int64_t RankSummary::*member,
                                  int64_t RankSummary::*of) {
        return [=](const RankSummary& rank) {
            return text_of(unit, rank.*of > 0 ? Cell(rank.*member) : Cell());
        };
    };
    using enum Unit;
    static const std::vector<RankColumn> kColumns{
        {"nccl_bytes", "NCCL beside", kBytes, "what NCCL takes beside the allocator",
         &RankSummary::nccl_bytes,
         text_unless_0(kBytes, &RankSummary::nccl_bytes, &RankSummary::nccl_bytes)},
        {"collectives", "collectives", kCount, "in the last step that all ranks have whole",
         &RankSummary::num_collectives,
         text_unless_0(kCount, &RankSummary::num_collectives, &RankSummary::num_collectives)},
        {"collective_bytes", "their bytes", kBytes, "of each the larger of what goes in and out",
         &RankSummary::collective_bytes,
         text_unless_0(kBytes, &RankSummary::collective_bytes, &RankSummary::num_collectives)}};
    return kColumns;
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

std::vector<RankColumn> rank_columns() {
    const RankColumn file{.id = "file", .value = &RankSummary::file};
    return join<RankSummary>({{kRank, file}, device_columns(), nccl_columns(), time_columns()});
}

TextTable rank_memory_table(const RankRun& run) {
    const std::vector<RankColumn> at_peak{
        bytes_at_peak("parameters", Category::kParameter),
        bytes_at_peak("gradients", Category::kGradient),
        bytes_at_peak("optimizer", Category::kOptimizerState),
        bytes_at_peak("activations", Category::kActivation),
        {"", "other", Unit::kBytes, "temporaries, workspaces, inputs", other_bytes_at_peak},
        bytes_at_peak("unknown", Category::kUnknown)};
    const RankColumn state{
        .value = [](const RankSummary& rank) { return rank.is_complete ? "" : "incomplete"; }};
    return text_table(
        join<RankSummary>({{kRank}, device_columns(), at_peak, nccl_columns(), {state}}),
        run.ranks);
}

TextTable rank_time_table(const RankRun& run) {
    const auto says_something = [](const RankSummary& rank) { return rank.gpu_time || rank.waits; };
    if (std::ranges::none_of(run.ranks, says_something)) return {};
    std::vector<RankColumn> known{kRank};  // of one rank at least; a CPU has no kernels
    for (const RankColumn& column : time_columns()) {
        const auto has_value = [&](const RankSummary& rank) {
            return column.value(rank).has_value();
        };
        if (std::ranges::any_of(run.ranks, has_value)) known.push_back(column);
    }
    return text_table(known, run.ranks);
}

DataTable ranks_data(const RankRun& run) {
    std::vector<RankColumn> columns = rank_columns();
    std::vector<RankColumn> by_class;
    for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
        by_class.push_back(
            {.id = fmt::format("{}_bytes", kCategoryNames[i]),
             .value = [i](const RankSummary& rank) { return rank.peak.by_category[i]; }});
    }
    const auto place = std::ranges::find(columns, "nccl_bytes", &RankColumn::id);
    columns.insert(place, by_class.begin(), by_class.end());
    return data_table(columns, run.ranks);
}

}  // namespace profiler
