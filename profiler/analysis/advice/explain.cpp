#include "profiler/analysis/advice/explain.h"

#include "profiler/analysis/advice/remedies.h"
#include "profiler/analysis/advice/rules.h"
#include "profiler/analysis/step/breakdown.h"
#include "profiler/analysis/step/expert_routing.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/analysis/step/throughput.h"
#include "profiler/trace/printable.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

using models::fail;
using models::Result;

/// With less left the next larger batch does not fit.
constexpr double kShareNearLimit = 0.95;

// ---- the target --------------------------------------------------------------------------------

const Gpu* recorded_gpu(const Evidence& evidence, const PlannerData& data) {
    const Trace& trace = evidence.trace;
    if (!evidence.device.valid() || is_host(trace, evidence.device)) return nullptr;
    return find_gpu_by_name(data.gpus, trace.text(trace.run().device_name),
                            trace.devices.get<&Device::total_bytes>(evidence.device));
}

/// What the trace says; -1: nothing.
int64_t recorded_limit(const Evidence& evidence) {
    if (evidence.failure.valid()) {
        const Failure failure = evidence.trace.failures[evidence.failure];
        if (failure.limit_bytes > 0) return failure.limit_bytes;
        if (failure.reserved_bytes >= 0 && failure.free_bytes >= 0) {
            return failure.reserved_bytes + failure.free_bytes;
        }
    }
    const int64_t limit_bytes = step_limit_bytes(evidence.trace);
    return limit_bytes > 0 ? limit_bytes : -1;
}

Result<ExplainTarget> find_target(const Evidence& evidence, const PlannerData& data,
                                  ExplainTarget target) {
    const Gpu* gpu = recorded_gpu(evidence, data);
    const bool is_other_gpu = !target.gpu.empty() && (gpu == nullptr || target.gpu != gpu->id);
    if (is_other_gpu) {
        const auto found = find_gpu(data.gpus, target.gpu);
        if (!found) return tl::unexpected(found.error());
        gpu = *found;
    }
    if (gpu != nullptr) target.gpu = gpu->id;
    if (target.limit_bytes < 0 && !is_other_gpu) target.limit_bytes = recorded_limit(evidence);
    if (target.limit_bytes < 0 && gpu != nullptr) {
        const auto limit_bytes = limit_on(*gpu, data);
        if (!limit_bytes) return tl::unexpected(limit_bytes.error());
        target.limit_bytes = *limit_bytes;
    }
    const int64_t recorded_batch = evidence.trace.run().batch_size;
    if (target.batch_size > 0 && recorded_batch <= 0) {
        return fail(
            "The trace does not say its batch size, so batch={} cannot be estimated: record "
            "the program with that batch.",
            target.batch_size);
    }
    if (target.batch_size <= 0) target.batch_size = recorded_batch > 0 ? recorded_batch : -1;
    return target;
}

Conditions conditions_of(const Trace& trace, const ExplainTarget& target) {
    Conditions conditions;
    const auto settings = parse_alloc_conf(trace.text(trace.run().allocator_settings));
    if (settings) conditions.settings = *settings;
    if (target.limit_bytes > 0) conditions.limit_bytes = target.limit_bytes;
    if (target.batch_size > 0) {
        conditions.batch_factor =
            static_cast<double>(target.batch_size) / static_cast<double>(trace.run().batch_size);
    }
    return conditions;
}

// ---- what happened -----------------------------------------------------------------------------

FailureFacts facts_of(const Evidence& evidence) {
    const FailurePlace place = place_of(evidence.trace, evidence.trace.failures[evidence.failure]);
    return {.failure = evidence.failure,
            .line = printable(place.line),
            .code = printable(place.code),
            .module = printable(place.module_path),
            .op = printable(place.op),
            .cached = evidence.cached};
}

std::vector<Share> shares_by(const Evidence& evidence, GroupBy by) {
    std::vector<Share> shares;
    for (const BreakdownRow& row : break_down(evidence.trace, {.live = evidence.live}, by)) {
        shares.push_back({printable(row.name), printable(row.code), row.size_bytes});
    }
    return shares;
}

MemoryFacts memory_of(const Evidence& evidence) {
    return {.event = evidence.event,
            .allocated_bytes = evidence.allocated_bytes,
            .reserved_bytes = evidence.reserved_bytes,
            .by_line = shares_by(evidence, GroupBy::kLine),
            .by_module = shares_by(evidence, GroupBy::kLayer),
            .by_category = shares_by(evidence, GroupBy::kClass)};
}

