#include "profiler/planner/placement/kernel_schedule.h"

#include "profiler/analysis/event_order.h"
#include "profiler/trace/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace profiler {
KernelSchedule::KernelSchedule(Trace& trace, const StepWork& work, const TimeModel& model,
                               Id<Stream> stream)
    : trace_(trace),
      work_(work),
      model_(model),
      stream_(stream),
      time_(time_of(work, model)),
      defaults_(*defaults_of(trace)),
      num_launches_(trace.kernels.size()),
      ops_(trace.phases.size()),
      start_ns_(trace.ops.size(), -1),
      end_ns_(trace.ops.size(), -1) {
    const auto phases = trace.ops.column<&Op::phase>();
    for (std::size_t i = 0; i < phases.size(); ++i) {
        if (phases[i].valid()) ops_[phases[i].index()].push_back(Id<Op>(i));
    }
}

void KernelSchedule::add_times() {
    for (std::size_t i = 0; i < num_launches_; ++i) {  // a recording may have given them others
        trace_.kernels.set<&Kernel::start_ns>(Id<Kernel>(i), -1);
    }
    for (std::size_t i = 0; i < trace_.phases.size(); ++i) {  // phases of the warm-up stay at 0
        trace_.phases.set<&Phase::start_ns>(Id<Phase>(i), 0);
        trace_.phases.set<&Phase::end_ns>(Id<Phase>(i), 0);
    }
    for (std::size_t i = 0; i < trace_.steps.size(); ++i) add_step(Id<Step>(i));
    close_ops();
    time_other_launches();
    time_events();
}

void KernelSchedule::add_step(Id<Step> step) {
    trace_.steps.set<&Step::start_ns>(step, whole_ns(now_ns_));
    const StepOps ops = ops_of_step(trace_, step, defaults_);
    list_launches(step, ops);
    shares_.emplace(trace_, model_.kernels, counted_ops_of_step(trace_, step, defaults_));
    std::vector<std::vector<const OpWork*>> works(trace_.phases.size());
    for (const OpWork& op : ops.ops) {
        works[trace_.ops.get<&Op::phase>(op.op).index()].push_back(&op);
    }
    for (std::size_t i = 0; i < trace_.phases.size(); ++i) {
        const Id<Phase> phase(i);
        if (trace_.phases.get<&Phase::step>(phase) != step) continue;
        trace_.phases.set<&Phase::start_ns>(phase, whole_ns(now_ns_));
        if (trace_.phases.get<&Phase::kind>(phase) == PhaseKind::kOptimizer) {
            add_update(phase);
        } else {
            add_phase(phase, works[i]);
        }
        trace_.phases.set<&Phase::end_ns>(phase, whole_ns(now_ns_));
    }
    trace_.steps.set<&Step::end_ns>(step, whole_ns(now_ns_));
}

void KernelSchedule::add_phase(Id<Phase> phase, const std::vector<const OpWork*>& works) {
    const bool is_backward = trace_.phases.get<&Phase::kind>(phase) == PhaseKind::kBackward;
    const double stretch = (is_backward ? time_.backward : time_.forward).stretch();
    auto next = works.begin();
    for (const Id<Op> op : ops_[phase.index()]) {
        const Id<Op> parent = trace_.ops.get<&Op::parent>(op);
        // An op inside a counted op begins with that op.
        const bool is_inside = parent.valid() && end_ns_[parent.index()] >= 0;
        start_ns_[op.index()] = is_inside ? start_ns_[parent.index()] : whole_ns(now_ns_);
        if (is_inside) end_ns_[op.index()] = start_ns_[op.index()];
        for (; next != works.end() && (*next)->op == op; ++next) {
            add_work(**next, stretch);
            end_ns_[op.index()] = whole_ns(now_ns_);
        }
    }
}

