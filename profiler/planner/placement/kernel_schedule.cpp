#include "profiler/planner/placement/kernel_schedule.h"

#include "profiler/analysis/step/event_order.h"
#include "profiler/planner/placement/launch_shares.h"
#include "profiler/planner/placement/stream_times.h"
#include "profiler/trace/text.h"
#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace profiler {
namespace {

/// One allocator action, and the row that it belongs to.
struct Action {
    int64_t event = 0;
    std::size_t row = 0;
    uint8_t kind = 0;  // 0 alloc, 1 free requested, 2 free completed, 3 segment
};

std::vector<Action> actions_of(const Trace& trace) {
    std::vector<Action> actions;
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Id<Allocation> row(i);
        actions.push_back({trace.allocations.get<&Allocation::alloc_event>(row), i, 0});
        const int64_t requested = trace.allocations.get<&Allocation::free_requested_event>(row);
        const int64_t completed = trace.allocations.get<&Allocation::free_completed_event>(row);
        if (requested >= 0) actions.push_back({requested, i, 1});
        if (completed >= 0) actions.push_back({completed, i, 2});
    }
    for (std::size_t i = 0; i < trace.allocator_events.size(); ++i) {
        actions.push_back(
            {trace.allocator_events.get<&AllocatorEvent::event>(Id<AllocatorEvent>(i)), i, 3});
    }
    std::ranges::stable_sort(actions, {}, &Action::event);
    return actions;
}

class KernelSchedule {
public:
    /// `work` is the last step of the trace. It decides how long phases wait for the host.
    KernelSchedule(Trace& trace, const StepWork& work, const TimeModel& model, Id<Stream> stream)
        : trace_(trace),
          work_(work),
          model_(model),
          stream_(stream),
          time_(time_of(work, model)),
          defaults_(*defaults_of(trace)),
          times_(trace, model.kernels, model.communication),
          num_kernels_(trace.kernels.size()),
          order_(launches_in_order(trace)),
          others_(trace.steps.size()),
          launches_end_(trace.phases.size()),
          ops_(trace.phases.size()),
          start_ns_(trace.ops.size(), -1),
          end_ns_(trace.ops.size(), -1) {
        const auto phases = trace.ops.column<&Op::phase>();
        for (std::size_t i = 0; i < phases.size(); ++i) {
            if (phases[i].valid()) ops_[phases[i].index()].push_back(Id<Op>(i));
        }
    }

    void add_times() {
        std::vector<StepOps> ops;
        for (const Id<Step> id : trace_.steps.ids()) {
            ops.push_back(ops_of_step(trace_, id, defaults_));
        }
        list_launches(ops);
        for (std::size_t i = 0; i < num_kernels_; ++i) {  // a recording may have given them others
            trace_.kernels.set<&Kernel::start_ns>(Id<Kernel>(i), -1);
        }
        for (const Id<Memcpy> copy : trace_.memcpys.ids()) {
            trace_.memcpys.set<&Memcpy::start_ns>(copy, -1);
        }
        for (std::size_t i = 0; i < trace_.phases.size(); ++i) {  // phases of the warm-up stay at 0
            trace_.phases.set<&Phase::start_ns>(Id<Phase>(i), 0);
            trace_.phases.set<&Phase::end_ns>(Id<Phase>(i), 0);
        }
        for (std::size_t i = 0; i < trace_.steps.size(); ++i) add_step(Id<Step>(i), ops[i]);
        close_ops();
        time_loose_launches();
        time_events();
    }

private:
    void add_step(Id<Step> step, const StepOps& ops) {
        trace_.steps.set<&Step::start_ns>(step, whole_ns(times_.now_ns()));
        next_others_.assign(others_[step.index()].rbegin(), others_[step.index()].rend());
        shares_.emplace(trace_, model_.kernels, counted_ops_of_step(trace_, step, defaults_));
        std::vector<std::vector<const OpWork*>> works(trace_.phases.size());
        for (const OpWork& op : ops.ops) {
            works[trace_.ops.get<&Op::phase>(op.op).index()].push_back(&op);
        }
        for (std::size_t i = 0; i < trace_.phases.size(); ++i) {
            const Id<Phase> phase(i);
            if (trace_.phases.get<&Phase::step>(phase) != step) continue;
            trace_.phases.set<&Phase::start_ns>(phase, whole_ns(times_.now_ns()));
            if (trace_.phases.get<&Phase::kind>(phase) == PhaseKind::kOptimizer) {
                add_update(phase);
            } else {
                add_phase(phase, works[i]);
            }
            place_others_before(launches_end_[i]);
            trace_.phases.set<&Phase::end_ns>(phase, whole_ns(times_.now_ns()));
        }
        place_others_before(order_.size());
        times_.end_step();
        trace_.steps.set<&Step::end_ns>(step, whole_ns(times_.now_ns()));
    }

