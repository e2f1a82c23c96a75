#pragma once

#include "profiler/planner/placement/launch_shares.h"
#include "profiler/planner/step/step_time.h"
#include "profiler/planner/step/step_work.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Modelled times for a whole trace: kernels one after the other on one stream, ops around their
/// kernels, allocator events at the time of their op.
///
/// Where the trace has the kernels that an op launched, they share the time of the op's work
/// (launch_shares.h). Where the trace has none, each piece of the op's work counts as one kernel.
namespace profiler {

class KernelSchedule {
public:
    /// `work` is the last step of the trace. It decides how long phases wait for the host.
    KernelSchedule(Trace& trace, const StepWork& work, const TimeModel& model, Id<Stream> stream);

    void add_times();

private:
    void add_step(Id<Step> step);
    void add_phase(Id<Phase> phase, const std::vector<const OpWork*>& works);
    void add_update(Id<Phase> phase);
    std::vector<double> times_of_updates(const std::vector<Id<Op>>& ops) const;
    bool is_outermost_update(Id<Op> op) const;
    void list_launches(Id<Step> step, const StepOps& ops);
    void add_work(const OpWork& work, double stretch);
    void add_kernels(Id<Op> op, std::string_view name, int64_t start_ns, int64_t end_ns);
    void time_other_launches();
    void close_ops();
    void time_events();
    int64_t phase_start_of(int64_t event, std::size_t& phase) const;

    Trace& trace_;
    const StepWork& work_;
    const TimeModel& model_;
    Id<Stream> stream_;
    StepTime time_;
    OpWorkDefaults defaults_;
    std::optional<LaunchShares> shares_;  // of the step that is being scheduled
    std::size_t num_launches_;            // kernels that the trace had; their rows come first
    std::unordered_map<int64_t, std::vector<Id<Kernel>>> launches_;  // by op
    std::vector<std::vector<Id<Op>>> ops_;                           // by phase
    std::vector<int64_t> start_ns_;                                  // by op; -1: not yet known
    std::vector<int64_t> end_ns_;
    double now_ns_ = 1;  // events before the first step are at 0
};

/// Gives `trace` the modelled times of `work`, its last step. Where no measurement of the GPU
/// stands behind them, a diagnostic says so.
void add_modelled_times(Trace& trace, const StepWork& work, const TimeModel& model);

}  // namespace profiler