/// -1: not known. The first step loads libraries, so that its time counts only if it is modelled.
int64_t recorded_time_ns(const Trace& trace) {
    const Id<Step> last = last_step(trace);
    if (!last.valid()) return -1;
    const StepKind kind = kind_of(trace, last);
    const bool is_modelled = trace.run().time_basis == TimeBasis::kModelled;
    if (kind != StepKind::kWhole && !(kind == StepKind::kFirst && is_modelled)) return -1;
    const auto times_ns = step_times_ns(trace);
    return times_ns.empty() ? -1 : median(times_ns);
}

// ---- the verdict -------------------------------------------------------------------------------

/// "Out of memory at train.py:14: 5.59 GiB asked, 3.02 GiB free, and 5.19 GiB cached in 31 pieces."
std::string failed_sentence(const Evidence& evidence) {
    const Failure failure = evidence.trace.failures[evidence.failure];
    const CachedPieces& cached = evidence.cached;
    const bool has_all = failure.requested_bytes >= 0 && failure.free_bytes >= 0 && cached.num > 0;
    if (!has_all) return failure_sentence(evidence.trace, evidence.failure);
    const FailurePlace place = place_of(evidence.trace, failure);
    std::string_view where = place.line;
    if (where.empty()) where = place.module_path.empty() ? place.op : place.module_path;
    return printable(fmt::format(
        "Out of memory{}{}: {} asked, {} free, and {} cached in {}.", where.empty() ? "" : " at ",
        where, format_bytes(failure.requested_bytes), format_bytes(failure.free_bytes),
        format_bytes(cached.total_bytes),
        cached.num == 1 ? "one piece" : fmt::format("{} pieces", format_count(cached.num))));
}

std::string grows_sentence(const GrowingLine& line) {
    return printable(fmt::format(
        "It grows by {} a step at {} and is full in {} steps.", format_bytes(line.bytes_per_step),
        line.line.substr(0, line.line.find(' ')), format_count(*line.steps_until_full)));
}

/// " with a batch of 128 on a100-40gb": what is not as recorded.
std::string words_of_target(const ExplainTarget& asked) {
    std::string words;
    if (asked.batch_size > 0) words += fmt::format(" with a batch of {}", asked.batch_size);
    if (!asked.gpu.empty()) words += fmt::format(" on {}", printable(asked.gpu));
    return words;
}

/// "21.5 of 38.9 GiB at the peak, in backward"
std::string words_of_peak(const Evidence& evidence, const Explanation& explanation) {
    const int64_t limit_bytes = explanation.target.limit_bytes;
    const int64_t peak_bytes = explanation.as_written.peak_allocated_bytes;
    std::string text = format_bytes(peak_bytes);
    if (limit_bytes > 0) {
        const std::string limit = format_bytes(limit_bytes);
        const auto unit = [](const std::string& bytes) { return bytes.substr(bytes.find(' ')); };
        if (unit(text) == unit(limit)) text = text.substr(0, text.find(' '));
        text += " of " + limit;
    }
    text += " at the peak";
    const auto kind = evidence.phase_kind();
    return kind ? fmt::format("{}, in {}", text, name_of(*kind)) : text;
}

/// Whether it fits as asked, and with how much left.
void judge_fit(const Evidence& evidence, const WhatIf& steps, const ExplainTarget& asked,
               Explanation& explanation) {
    const std::string peak = words_of_peak(evidence, explanation);
    const std::string target = words_of_target(asked);
    const auto allocated = static_cast<double>(explanation.as_written.peak_allocated_bytes);
    const auto limit = static_cast<double>(explanation.target.limit_bytes);
    const auto later =
        static_cast<double>(asked.batch_size > 0 ? 0 : later_peak_bytes(evidence.trace));
    const double most = std::max(allocated, later);
    const auto full = std::ranges::find_if(
        explanation.growth, [](const GrowingLine& line) { return line.steps_until_full > 0; });
    if (!explanation.as_written.fits) {
        explanation.verdict = Verdict::kOutOfMemory;
        const bool is_known = steps.unknown_rest().empty() || allocated > limit;
        explanation.sentence =
            is_known ? fmt::format("It does not fit{}: {}.", target, peak)
                     : fmt::format("It is not known whether it fits{}: {}, up to the failure.",
                                   target, peak);
    } else if (full != explanation.growth.end()) {
        explanation.verdict = Verdict::kGrows;
        explanation.sentence = grows_sentence(*full);
    } else if (limit > 0 && later > limit) {
        explanation.verdict = Verdict::kOutOfMemory;
        explanation.sentence = fmt::format(
            "It does not fit{}: the recorded steps do ({}), and later the program takes {}.",
            target, peak, format_bytes(later_peak_bytes(evidence.trace)));
    } else {
        const bool is_near = limit > 0 && most > kShareNearLimit * limit;
        explanation.verdict = is_near ? Verdict::kNearLimit : Verdict::kFits;
        explanation.sentence = fmt::format(
            "It fits{}{}: {}{}.", target,
            is_near ? fmt::format(", with {} left", format_percent(1 - most / limit)) : "", peak,
            later > 0 ? fmt::format("; after the recorded steps {}",
                                    format_bytes(later_peak_bytes(evidence.trace)))
                      : "");
    }
}