    /// Kernels on other streams cost the computing stream no time, but their launches cost the
    /// host.
    double stretch_of(PhaseKind kind) const {
        const bool is_backward = kind == PhaseKind::kBackward;
        PhaseTime time = is_backward ? time_.backward : time_.forward;
        time.kernels_ns -= beside_ns_[is_backward ? 1 : 0];
        return time.stretch();
    }

    void add_phase(Id<Phase> phase, const std::vector<const OpWork*>& works) {
        const PhaseKind kind = trace_.phases.get<&Phase::kind>(phase);
        const double stretch = stretch_of(kind);
        const Figure& launch = kind == PhaseKind::kBackward ? model_.environment->host_backward_ns
                                                            : model_.environment->host_forward_ns;
        auto next = works.begin();
        for (const Id<Op> op : ops_[phase.index()]) {
            const Id<Op> parent = trace_.ops.get<&Op::parent>(op);
            // An op inside a counted op begins with that op.
            const bool is_inside = parent.valid() && end_ns_[parent.index()] >= 0;
            start_ns_[op.index()] =
                is_inside ? start_ns_[parent.index()] : whole_ns(times_.now_ns());
            if (is_inside) end_ns_[op.index()] = start_ns_[op.index()];
            for (; next != works.end() && (*next)->op == op; ++next) {
                const KernelWork& work = (*next)->work;
                times_.launch_takes(launch.value);
                add_kernels(op, name_of(work.kernel), model_.kernels.time_ns(work), stretch);
            }
        }
    }

    /// Whether an op's time is the optimizer's share.
    bool is_outermost_update(Id<Op> op) const {
        const Id<Phase> phase = trace_.ops.get<&Op::phase>(op);
        if (trace_.phases.get<&Phase::kind>(phase) != PhaseKind::kOptimizer) return false;
        const Id<Op> parent = trace_.ops.get<&Op::parent>(op);
        return !parent.valid() || trace_.ops.get<&Op::phase>(parent) != phase;
    }

    /// The step of an op. An op outside of phases belongs to the step that ran when the op began.
    Id<Step> step_around(Id<Op> op) const {
        const Id<Phase> phase = trace_.ops.get<&Op::phase>(op);
        if (phase.valid()) return trace_.phases.get<&Phase::step>(phase);
        const auto starts = trace_.steps.column<&Step::start_ns>();
        const auto after =
            std::upper_bound(starts.begin(), starts.end(), trace_.ops.get<&Op::start_ns>(op));
        return after == starts.begin()
                   ? Id<Step>()
                   : Id<Step>(static_cast<std::size_t>(after - starts.begin()) - 1);
    }

