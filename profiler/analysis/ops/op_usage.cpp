#include "profiler/analysis/ops/op_usage.h"

#include "profiler/analysis/ops/calls.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/trace_notes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

class UsageBuilder {
public:
    explicit UsageBuilder(const Trace& trace) : trace_(trace), last_step_(last_step(trace)) {}

    std::vector<OpUsage> build() {
        if (has_host_times(trace_)) add_host_times();
        add_launches(trace_.kernels, &Kernel::name);
        add_launches(trace_.memcpys, &Memcpy::kind);
        add_scratch();
        std::vector<OpUsage> rows;
        for (auto& [key, row] : rows_) rows.push_back(finish(std::move(row)));
        std::ranges::stable_sort(rows, std::ranges::greater{}, [](const OpUsage& row) {
            return std::pair(row.device_ns, row.scratch_bytes);
        });
        return rows;
    }

private:
    struct Row {
        OpUsage usage;
        std::set<Id<Op>> calls;
        std::map<std::string_view, OpKernel> kernels;
    };

    /// Null for an op that is not in a phase of the last step. Without steps all ops are of one
    /// forward.
    Row* row_of(Id<Op> op) {
        if (!op.valid() || !of_rank_.contain(op)) return nullptr;
        const Id<Phase> phase = trace_.ops.get<&Op::phase>(op);
        const bool has_steps = last_step_.valid();
        if (has_steps && (!phase.valid() || trace_.phases.get<&Phase::step>(phase) != last_step_)) {
            return nullptr;
        }
        const std::string_view name = name_of_call(trace_, op);
        const PhaseKind kind =
            has_steps ? trace_.phases.get<&Phase::kind>(phase) : PhaseKind::kForward;
        Row& row = rows_[{kind, name}];
        row.usage.op = name;
        row.usage.phase = kind;
        row.calls.insert(op);
        return &row;
    }

    /// The time of an op without the times of the ops that it calls.
    void add_host_times() {
        std::vector<int64_t> own_ns(trace_.ops.size());
        for (std::size_t i = 0; i < own_ns.size(); ++i) {
            const Op op = trace_.ops[Id<Op>(i)];
            own_ns[i] += op.end_ns - op.start_ns;
            const bool is_called = op.parent.valid() && op.parent.index() < i;
            if (is_called) own_ns[op.parent.index()] -= op.end_ns - op.start_ns;
        }
        for (std::size_t i = 0; i < own_ns.size(); ++i) {
            Row* row = row_of(Id<Op>(i));
            if (row != nullptr) row->usage.device_ns += std::max<int64_t>(own_ns[i], 0);
        }
    }

    template <typename Launch>
    void add_launches(const Table<Launch>& launches, StringId Launch::*name) {
        for (const Launch launch : launches.rows()) {
            Row* row = row_of(launch.op);
            if (row == nullptr) continue;
            OpKernel& kernel = row->kernels[trace_.text(launch.*name)];
            ++kernel.num_launches;
            kernel.device_ns += launch.end_ns - launch.start_ns;
        }
    }

    /// The scratch of each call, from its allocations and frees in their order.
    void add_scratch() {
        struct Change {
            int64_t event = 0;
            int64_t bytes = 0;
        };
        std::unordered_map<int32_t, std::vector<Change>> by_call;
        for (const Allocation a : trace_.allocations.rows()) {
            if (!is_scratch(a)) continue;
            std::vector<Change>& changes = by_call[a.freeing_op.value];
            changes.push_back({a.alloc_event, a.requested_bytes});
            changes.push_back({a.free_requested_event, -a.requested_bytes});
        }
        for (auto& [call, changes] : by_call) {
            Row* row = row_of(Id<Op>(static_cast<std::size_t>(call)));
            if (row == nullptr) continue;
            std::ranges::sort(changes, {}, &Change::event);
            int64_t live_bytes = 0;
            for (const Change& change : changes) {
                live_bytes += change.bytes;
                row->usage.scratch_bytes = std::max(row->usage.scratch_bytes, live_bytes);
            }
        }
    }

    bool is_scratch(const Allocation& a) const {
        if (a.free_requested_event < 0 || !a.op.valid() || !a.freeing_op.valid()) return false;
        // Gradients die in the engine's calls.
        if (name_of_call(trace_, a.freeing_op).starts_with(kEngineCall)) {
            return false;
        }
        return is_within(trace_, a.op, a.freeing_op);
    }

    static OpUsage finish(Row row) {
        row.usage.num_calls = static_cast<int64_t>(row.calls.size());
        for (auto& [name, kernel] : row.kernels) {
            kernel.name = name;
            row.usage.device_ns += kernel.device_ns;
            row.usage.kernels.push_back(kernel);
        }
        std::ranges::stable_sort(row.usage.kernels, std::ranges::greater{}, &OpKernel::device_ns);
        return std::move(row.usage);
    }

    const Trace& trace_;
    const Id<Step> last_step_;
    const OpsOfRank of_rank_{trace_};
    std::map<std::pair<PhaseKind, std::string_view>, Row> rows_;
};

}  // namespace

bool has_host_times(const Trace& trace) {
    return trace.run().source == Source::kImported && trace.kernels.empty() &&
           trace.memcpys.empty();
}

std::vector<OpUsage> op_usage(const Trace& trace) { return UsageBuilder(trace).build(); }

}  // namespace profiler
