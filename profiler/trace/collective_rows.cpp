#include "profiler/trace/collective_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

/// The first that a name begins with, without "_", decides.
constexpr std::array<std::pair<std::string_view, CollectiveKind>, 12> kBeginnings{{
    {"allreduce", CollectiveKind::kAllReduce},
    {"allgather", CollectiveKind::kAllGather},
    {"alltoall", CollectiveKind::kAllToAll},
    {"reducescatter", CollectiveKind::kReduceScatter},
    {"reduce", CollectiveKind::kReduce},
    {"broadcast", CollectiveKind::kBroadcast},
    {"gather", CollectiveKind::kGather},
    {"scatter", CollectiveKind::kScatter},
    {"send", CollectiveKind::kSend},
    {"recv", CollectiveKind::kRecv},
    {"barrier", CollectiveKind::kBarrier},
    {"monitoredbarrier", CollectiveKind::kBarrier},
}};

}  // namespace

std::optional<CollectiveKind> collective_kind_of(std::string_view name) {
    std::string letters(name);
    std::erase(letters, '_');
    for (const auto& [beginning, kind] : kBeginnings) {
        if (letters.starts_with(beginning)) return kind;
    }
    return std::nullopt;
}

std::vector<int64_t> ranks_in(std::string_view text) {
    std::vector<int64_t> numbers;
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at != end;) {
        int64_t number = 0;
        const auto [after, error] = std::from_chars(at, end, number);
        if (error == std::errc()) numbers.push_back(number);
        at = error == std::errc::invalid_argument ? at + 1 : after;
    }
    return numbers;
}

std::vector<Id<Kernel>> kernels_of_collectives(const Trace& trace) {
    std::vector<Id<Kernel>> kernels;
    std::unordered_map<int32_t, Id<Kernel>> running;  // by communicator
    for (const Collective row : trace.collectives.rows()) {
        Id<Kernel>& kernel = running[row.communicator.value];
        if (row.kernel.valid()) kernel = row.kernel;
        kernels.push_back(kernel);
    }
    return kernels;
}

void link_collective(Trace& trace, Id<Kernel> id) {
    const auto ops = trace.collectives.column<&Collective::op>();
    if (ops.empty()) return;
    const Kernel kernel = trace.kernels[id];
    if (!trace.text(kernel.name).starts_with("nccl")) return;
    constexpr int kMostCalls = 64;  // around a launch; a damaged file may have rings
    Id<Op> op = kernel.op;
    for (int i = 0; i < kMostCalls && op.valid(); ++i, op = trace.ops.get<&Op::parent>(op)) {
        const auto found = std::lower_bound(ops.begin(), ops.end(), op);
        if (found == ops.end() || *found != op) continue;
        const Id<Collective> row(static_cast<std::size_t>(found - ops.begin()));
        trace.collectives.set<&Collective::kernel>(row, id);
        trace.collectives.set<&Collective::start_ns>(row, kernel.start_ns);
        trace.collectives.set<&Collective::end_ns>(row, kernel.end_ns);
        return;
    }
}

}  // namespace profiler