    /// Each launch belongs to the innermost op around it that has a time of its own.
    void list_launches(const std::vector<StepOps>& ops) {
        std::vector<bool> has_time(trace_.ops.size(), false);
        for (const StepOps& of_step : ops) {
            for (const OpWork& work : of_step.ops) {
                has_time[work.op.index()] = work.phase != PhaseKind::kOptimizer;
            }
        }
        for (std::size_t i = 0; i < trace_.phases.size(); ++i) {
            if (!trace_.phases.get<&Phase::step>(Id<Phase>(i)).valid()) continue;
            for (const Id<Op> op : ops_[i]) {
                if (is_outermost_update(op)) has_time[op.index()] = true;
            }
        }
        for (std::size_t i = 0; i < order_.size(); ++i) {
            const auto& [kernel, memcpy] = order_[i];
            const Id<Op> own = kernel.valid() ? trace_.kernels.get<&Kernel::op>(kernel)
                                              : trace_.memcpys.get<&Memcpy::op>(memcpy);
            if (!own.valid()) continue;
            const Id<Phase> phase = trace_.ops.get<&Op::phase>(own);
            if (phase.valid()) launches_end_[phase.index()] = i + 1;
            Id<Op> op = own;
            while (op.valid() && !has_time[op.index()]) op = trace_.ops.get<&Op::parent>(op);
            if (op.valid()) {
                launches_[op.value].push_back(i);
            } else if (const Id<Step> step = step_around(own); step.valid()) {
                others_[step.index()].push_back(i);
            }
        }
        if (!ops.empty()) add_up_beside(ops.back());
    }

    void add_up_beside(const StepOps& ops) {
        const auto computes = [this](std::size_t launch) {
            return times_.is_computing(order_[launch]);
        };
        for (const OpWork& work : ops.ops) {
            const auto launches = launches_.find(work.op.value);
            if (work.phase == PhaseKind::kOptimizer || launches == launches_.end()) continue;
            if (std::ranges::any_of(launches->second, computes)) continue;
            beside_ns_[work.phase == PhaseKind::kBackward ? 1 : 0] +=
                model_.kernels.time_ns(work.work);
        }
    }

    /// Launches of ops whose work the model does not count: they take no time, but for transfers,
    /// and wait as they were told.
    void place_others_before(std::size_t launch) {
        for (; !next_others_.empty() && next_others_.back() < launch; next_others_.pop_back()) {
            times_.place(order_[next_others_.back()], 0);
        }
    }

    /// The stream that computes waits for the host where an op takes `stretch` times as long to
    /// launch.
    void add_kernels(Id<Op> op, std::string_view name, double time_ns, double stretch = 1) {
        std::vector<std::size_t> launches;
        if (auto extracted = launches_.extract(op.value)) launches = std::move(extracted.mapped());
        const auto computes = [this](std::size_t launch) {
            return times_.is_computing(order_[launch]);
        };
        const bool is_beside = !launches.empty() && std::ranges::none_of(launches, computes);
        add_launches(op, name, time_ns, launches);
        if (!is_beside) times_.pass(time_ns * (stretch - 1));
        end_ns_[op.index()] = whole_ns(times_.now_ns());
    }

    /// The op's kernels share the time. If it has none but transfers, one of this name has it, in
    /// the place of its last copy.
    void add_launches(Id<Op> op, std::string_view name, double time_ns,
                      const std::vector<std::size_t>& launches) {
        std::vector<Id<Kernel>> sharing;
        std::size_t last_copy = order_.size();  // none
        for (const std::size_t i : launches) {
            const auto& [kernel, memcpy] = order_[i];
            if (memcpy.valid()) last_copy = i;
            if (kernel.valid() && !times_.is_transfer(kernel)) sharing.push_back(kernel);
        }
        const std::vector<double> weights =
            sharing.empty() ? std::vector<double>() : shares_->weights_of(op, sharing);
        const double ns_of_weight =
            weights.empty() ? 0 : time_ns / std::accumulate(weights.begin(), weights.end(), 0.0);
        if (sharing.empty() && last_copy == order_.size() && time_ns > 0) {
            const double now_ns = times_.now_ns();
            append_kernel(op, name, stream_, {now_ns, now_ns + time_ns});
            times_.pass(time_ns);
        }
        auto weight = weights.begin();
        bool is_first = end_ns_[op.index()] < 0;
        for (const std::size_t i : launches) {
            const Launch& launch = order_[i];
            const bool shares = launch.kernel.valid() && !times_.is_transfer(launch.kernel);
            const bool stands_for_all = sharing.empty() && i == last_copy && time_ns > 0;
            place_others_before(i);
            const StreamTimes::Span span = times_.place(launch, shares ? *weight++ * ns_of_weight
                                                                : stands_for_all ? time_ns
                                                                                 : 0);
            if (stands_for_all && !is_host_copy(trace_, launch.memcpy)) {
                append_kernel(op, name, trace_.memcpys.get<&Memcpy::stream>(launch.memcpy), span);
            }
            if (is_first && times_.is_computing(launch)) {
                start_ns_[op.index()] = whole_ns(span.start_ns);
                is_first = false;
            }
        }
    }

