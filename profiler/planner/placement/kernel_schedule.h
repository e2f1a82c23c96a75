#pragma once

#include "profiler/planner/placement/launch_shares.h"
#include "profiler/planner/placement/stream_times.h"
#include "profiler/planner/step/step_time.h"
#include "profiler/planner/step/step_work.h"
#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Modelled times for a whole trace: kernels on their streams (stream_times.h), ops around their
/// kernels on the stream that computes, allocator events at the time of their op.
///
/// Where the trace has the kernels that an op launched, they share the time of the op's work
/// (launch_shares.h). Where the trace has none, each piece of the op's work counts as one kernel,
/// in the place of the op's copy if there is one.
namespace profiler {

class KernelSchedule {
public:
    /// `work` is the last step of the trace. It decides how long phases wait for the host.
    KernelSchedule(Trace& trace, const StepWork& work, const TimeModel& model, Id<Stream> stream);

    void add_times();

private:
    void add_step(Id<Step> step, const StepOps& ops);
    void add_phase(Id<Phase> phase, const std::vector<const OpWork*>& works);
    void add_update(Id<Phase> phase);
    std::vector<double> times_of_updates(const std::vector<Id<Op>>& ops) const;
    bool is_outermost_update(Id<Op> op) const;
    void list_launches(const std::vector<StepOps>& ops);
    void add_up_beside(const StepOps& ops);
    Id<Step> step_around(Id<Op> op) const;
    double stretch_of(PhaseKind kind) const;
    void add_kernels(Id<Op> op, std::string_view name, double time_ns, double stretch = 1);
    void add_launches(Id<Op> op, std::string_view name, double time_ns,
                      const std::vector<std::size_t>& launches);
    void append_kernel(Id<Op> op, std::string_view name, Id<Stream> stream,
                       const StreamTimes::Span& span);
    void place_others_before(std::size_t launch);
    void time_loose_launches();
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
    StreamTimes times_;
    std::size_t num_kernels_;    // that the trace had; their rows come first
    std::vector<Launch> order_;  // what follows holds indices into it
    std::unordered_map<int64_t, std::vector<std::size_t>> launches_;  // by op
    std::vector<std::vector<std::size_t>> others_;  // by step: of ops without a time of their own
    std::vector<std::size_t> next_others_;          // of the step that is scheduled; the next last
    std::vector<std::size_t> launches_end_;         // by phase: behind its last launch
    std::array<double, 2> beside_ns_{};  // work of the last step that is launched on other streams,
                                         // in forward and in backward
    std::vector<std::vector<Id<Op>>> ops_;  // by phase
    std::vector<int64_t> start_ns_;         // by op; -1: not yet known
    std::vector<int64_t> end_ns_;
};

/// Gives `trace` the modelled times of `work`, its last step. Where no measurement of the GPU
/// stands behind them, a diagnostic says so.
void add_modelled_times(Trace& trace, const StepWork& work, const TimeModel& model);

}  // namespace profiler
