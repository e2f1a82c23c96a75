#include "profiler/capture/recorder.h"

#include <cstddef>
#include <limits>
#include <stdexcept>

/// Where steps and phases begin and end.
namespace profiler {

PhaseKind phase_kind(models::TrainingPhase phase) {
    switch (phase) {
        case models::TrainingPhase::kForward:
            return PhaseKind::kForward;
        case models::TrainingPhase::kLoss:
            return PhaseKind::kLoss;
        case models::TrainingPhase::kBackward:
            return PhaseKind::kBackward;
        case models::TrainingPhase::kOptimizer:
            return PhaseKind::kOptimizer;
        case models::TrainingPhase::kInference:
            return PhaseKind::kInference;
    }
    throw std::logic_error("not a training phase");
}

Recorder::StepStart Recorder::next_step_start() {
    const std::lock_guard lock(mutex_);
    return {.time_ns = now_ns(), .event = next_event_, .num_phases = trace_.phases.size()};
}

void Recorder::begin_step(const StepStart& start) {
    const std::lock_guard lock(mutex_);
    step_ = trace_.steps.append(
        {.start_ns = start.time_ns, .first_event = start.event, .kind = StepKind::kBroken});
    end_so_far();
    // Inference between two steps, before it was known that another step follows.
    for (std::size_t row = start.num_phases; row < trace_.phases.size(); ++row) {
        const Id<Phase> phase(row);
        if (!trace_.phases.get<&Phase::step>(phase).valid()) {
            trace_.phases.set<&Phase::step>(phase, step_);
        }
    }
}

int64_t Recorder::make_steps_of_inferences() {
    end_so_far();
    int64_t count = 0;
    for (const Id<Phase> id : trace_.phases.ids()) {
        const Phase phase = trace_.phases[id];
        if (phase.step.valid() || phase.kind != PhaseKind::kInference) continue;
        const Id<Step> step =
            trace_.steps.append({.start_ns = phase.start_ns,
                                 .end_ns = phase.end_ns,
                                 .first_event = phase.first_event,
                                 .last_event = phase.last_event,
                                 .loss = std::numeric_limits<double>::quiet_NaN(),
                                 .kind = count == 0 ? StepKind::kFirst : StepKind::kWhole});
        trace_.phases.set<&Phase::step>(id, step);
        trace_.phases.set<&Phase::kind>(id, PhaseKind::kForward);
        ++count;
    }
    return count;
}

void Recorder::end_so_far() {
    if (step_.valid()) {
        trace_.steps.set<&Step::end_ns>(step_, now_ns());
        trace_.steps.set<&Step::last_event>(step_, next_event_);
    }
    if (phase_.valid()) {
        trace_.phases.set<&Phase::end_ns>(phase_, now_ns());
        trace_.phases.set<&Phase::last_event>(phase_, next_event_);
    }
}

void Recorder::end_step(double loss, StepKind kind, const StepStart* end) {
    const std::lock_guard lock(mutex_);
    if (!step_.valid()) throw std::logic_error("no step has begun");
    end_so_far();
    if (end != nullptr) cut_step(*end);
    trace_.steps.set<&Step::loss>(step_, loss);
    trace_.steps.set<&Step::kind>(step_, kind);
    step_ = {};
    num_buckets_ = 0;            // DDP makes others after its first step
    if (end != nullptr) return;  // what follows is of the step that runs
    // Sequence numbers are never reused, and later steps' backward ops do not refer to them.
    forward_ops_.clear();
    // The backend's thread may call back after those who waited for it went on.
    for (const Id<Collective> collective : running_collectives_) {
        if (trace_.collectives.get<&Collective::end_ns>(collective) < 0) {
            trace_.collectives.set<&Collective::end_ns>(collective, now_ns());
        }
    }
    running_collectives_.clear();
}

/// Under the lock.
void Recorder::cut_step(const StepStart& end) {
    trace_.steps.set<&Step::end_ns>(step_, end.time_ns);
    trace_.steps.set<&Step::last_event>(step_, end.event);
    for (std::size_t row = end.num_phases; row < trace_.phases.size(); ++row) {
        trace_.phases.set<&Phase::step>(Id<Phase>(row), Id<Step>());
    }
    if (end.num_phases == 0) return;
    const Id<Phase> last(end.num_phases - 1);  // it may have gone on
    if (trace_.phases.get<&Phase::last_event>(last) <= end.event) return;
    trace_.phases.set<&Phase::end_ns>(last, end.time_ns);
    trace_.phases.set<&Phase::last_event>(last, end.event);
}

void Recorder::on_phase_begin(models::TrainingPhase phase) {
    const std::lock_guard lock(mutex_);
    phase_ = trace_.phases.append({.step = step_,
                                   .kind = phase_kind(phase),
                                   .start_ns = now_ns(),
                                   .first_event = next_event_});
}

void Recorder::on_phase_end(models::TrainingPhase) noexcept {
    const std::lock_guard lock(mutex_);
    end_so_far();
    phase_ = {};
}

}  // namespace profiler