    void append_kernel(Id<Op> op, std::string_view name, Id<Stream> stream,
                       const StreamTimes::Span& span) {
        trace_.kernels.append({.name = trace_.strings.intern(name),
                               .stream = stream,
                               .op = op,
                               .start_ns = whole_ns(span.start_ns),
                               .end_ns = whole_ns(span.end_ns)});
    }

    /// What is outside of steps takes no time.
    void time_loose_launches() {
        for (std::size_t i = 0; i < num_kernels_; ++i) {
            const Id<Kernel> kernel(i);
            if (trace_.kernels.get<&Kernel::start_ns>(kernel) >= 0) continue;
            const Id<Op> op = trace_.kernels.get<&Kernel::op>(kernel);
            const int64_t start_ns = op.valid() ? trace_.ops.get<&Op::start_ns>(op) : 0;
            trace_.kernels.set<&Kernel::start_ns>(kernel, start_ns);
            trace_.kernels.set<&Kernel::end_ns>(kernel, start_ns);
        }
        for (const Id<Memcpy> copy : trace_.memcpys.ids()) {
            if (trace_.memcpys.get<&Memcpy::start_ns>(copy) >= 0) continue;
            const Id<Op> op = trace_.memcpys.get<&Memcpy::op>(copy);
            const int64_t start_ns = op.valid() ? trace_.ops.get<&Op::start_ns>(op) : 0;
            trace_.memcpys.set<&Memcpy::start_ns>(copy, start_ns);
            trace_.memcpys.set<&Memcpy::end_ns>(copy, start_ns);
        }
    }

