#include "profiler/analysis/step/diagnostics.h"

#include "profiler/analysis/step/expert_routing.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/analysis/step/step_report.h"
#include "profiler/trace/units.h"

#include <algorithm>

namespace profiler {
namespace {

DiagnosticItem make_item(std::string_view code, Severity severity, int64_t count, std::string text,
                         DiagnosticUnit unit = DiagnosticUnit::kTimes) {
    return {std::string(code), severity, count, std::move(text), unit};
}

void add_incomplete(const Trace& trace, std::vector<DiagnosticItem>& items) {
    if (trace.run().state == RunState::kComplete) return;
    const auto steps = static_cast<int64_t>(trace.steps.size());
    items.push_back(make_item(
        "incomplete_capture", Severity::kWarning, steps,
        fmt::format(
            "The capture did not finish: {} {} recorded before it ended. Figures cover these "
            "only; repeat the capture for a whole one.",
            format_count(steps), steps == 1 ? "step was" : "steps were"),
        DiagnosticUnit::kSteps));
}

void add_missing_steps(const Trace& trace, std::vector<DiagnosticItem>& items) {
    if (!trace.steps.empty() || !trace.sweep_points.empty()) return;
    if (has_note(trace, kAllocationsOnly)) return;  // which says it
    items.push_back(make_item("no_steps", Severity::kWarning, 0,
                              "The trace has no training steps: the peak is over the whole "
                              "trace, and the time of a step is not known."));
}

void add_unattributed(const Trace& trace, std::vector<DiagnosticItem>& items) {
    if (trace.steps.empty() || trace.ops.empty()) return;
    // The ops of a program's first step may not be recorded.
    const std::vector<Id<Step>> whole = whole_steps(trace);
    const Id<Step> first = whole.empty() ? Id<Step>(0) : whole.front();
    const int64_t start = trace.steps.get<&Step::first_event>(first);
    const auto alloc_event = trace.allocations.column<&Allocation::alloc_event>();
    const auto op = trace.allocations.column<&Allocation::op>();
    int64_t count = 0;
    for (std::size_t i = 0; i < op.size(); ++i) count += alloc_event[i] >= start && !op[i].valid();
    if (count == 0) return;
    items.push_back(make_item("allocations_without_op", Severity::kInfo, count,
                              "Code between framework calls made these allocations inside "
                              "recorded steps. They count in every sum, but under no op."));
}

void add_unknown_categories(const Trace& trace, const PeakReport& peak,
                            std::vector<DiagnosticItem>& items) {
    const int64_t unknown_bytes = peak.by_category[static_cast<std::size_t>(Category::kUnknown)];
    if (unknown_bytes == 0 || has_note(trace, kAllocationsOnly)) return;
    items.push_back(
        make_item("unknown_role_at_peak", Severity::kWarning, unknown_bytes,
                  fmt::format("The class of {} at the peak is not known: they are shown "
                              "as \"unknown\".",
                              format_bytes(unknown_bytes)),
                  DiagnosticUnit::kBytes));
}

void add_value_reads(const Trace& trace, int64_t peak_bytes, std::vector<DiagnosticItem>& items) {
    if (trace.value_reads.empty()) return;
    const std::vector<ValueReadLine> lines = value_read_lines(trace);
    int64_t num_read = 0;
    for (const ValueReadLine& line : lines) num_read += is_value_read(line.kind) ? line.count : 0;
    if (std::string text = value_read_sentence(lines); !text.empty()) {
        const Severity severity =
            decides(lines.front().kind) ? Severity::kWarning : Severity::kInfo;
        items.push_back(make_item("values_read", severity, num_read, std::move(text)));
    }
    if (std::string text = routing_sentence(trace, lines, peak_bytes); !text.empty()) {
        items.push_back(make_item("routing_assumed", Severity::kInfo, 0, std::move(text)));
    }
}

/// Errors that ended the program are of one code, those that it survived of others.
void add_failures(const Trace& trace, std::vector<DiagnosticItem>& items) {
    for (std::size_t i = 0; i < kFailureOutcomeNames.size(); ++i) {
        const auto outcome = static_cast<FailureOutcome>(i);
        int64_t count = 0;
        Id<Failure> last;
        for (const Id<Failure> id : trace.failures.ids()) {
            if (trace.failures.get<&Failure::outcome>(id) != outcome) continue;
            ++count;
            last = id;
        }
        if (count == 0) continue;
        const Severity severity = outcome == FailureOutcome::kEnded    ? Severity::kError
                                  : outcome == FailureOutcome::kCaught ? Severity::kWarning
                                                                       : Severity::kInfo;
        items.push_back(make_item(fmt::format("failure_{}", name_of(outcome)), severity, count,
                                  failure_sentence(trace, last)));
    }
}

void add_bad_times(const Trace& trace, std::vector<DiagnosticItem>& items) {
    const auto alloc_event = trace.allocations.column<&Allocation::alloc_event>();
    const auto free_event = trace.allocations.column<&Allocation::free_requested_event>();
    int64_t count = 0;
    for (std::size_t i = 0; i < alloc_event.size(); ++i) {
        count += free_event[i] >= 0 && free_event[i] <= alloc_event[i];
    }
    if (count == 0) return;
    items.push_back(make_item("freed_before_allocated", Severity::kError, count,
                              "These allocations end before they begin: the file is damaged, or a "
                              "faulty tool wrote it. Do not trust its sums."));
}

void add_closed_form(const models::Result<ClosedFormCheck>& check,
                     std::vector<DiagnosticItem>& items) {
    if (!check || check->equal()) return;
    const int64_t difference = check->ledger_bytes - check->form.total_bytes;
    items.push_back(make_item(
        "closed_form_differs", Severity::kWarning, difference,
        fmt::format("Layer {} saves {} for backward, but its formula gives {}: look for the "
                    "tensor that differs in the saved tensors of that layer.",
                    check->layer, format_exact_bytes(check->ledger_bytes),
                    format_exact_bytes(check->form.total_bytes)),
        DiagnosticUnit::kBytes));
}

}  // namespace

std::string count_text(const DiagnosticItem& item) {
    if (item.count == 0) return {};
    switch (item.unit) {
        case DiagnosticUnit::kTimes:
            return item.count == 1 ? "once" : format_count(item.count) + " times";
        case DiagnosticUnit::kSteps:
            return format_count(item.count) + (item.count == 1 ? " step" : " steps");
        case DiagnosticUnit::kEvents:
            return format_count(item.count) + (item.count == 1 ? " event" : " events");
        case DiagnosticUnit::kPercent:
            return fmt::format("{} %", item.count);
        case DiagnosticUnit::kBytes:
            return format_exact_bytes(item.count);
    }
    return {};
}

std::string why_out_of_memory(const Trace& trace) {
    for (const Diagnostic note : trace.diagnostics.rows()) {
        const std::string_view code = trace.text(note.code);
        if (code == kRanOutOfMemory || code == kStepDoesNotFit) {
            return std::string(trace.text(note.explanation));
        }
    }
    const Id<Failure> failure = fatal_out_of_memory(trace);
    return failure.valid() ? failure_sentence(trace, failure) : std::string();
}

std::vector<DiagnosticItem> report_diagnostics(const Trace& trace, const StepReport& report) {
    std::vector<DiagnosticItem> items;
    for (const Diagnostic note : trace.diagnostics.rows()) {
        const std::string_view code = trace.text(note.code);
        items.push_back(make_item(
            code, note.severity, note.count, std::string(trace.text(note.explanation)),
            code == kStartState || code.starts_with(kStartStateOf) ? DiagnosticUnit::kEvents
            : code == kPredictedTimes                              ? DiagnosticUnit::kPercent
            : code == kLaterPeak                                   ? DiagnosticUnit::kBytes
                                                                   : DiagnosticUnit::kTimes));
    }
    add_value_reads(trace, report.peak.allocated_bytes, items);
    add_failures(trace, items);
    add_incomplete(trace, items);
    add_missing_steps(trace, items);
    add_unattributed(trace, items);
    add_unknown_categories(trace, report.peak, items);
    add_bad_times(trace, items);
    add_closed_form(report.closed_form, items);
    std::ranges::stable_sort(items, std::ranges::greater{}, &DiagnosticItem::severity);
    return items;
}

}  // namespace profiler
