#include "profiler/analysis/compare/comparison_column.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/trace_notes.h"

#include <algorithm>
#include <cmath>

namespace profiler {

void take_step(ComparisonColumn& column, const NamedTrace& named) {
    const Trace& trace = *named.trace;
    const auto report = report_of(named);
    const PeakReport& peak = report->peak;
    column.step_trace = named.trace;
    column.batch_size = trace.run().batch_size;
    column.peak_allocated_bytes = peak.allocated_bytes;
    column.peak_reserved_bytes = peak.reserved_bytes;
    column.peak_by_category = peak.by_category;
    column.step_limit_bytes = step_limit_bytes(trace);
    if (peak.phase.valid()) column.peak_phase = trace.phases.get<&Phase::kind>(peak.phase);
    column.out_of_memory = why_out_of_memory(trace);
    column.is_cut_off = has_note(trace, kRanOutOfMemory);
    column.knows_saved = records_saves(trace) && !column.is_cut_off;
    column.saved_bytes = column.knows_saved ? report->ledger.total_bytes : 0;
    const std::size_t num_steps = num_whole_steps(trace);
    column.steps = static_cast<int64_t>(num_steps);
    if (trace.run().source != Source::kPredicted) {
        for (std::size_t i = 0; i < num_steps; ++i) {
            const double loss = trace.steps.get<&Step::loss>(Id<Step>(i));
            if (!std::isnan(loss)) column.loss = loss;
        }
    }
    column.step_times_ns = step_times_ns(trace);
    const std::vector<int64_t>& times_ns = column.step_times_ns;
    if (!times_ns.empty()) {
        const auto [fastest, slowest] = std::minmax_element(times_ns.begin(), times_ns.end());
        column.fastest_step_ns = *fastest;
        column.slowest_step_ns = *slowest;
    }
    column.was_busy = has_note(trace, kMachineBusy);
    column.times_are_calibrated = !has_note(trace, kTimesNotCalibrated);
    column.turns_run = turns_run_of(trace);
    column.step_time_ns = median(times_ns);
    column.sequences_per_step = sequences_per_step(trace);
    column.sequences_per_s = sequences_per_s(column.sequences_per_step, column.step_time_ns);
}

void take_sweep(ComparisonColumn& column, const Trace& trace) {
    column.memory_limit_bytes = trace.run().memory_limit_bytes;
    column.sweep_was_busy = has_note(trace, kMachineBusy);
    column.curve = sweep_curve(trace);
    column.max_batch = bounds_of(column.curve);
    for (const ThroughputPoint& point : column.curve) {
        if (!point.out_of_memory &&
            point.sequences_per_s > column.best_sequences_per_s.value_or(0)) {
            column.best_sequences_per_s = point.sequences_per_s;
            column.best_batch_size = point.batch_size;
        }
    }
}

}  // namespace profiler