/// Whether an op's time is the optimizer's share.
bool KernelSchedule::is_outermost_update(Id<Op> op) const {
    const Id<Phase> phase = trace_.ops.get<&Op::phase>(op);
    if (trace_.phases.get<&Phase::kind>(phase) != PhaseKind::kOptimizer) return false;
    const Id<Op> parent = trace_.ops.get<&Op::parent>(op);
    return !parent.valid() || trace_.ops.get<&Op::phase>(parent) != phase;
}

/// Each launch belongs to the innermost op around it that has a time of its own.
void KernelSchedule::list_launches(Id<Step> step, const StepOps& ops) {
    if (trace_.kernels.empty()) return;
    std::vector<bool> has_time(trace_.ops.size(), false);
    for (const OpWork& work : ops.ops) {
        has_time[work.op.index()] = work.phase != PhaseKind::kOptimizer;
    }
    for (std::size_t i = 0; i < trace_.phases.size(); ++i) {
        if (trace_.phases.get<&Phase::step>(Id<Phase>(i)) != step) continue;
        for (const Id<Op> op : ops_[i]) {
            if (is_outermost_update(op)) has_time[op.index()] = true;
        }
    }
    for (std::size_t i = 0; i < num_launches_; ++i) {
        Id<Op> op = trace_.kernels.get<&Kernel::op>(Id<Kernel>(i));
        while (op.valid() && !has_time[op.index()]) op = trace_.ops.get<&Op::parent>(op);
        if (op.valid()) launches_[op.value].push_back(Id<Kernel>(i));
    }
}

void KernelSchedule::add_work(const OpWork& work, double stretch) {
    const double kernel_ns = model_.kernels.time_ns(work.work);
    const double start_ns = now_ns_;
    now_ns_ += kernel_ns * stretch;
    const int64_t end_ns = std::min(whole_ns(start_ns) + whole_ns(kernel_ns), whole_ns(now_ns_));
    add_kernels(work.op, name_of(work.work.kernel), whole_ns(start_ns), end_ns);
}

/// The op's launches one after the other, or one kernel of this name.
void KernelSchedule::add_kernels(Id<Op> op, std::string_view name, int64_t start_ns,
                                 int64_t end_ns) {
    const auto launches = launches_.extract(op.value);
    if (launches.empty()) {
        trace_.kernels.append({.name = trace_.strings.intern(name),
                               .stream = stream_,
                               .op = op,
                               .start_ns = start_ns,
                               .end_ns = end_ns});
        return;
    }
    const std::vector<double> weights = shares_->weights_of(op, launches.mapped());
    const double ns_of_weight = static_cast<double>(end_ns - start_ns) /
                                std::accumulate(weights.begin(), weights.end(), 0.0);
    double done = 0;
    int64_t now_ns = start_ns;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        done += weights[i];
        const int64_t next_ns = i + 1 == weights.size()
                                    ? end_ns
                                    : std::min(start_ns + whole_ns(done * ns_of_weight), end_ns);
        trace_.kernels.set<&Kernel::start_ns>(launches.mapped()[i], now_ns);
        trace_.kernels.set<&Kernel::end_ns>(launches.mapped()[i], next_ns);
        now_ns = next_ns;
    }
}

/// Launches of ops whose work the model does not count take no time.
void KernelSchedule::time_other_launches() {
    for (std::size_t i = 0; i < num_launches_; ++i) {
        const Id<Kernel> kernel(i);
        if (trace_.kernels.get<&Kernel::start_ns>(kernel) >= 0) continue;
        const Id<Op> op = trace_.kernels.get<&Kernel::op>(kernel);
        const int64_t start_ns = op.valid() ? trace_.ops.get<&Op::start_ns>(op) : 0;
        trace_.kernels.set<&Kernel::start_ns>(kernel, start_ns);
        trace_.kernels.set<&Kernel::end_ns>(kernel, start_ns);
    }
}