// ---- notes -------------------------------------------------------------------------------------

/// "With enough memory the step peaks at 37.8 GiB: 14.1 GiB more than the GPU has."
std::string needed_sentence(const Explanation& whole, bool has_own_limit) {
    const int64_t peak_bytes = whole.as_written.peak_allocated_bytes;
    const int64_t limit_bytes = whole.target.limit_bytes;
    const std::string peak =
        fmt::format("With enough memory the step peaks at {}", format_bytes(peak_bytes));
    if (limit_bytes <= 0) return peak + ".";
    const std::string_view limit = has_own_limit ? "the limit" : "the GPU has";
    if (peak_bytes > limit_bytes) {
        return fmt::format("{}: {} more than {}.", peak, format_bytes(peak_bytes - limit_bytes),
                           limit);
    }
    return fmt::format("{}, and that is less than {}: {}", peak, limit,
                       whole.as_written.fits
                           ? "a replay of it is served."
                           : "the free memory lies in pieces that are too small.");
}

void add_notes(const RemedyCase& which, bool tried_combinations, Explanation& explanation) {
    std::vector<std::string>& notes = explanation.notes;
    const Trace& trace = which.evidence.trace;
    if (auto caught = caught_sentence(trace); !caught.empty()) notes.push_back(std::move(caught));
    const std::vector<ValueReadLine> values = value_read_lines(trace);
    const bool reads_decide = !values.empty() && decides(values.front().kind);
    if (reads_decide) notes.push_back(printable(value_read_sentence(values)));
    const int64_t peak_bytes = which.evidence.steps.peak().allocated_bytes;
    if (const auto text = routing_sentence(trace, values, peak_bytes); !text.empty()) {
        notes.push_back(printable(text));
    }
    const bool is_recorded = trace.run().source != Source::kImported;
    if (trace.ops.empty() && trace.steps.empty() && is_recorded) {
        notes.push_back(
            "The program failed before its first step, so techniques for the model are not "
            "estimated.");
    } else if (trace.ops.empty()) {
        notes.push_back(
            "The trace holds no ops, so techniques for the model are not estimated: record it with "
            "temposcope run.");
    }
    const std::string& unknown_rest = which.steps.unknown_rest();
    if (!unknown_rest.empty()) notes.push_back(unknown_rest);
    if (const auto later = find_note(trace, kLaterPeak); later.valid()) {
        const auto text = trace.text(trace.diagnostics.get<&Diagnostic::explanation>(later));
        notes.push_back(printable(fmt::format(
            "{}{}", text,
            explanation.remedies.empty() ? "" : " The remedies are of the recorded steps.")));
    }
    if (which.contradicts_recording) {
        notes.push_back(
            "The replay does not run out of memory where the program did, because the trace lacks "
            "what the allocator held before it. So settings are not judged, and whether a remedy "
            "fits is not sure.");
    }
    if (explanation.as_written.fits) return;
    std::vector<StepOutcome> kept;
    for (const Remedy& remedy : explanation.remedies) {
        if (keeps_target(remedy)) kept.push_back(remedy.outcome());
    }
    const bool some_fits = std::ranges::any_of(
        kept, [](const StepOutcome& outcome) { return outcome.fits || !outcome.is_sure; });
    if (!kept.empty() && !some_fits) {
        notes.push_back(
            fmt::format("With this batch on this GPU no remedy is enough.{}",
                        tried_combinations ? " No combination that was tried is enough." : ""));
    }
}