    /// For each outermost op: the modelled time of the counted ops in it, and a launch's time for
    /// each other kernel in it. For every other op: 0.
    std::vector<double> times_of_updates(const std::vector<Id<Op>>& ops) const {
        std::vector<double> times_ns(trace_.ops.size(), 0);
        std::vector<bool> is_inside(trace_.ops.size(), false);  // a counted op, itself included
        for (const Id<Op> op : ops) {
            const Id<Op> parent = trace_.ops.get<&Op::parent>(op);
            const bool in_counted = parent.valid() && is_inside[parent.index()];
            is_inside[op.index()] = in_counted || shares_->time_of(op) > 0;
            if (!in_counted) times_ns[op.index()] += shares_->time_of(op);
        }
        for (std::size_t i = 0; i < num_kernels_; ++i) {
            const Id<Op> op = trace_.kernels.get<&Kernel::op>(Id<Kernel>(i));
            if (op.valid() && !is_inside[op.index()] && !times_.is_transfer(Id<Kernel>(i))) {
                times_ns[op.index()] += model_.kernels.launch_ns();
            }
        }
        // Calls stand after the call that makes them.
        for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
            if (is_outermost_update(*op)) continue;
            times_ns[trace_.ops.get<&Op::parent>(*op).index()] += times_ns[op->index()];
        }
        std::vector<double> outermost_ns;
        for (const Id<Op> op : ops) {
            outermost_ns.push_back(is_outermost_update(op) ? times_ns[op.index()] : 0);
        }
        const auto is_positive = [](double time_ns) { return time_ns > 0; };
        if (std::ranges::any_of(outermost_ns, is_positive)) return outermost_ns;
        // Nothing tells the ops apart.
        for (std::size_t i = 0; i < ops.size(); ++i) outermost_ns[i] = is_outermost_update(ops[i]);
        return outermost_ns;
    }

    /// The time of the parameter update is modelled as a whole. Its outermost ops share it in
    /// proportion to their own models.
    void add_update(Id<Phase> phase) {
        const std::vector<Id<Op>>& ops = ops_[phase.index()];
        const std::vector<double> times_ns = times_of_updates(ops);
        const double sum_ns = std::accumulate(times_ns.begin(), times_ns.end(), 0.0);
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Id<Op> op = ops[i];
            if (!is_outermost_update(op)) {
                start_ns_[op.index()] = start_ns_[trace_.ops.get<&Op::parent>(op).index()];
                end_ns_[op.index()] = start_ns_[op.index()];
                continue;
            }
            start_ns_[op.index()] = whole_ns(times_.now_ns());
            const double share = sum_ns > 0 ? times_ns[i] / sum_ns : 0;
            add_kernels(op, "parameter_update", time_.optimizer_ns * share);
        }
        if (sum_ns == 0) times_.pass(time_.optimizer_ns);  // nothing was recorded of it
    }

    /// An op without work of its own lasts as long as the ops inside it. Ops outside phases take no
    /// time.
    void close_ops() {
        int64_t last_ns = 0;
        for (std::size_t i = 0; i < start_ns_.size(); ++i) {
            if (start_ns_[i] < 0) start_ns_[i] = last_ns;
            end_ns_[i] = std::max(end_ns_[i], start_ns_[i]);
            last_ns = start_ns_[i];
        }
        const auto parents = trace_.ops.column<&Op::parent>();
        for (std::size_t i = start_ns_.size(); i-- > 0;) {
            if (!parents[i].valid()) continue;
            int64_t& end = end_ns_[parents[i].index()];
            end = std::max(end, end_ns_[i]);
        }
        for (std::size_t i = 0; i < start_ns_.size(); ++i) {
            trace_.ops.set<&Op::start_ns>(Id<Op>(i), start_ns_[i]);
            trace_.ops.set<&Op::end_ns>(Id<Op>(i), end_ns_[i]);
        }
    }

    /// The start time of the phase that contains the event; 0 outside phases. Events come in rising
    /// order: the search starts at `phase`.
    int64_t phase_start_of(int64_t event, std::size_t& phase) const {
        while (phase < trace_.phases.size() &&
               trace_.phases.get<&Phase::last_event>(Id<Phase>(phase)) <= event) {
            ++phase;
        }
        if (phase == trace_.phases.size()) return 0;
        const Phase row = trace_.phases[Id<Phase>(phase)];
        return event >= row.first_event ? row.start_ns : 0;
    }

    /// An allocator event happens when its op begins, but not before the previous event.
    void time_events() {
        int64_t now_ns = 0;
        std::size_t phase = 0;
        for (const Action& action : actions_of(trace_)) {
            const Id<Allocation> row(action.row);
            now_ns = std::max(now_ns, phase_start_of(action.event, phase));
            if (action.kind < 3) {
                const Id<Op> op = action.kind == 0
                                      ? trace_.allocations.get<&Allocation::op>(row)
                                      : trace_.allocations.get<&Allocation::freeing_op>(row);
                if (op.valid()) now_ns = std::max(now_ns, start_ns_[op.index()]);
            }
            switch (action.kind) {
                case 0:
                    trace_.allocations.set<&Allocation::alloc_ns>(row, now_ns);
                    break;
                case 1:
                    trace_.allocations.set<&Allocation::free_requested_ns>(row, now_ns);
                    break;
                case 2:
                    trace_.allocations.set<&Allocation::free_completed_ns>(row, now_ns);
                    break;
                default:
                    trace_.allocator_events.set<&AllocatorEvent::time_ns>(
                        Id<AllocatorEvent>(action.row), now_ns);
            }
        }
    }

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

}  // namespace

void add_modelled_times(Trace& trace, const StepWork& work, const TimeModel& model) {
    const Id<Stream> stream = trace.streams.empty()
                                  ? trace.streams.append({.device = profiled_device(trace)})
                                  : Id<Stream>(0);
    KernelSchedule(trace, work, model, stream).add_times();
    trace.runs.set<&Run::time_basis>(Id<Run>(0), TimeBasis::kModelled);
    const TimeAccuracy& accuracy = model.kernels.accuracy();
    add_diagnostic(trace,
                   {.code = kPredictedTimes,
                    .severity = Severity::kInfo,
                    .count = std::llround(100 * accuracy.error),
                    .explanation = fmt::format("Times are predicted, {}.", accuracy.text())});
}

}  // namespace profiler