/// For each op, if it is outermost, the modelled time of the counted ops in it, and a launch's time
/// for each of its kernels that no counted op launched; else 0.
std::vector<double> KernelSchedule::times_of_updates(const std::vector<Id<Op>>& ops) const {
    std::vector<double> times_ns(trace_.ops.size(), 0);
    std::vector<bool> is_inside(trace_.ops.size(), false);  // a counted op, itself included
    for (const Id<Op> op : ops) {
        const Id<Op> parent = trace_.ops.get<&Op::parent>(op);
        const bool in_counted = parent.valid() && is_inside[parent.index()];
        is_inside[op.index()] = in_counted || shares_->time_of(op) > 0;
        if (!in_counted) times_ns[op.index()] += shares_->time_of(op);
    }
    for (std::size_t i = 0; i < num_launches_; ++i) {
        const Id<Op> op = trace_.kernels.get<&Kernel::op>(Id<Kernel>(i));
        if (op.valid() && !is_inside[op.index()])
            times_ns[op.index()] += model_.kernels.launch_ns();
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
    if (std::any_of(outermost_ns.begin(), outermost_ns.end(), is_positive)) return outermost_ns;
    // Nothing tells the ops apart.
    for (std::size_t i = 0; i < ops.size(); ++i) outermost_ns[i] = is_outermost_update(ops[i]);
    return outermost_ns;
}

/// The time of the parameter update is modelled as a whole. Its outermost ops share it in
/// proportion to their own models.
void KernelSchedule::add_update(Id<Phase> phase) {
    const std::vector<Id<Op>>& ops = ops_[phase.index()];
    const std::vector<double> times_ns = times_of_updates(ops);
    const double sum_ns = std::accumulate(times_ns.begin(), times_ns.end(), 0.0);
    const double start_ns = now_ns_;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const Id<Op> op = ops[i];
        start_ns_[op.index()] = whole_ns(now_ns_);
        if (!is_outermost_update(op)) {
            start_ns_[op.index()] = start_ns_[trace_.ops.get<&Op::parent>(op).index()];
            end_ns_[op.index()] = start_ns_[op.index()];
            continue;
        }
        if (sum_ns > 0) now_ns_ += time_.optimizer_ns * times_ns[i] / sum_ns;
        end_ns_[op.index()] = whole_ns(now_ns_);
        if (times_ns[i] > 0) {
            add_kernels(op, "parameter_update", start_ns_[op.index()], end_ns_[op.index()]);
        }
    }
    now_ns_ = start_ns + time_.optimizer_ns;
}

/// An op without work of its own lasts as long as the ops inside it. Ops outside phases take no
/// time.
void KernelSchedule::close_ops() {
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
    std::stable_sort(actions.begin(), actions.end(),
                     [](const Action& a, const Action& b) { return a.event < b.event; });
    return actions;
}

}  // namespace

/// The start time of the phase that contains the event; 0 outside phases. Events come in rising
/// order: the search starts at `phase`.
int64_t KernelSchedule::phase_start_of(int64_t event, std::size_t& phase) const {
    while (phase < trace_.phases.size() &&
           trace_.phases.get<&Phase::last_event>(Id<Phase>(phase)) <= event) {
        ++phase;
    }
    if (phase == trace_.phases.size()) return 0;
    const Phase row = trace_.phases[Id<Phase>(phase)];
    return event >= row.first_event ? row.start_ns : 0;
}

/// An allocator event happens when its op begins, but not before the previous event.
void KernelSchedule::time_events() {
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

void add_modelled_times(Trace& trace, const StepWork& work, const TimeModel& model) {
    const Id<Stream> stream = trace.streams.empty()
                                  ? trace.streams.append({.device = profiled_device(trace)})
                                  : Id<Stream>(0);
    KernelSchedule(trace, work, model, stream).add_times();
    trace.runs.set<&Run::time_basis>(Id<Run>(0), TimeBasis::kModelled);
    if (model.kernels.is_calibrated()) return;
    add_diagnostic(trace, {.code = kTimesNotCalibrated,
                           .severity = Severity::kWarning,
                           .explanation = capitalized(fmt::format("{}.", kNotCalibratedText))});
}

}  // namespace profiler