/// Adds what only the other trace shows. A rule may find several things in one trace.
void add_findings(std::vector<Finding> others, std::vector<Finding>& findings) {
    std::set<std::string_view> known;
    for (const Finding& finding : findings) known.insert(finding.id);
    for (Finding& finding : others) {
        if (known.contains(finding.id)) continue;
        finding.evidence.clear();  // rows of the other trace
        findings.push_back(std::move(finding));
    }
    std::ranges::stable_sort(findings, std::greater(), &Finding::size_bytes);
}

}  // namespace

Result<Explanation> explain(const StepIndex& steps, const ExplainRequest& request) {
    const PlannerData& data = request.data != nullptr ? *request.data : built_in_planner_data();
    const Evidence evidence(steps);
    auto target = find_target(evidence, data, request.target);
    if (!target) return tl::unexpected(target.error());
    const WhatIf what_if(evidence);

    Explanation explanation{.memory = memory_of(evidence), .target = *target};
    if (evidence.failure.valid()) explanation.failure = facts_of(evidence);
    explanation.growth = growing_lines(evidence.trace, steps.peak());
    explanation.findings = find_unusual(evidence);
    explanation.step_time_ns = recorded_time_ns(evidence.trace);
    explanation.unknown_rest = what_if.unknown_rest();

    RemedyCase which{.evidence = evidence,
                     .steps = what_if,
                     .conditions = conditions_of(evidence.trace, *target),
                     .as_written = {.step_time_ns = explanation.step_time_ns},
                     .data = data,
                     .growth = explanation.growth,
                     .recorded_gpu = recorded_gpu(evidence, data)};
    which.as_written = outcome_of(which, {});
    const bool is_as_recorded = request.target.gpu.empty() && request.target.batch_size <= 0 &&
                                request.target.limit_bytes <= 0;
    const bool has_failed = is_as_recorded && ran_out_of_memory(evidence.trace);
    which.contradicts_recording = has_failed && which.as_written.fits;
    if (has_failed) which.as_written.fits = false;
    which.largest_batch = find_largest_batch(which);
    explanation.as_written = which.as_written;
    explanation.largest_batch = which.largest_batch;
    std::vector<Candidate> found = find_remedies(which);
    Combinations combinations = find_combinations(which, found);
    for (Candidate& one : found) explanation.remedies.push_back(std::move(one.remedy));
    std::ranges::move(combinations.best, std::back_inserter(explanation.remedies));
    order_remedies(explanation);
    judge_fit(evidence, what_if, request.target, explanation);
    if (has_failed) {
        explanation.sentence =
            evidence.failure.valid()
                ? failed_sentence(evidence)
                : fmt::format("Out of memory: {}.", words_of_peak(evidence, explanation));
    }
    // Another error has ended the program: what was recorded may be part of a step.
    const Id<Failure> fatal = fatal_failure(evidence.trace);
    if (fatal.valid() && !ran_out_of_memory(evidence.trace)) {
        explanation.sentence =
            fmt::format("{} Up to there: {}", printable(failure_sentence(evidence.trace, fatal)),
                        explanation.sentence);
    }
    add_notes(which, combinations.were_tried, explanation);
    return explanation;
}

Result<void> add_whole_step(const StepIndex& whole, const ExplainRequest& request,
                            Explanation& explanation) {
    ExplainRequest same = request;
    same.target.gpu = explanation.target.gpu;
    same.target.limit_bytes = explanation.target.limit_bytes;
    auto found = explain(whole, same);
    if (!found) return tl::unexpected(found.error());
    if (!found->unknown_rest.empty()) return {};
    explanation.as_written = found->as_written;
    explanation.step_time_ns = found->step_time_ns;
    explanation.largest_batch = found->largest_batch;
    explanation.target.batch_size = found->target.batch_size;
    explanation.remedies = std::move(found->remedies);
    if (explanation.growth.empty()) explanation.growth = std::move(found->growth);
    add_findings(std::move(found->findings), explanation.findings);
    order_remedies(explanation);
    explanation.notes = {needed_sentence(*found, request.target.limit_bytes > 0)};
    explanation.notes.insert(explanation.notes.end(), found->notes.begin(), found->notes.end());
    explanation.unknown_rest.clear();
    return {};
}

}  // namespace profiler
