#include "profiler/analysis/rank_run.h"

#include "profiler/analysis/collectives.h"
#include "profiler/analysis/diagnostics.h"

#include <algorithm>
#include <iterator>

namespace profiler {
namespace {

/// In the last step. Traces of version 1 have no other sign of collectives.
int64_t count_kernels_of_nccl(const Trace& trace) {
    const int64_t start_ns = trace.steps.empty() ? 0 : trace.steps.column<&Step::start_ns>().back();
    int64_t count = 0;
    for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
        const Kernel kernel = trace.kernels[Id<Kernel>(i)];
        const bool is_nccl = trace.text(kernel.name).starts_with("ncclDevKernel_");
        count += is_nccl && kernel.start_ns >= start_ns ? 1 : 0;
    }
    return count;
}

RankSummary summarize(const std::string& file, const Trace& trace) {
    const Run& run = trace.run();
    const Id<Device> device = profiled_device(trace);
    RankSummary rank{
        .rank = run.rank,
        .file = file,
        .device = device.valid() ? std::string(trace.text(trace.devices.get<&Device::name>(device)))
                                 : std::string(),
        .peak = find_peak(trace),
        .nccl_bytes = nccl_bytes_of(trace),
        .num_steps = static_cast<int64_t>(trace.steps.size()),
        .is_complete = run.state == RunState::kComplete};
    for (const CollectiveTotal& total : collectives_of_step(trace)) {
        rank.num_collectives += total.count;
        rank.collective_bytes += total.size_bytes;
    }
    if (trace.collectives.empty()) rank.num_collectives = count_kernels_of_nccl(trace);
    return rank;
}

}  // namespace

int64_t nccl_bytes_of(const Trace& trace) {
    double largest = 0;
    for (std::size_t i = 0; i < trace.counters.size(); ++i) {
        const Counter reading = trace.counters[Id<Counter>(static_cast<int32_t>(i))];
        if (trace.text(reading.name) == "nccl_bytes") largest = std::max(largest, reading.value);
    }
    return static_cast<int64_t>(largest);
}

const RankSummary& RankRun::largest() const {
    return *std::max_element(ranks.begin(), ranks.end(),
                             [](const RankSummary& a, const RankSummary& b) {
                                 return a.peak.allocated_bytes < b.peak.allocated_bytes;
                             });
}

double RankRun::imbalance() const {
    std::vector<int64_t> peaks;
    for (const RankSummary& rank : ranks) peaks.push_back(rank.peak.allocated_bytes);
    std::ranges::sort(peaks);
    const double median = (static_cast<double>(peaks[(peaks.size() - 1) / 2]) +
                           static_cast<double>(peaks[peaks.size() / 2])) /
                          2;
    return median > 0 ? static_cast<double>(largest().peak.allocated_bytes) / median : 1;
}

models::Result<RankRun> summarize_ranks(std::span<const NamedTrace> traces) {
    if (traces.empty()) return models::fail("There is no trace of a rank.");
    RankRun run{.world_size = traces.front().trace->run().world_size};
    for (const NamedTrace& named : traces) {
        if (has_note(*named.trace, kAllocationsOnly)) {
            return models::fail(
                "{} is a memory snapshot, which does not say its rank: name it alone, or join it "
                "with "
                "the profiler's trace of the run (temposcope import).",
                named.file);
        }
        const int64_t world_size = named.trace->run().world_size;
        if (world_size != run.world_size) {
            return models::fail(
                "{} is of a run of {} ranks and {} of one of {}: give the traces of one run.",
                traces.front().file, run.world_size, named.file, world_size);
        }
        run.ranks.push_back(summarize(named.file, *named.trace));
    }
    std::sort(run.ranks.begin(), run.ranks.end(),
              [](const RankSummary& a, const RankSummary& b) { return a.rank < b.rank; });
    const auto twice = std::adjacent_find(
        run.ranks.begin(), run.ranks.end(),
        [](const RankSummary& a, const RankSummary& b) { return a.rank == b.rank; });
    if (twice != run.ranks.end()) {
        return models::fail("{} and {} are both rank {}: give the traces of one run.", twice->file,
                            std::next(twice)->file, twice->rank);
    }
    return run;
}

}  // namespace profiler
