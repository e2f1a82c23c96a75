#include "profiler/analysis/compare/comparison.h"

#include "profiler/analysis/compare/comparison_notes.h"
#include "profiler/analysis/compare/trained_parameters.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/text.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

namespace profiler {
namespace {

/// Fills in what the recorded step of a trace says.
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
    column.is_cut_off = ran_out_of_memory(trace);
    const std::vector<Id<Step>> steps = whole_steps(trace);
    column.knows_saved = records_saves(trace) && (!column.is_cut_off || !steps.empty());
    column.saved_bytes = column.knows_saved ? report->ledger.total_bytes : 0;
    column.steps = static_cast<int64_t>(steps.size());
    if (trace.run().source != Source::kPredicted) {
        for (const Id<Step> step : steps) {
            const double loss = trace.steps.get<&Step::loss>(step);
            if (!std::isnan(loss)) column.loss = loss;
        }
    }
    column.step_times_ns = step_times_ns(trace);
    const std::vector<int64_t>& times_ns = column.step_times_ns;
    if (!times_ns.empty()) {
        const auto [fastest, slowest] = std::ranges::minmax_element(times_ns);
        column.fastest_step_ns = *fastest;
        column.slowest_step_ns = *slowest;
    }
    column.was_busy = has_note(trace, kMachineBusy);
    column.time_error = time_error_of(trace);
    column.turns_run = turns_run_of(trace);
    column.step_time_ns = median(times_ns);
    column.sequences_per_step = sequences_per_step(trace);
    column.sequences_per_s = sequences_per_s(column.sequences_per_step, column.step_time_ns);
}

/// Fills in what a sweep says.
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

namespace fs = std::filesystem;

/// The parts of a path without its extension, in reverse order.
std::vector<std::string> parts_from_end(const std::string& file) {
    const fs::path path = fs::path(file).lexically_normal();
    std::vector<std::string> parts;
    for (const fs::path& part : path) parts.push_back(part.string());
    if (!parts.empty()) parts.back() = path.stem().string();
    std::ranges::reverse(parts);
    return parts;
}

/// The last `count` parts, as a path.
std::string suffix(const std::vector<std::string>& parts, std::size_t count) {
    fs::path path;
    for (std::size_t i = std::min(count, parts.size()); i-- > 0;) path /= parts[i];
    return path.string();
}

/// The shortest end of the path `file` that no path in `others` shares; the whole path if they
/// share every end.
std::string distinguishing_suffix(const std::string& file, const std::vector<std::string>& others) {
    const std::vector<std::string> parts = parts_from_end(file);
    for (std::size_t count = 1; count < parts.size(); ++count) {
        const std::string text = suffix(parts, count);
        const bool repeats = std::ranges::any_of(others, [&](const auto& other) {
            return suffix(parts_from_end(other), count) == text;
        });
        if (!repeats) return text;
    }
    return suffix(parts, parts.size());
}

std::string label_of(const std::vector<ComparisonColumn>& columns, std::size_t index) {
    const ComparisonColumn& column = columns[index];
    bool repeats = false;
    std::vector<std::string> others;  // files of the same recipe and source
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (i == index || columns[i].recipe != column.recipe) continue;
        repeats = true;
        if (columns[i].source == column.source) others.push_back(columns[i].files.front());
    }
    if (!repeats) return column.recipe;
    return fmt::format("{} ({})", column.recipe,
                       others.empty() ? std::string(describe(column.source))
                                      : distinguishing_suffix(column.files.front(), others));
}

/// Gives each column a different name: its recipe. Columns of the same recipe also get their source
/// ("tempo (predicted)"); if that repeats, the part of the file's path that differs ("tempo
/// (before/tempo)"); if even that repeats, a number.
std::vector<std::string> unique_labels(const std::vector<ComparisonColumn>& columns) {
    std::vector<std::string> labels;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::string label = label_of(columns, i);
        std::string unique = label;
        for (int n = 2; std::ranges::find(labels, unique) != labels.end(); ++n) {
            unique = fmt::format("{} #{}", label, n);
        }
        labels.push_back(std::move(unique));
    }
    return labels;
}

/// A column while it is being joined from files.
struct Draft {
    ComparisonColumn column;
    std::optional<models::Workload> workload;
    std::optional<RecordedProgram> program;  // where it is one instead of a workload
    std::string own_recipe;                  // "tempo" of "tempo · fsdp2"
    bool has_recipe = true;                  // else it is called by its file
    bool has_sweep = false;
    bool step_is_sweeps = false;  // its captured step came with a sweep
};

/// A sweep and a capture may be the same run although their batches differ.
bool describes_same_run(const Draft& draft, const NamedTrace& named,
                        std::optional<models::Workload> workload) {
    if (!draft.workload || !workload ||
        models::layer_recipes_of(*draft.workload) != models::layer_recipes_of(*workload)) {
        return false;
    }
    const bool has_sweep = !named.trace->sweep_points.empty();
    if (draft.has_sweep != has_sweep) workload->batch_size = draft.workload->batch_size;
    const Run run = named.trace->run();
    return models::comparable(*draft.workload, *workload) && draft.column.source == run.source &&
           draft.column.device == named.trace->text(run.device_name);
}

/// Adds the file to the column whose missing half (captured step or sweep) it brings; two captures
/// of the same workload and recipe (before and after a change) stay two columns.
void join(std::vector<Draft>& drafts, const NamedTrace& named) {
    const Trace& trace = *named.trace;
    const auto workload = workload_of(trace);
    const bool has_sweep = !trace.sweep_points.empty();
    const bool has_step = has_recorded_step(trace);
    for (Draft& draft : drafts) {
        if (!describes_same_run(draft, named, workload)) continue;
        const bool brings_sweep = has_sweep && !draft.has_sweep;
        // A sweep's own step gives way to a capture's: that was made for the purpose.
        const bool brings_step =
            has_step && (!draft.column.step_trace || (draft.step_is_sweeps && !has_sweep));
        if (!brings_sweep && !brings_step) continue;
        if (brings_sweep) take_sweep(draft.column, trace);
        if (brings_step) {
            take_step(draft.column, named);
            draft.step_is_sweeps = has_sweep;
            draft.workload = workload;
        }
        draft.has_sweep |= has_sweep;
        draft.column.files.push_back(named.file);
        return;
    }
    Draft draft;
    const Run run = trace.run();
    draft.workload = workload;
    if (!workload) draft.program = program_of(trace);
    if (draft.program) draft.column.model = draft.program->model;
    draft.has_sweep = has_sweep;
    draft.step_is_sweeps = has_sweep && has_step;
    draft.own_recipe = trace.text(run.recipe);
    draft.column.recipe = describe_recipe(trace);
    draft.has_recipe = !draft.column.recipe.empty();
    if (!draft.has_recipe) draft.column.recipe = std::filesystem::path(named.file).stem().string();
    draft.column.recipe_of_trace = draft.column.recipe;
    draft.column.source = run.source;
    draft.column.device = trace.text(run.device_name);
    draft.column.batch_size = run.batch_size;
    draft.column.files = {named.file};
    if (has_step) take_step(draft.column, named);
    if (has_sweep) take_sweep(draft.column, trace);
    drafts.push_back(std::move(draft));
}

/// Whether the batch of this draft's step is its own, and not just what a sweep happened to trace.
bool has_own_batch(const Draft& draft) { return draft.column.step_trace && !draft.step_is_sweeps; }

/// A program without a recipe, beside one with a recipe, is called as it is.
void name_unchanged_programs(std::vector<Draft>& drafts) {
    const bool has_changed = std::ranges::any_of(
        drafts, [](const Draft& draft) { return draft.program && draft.has_recipe; });
    if (!has_changed) return;
    for (Draft& draft : drafts) {
        if (!draft.program || draft.has_recipe) continue;
        draft.column.recipe = draft.column.recipe_of_trace = "original";
    }
}

bool says_what_it_trains(const Draft& draft) { return draft.workload || draft.program; }

const models::Workload* workload_in(const Draft& draft) {
    if (draft.workload) return &*draft.workload;
    return draft.program && draft.program->spread ? &draft.program->spread->workload : nullptr;
}

int64_t num_gpus_of(const Draft& draft) { return draft.program ? draft.program->world_size : 1; }

std::vector<std::string> differences_of(const Draft& a, const Draft& b) {
    if (a.program && b.program) return differences(*a.program, *b.program);
    if (workload_in(a) != nullptr && workload_in(b) != nullptr) {
        std::vector<std::string> texts = differences(*workload_in(a), *workload_in(b));
        if (num_gpus_of(a) != num_gpus_of(b)) {
            texts.push_back(
                fmt::format("number of GPUs ({} and {})", num_gpus_of(a), num_gpus_of(b)));
        }
        return texts;
    }
    const auto name_of = [](const Draft& draft) {
        return draft.program ? draft.program->program : draft.workload->model.name;
    };
    return {fmt::format("program ({} and {})", name_of(a), name_of(b))};
}

bool is_of_user(const Draft& draft) { return draft.program && !draft.program->spread; }

/// What differs between two programs of the user's.
std::vector<std::string> program_differences(const Draft& a, const Draft& b) {
    std::vector<std::string> texts = differences(*a.program, *b.program);
    const bool are_whole = !a.column.is_cut_off && !b.column.is_cut_off;
    if (are_whole && a.column.step_trace && b.column.step_trace) {
        const auto of_parameters = differences(trained_parameters_of(*a.column.step_trace),
                                               trained_parameters_of(*b.column.step_trace));
        texts.insert(texts.end(), of_parameters.begin(), of_parameters.end());
    }
    if (!texts.empty() && a.column.recipe_of_trace != b.column.recipe_of_trace &&
        (a.has_recipe || b.has_recipe)) {
        texts.insert(texts.begin(), fmt::format("recipe ({} and {})", a.column.recipe_of_trace,
                                                b.column.recipe_of_trace));
    }
    return texts;
}

/// Whether two columns have one baseline.
bool belong_together(const Draft& a, const Draft& b) {
    if (is_of_user(a) && is_of_user(b)) return true;
    if (a.program && b.program) return differences(*a.program, *b.program).empty();
    if (a.program || b.program) return !says_what_it_trains(a) || !says_what_it_trains(b);
    if (!a.workload || !b.workload) return true;
    models::Workload other = *b.workload;
    if (!has_own_batch(a) || !has_own_batch(b)) other.batch_size = a.workload->batch_size;
    return models::comparable(*a.workload, other);
}

/// The drafts of each step, in the order in which the steps first appear. Sweeps come to the steps
/// that captures have defined. Drafts without a workload join the first group.
std::vector<std::vector<std::size_t>> steps_of(const std::vector<Draft>& drafts) {
    std::vector<std::vector<std::size_t>> steps;
    for (const bool captures : {true, false}) {
        for (std::size_t i = 0; i < drafts.size(); ++i) {
            if (has_own_batch(drafts[i]) != captures) continue;
            const auto same = std::ranges::find_if(steps, [&](const auto& step) {
                return belong_together(drafts[step.front()], drafts[i]);
            });
            (same == steps.end() ? steps.emplace_back() : *same).push_back(i);
        }
    }
    for (auto& step : steps) std::ranges::sort(step);
    std::ranges::sort(steps);
    return steps;
}

/// Puts the drafts of one step side by side. In each group the recipe `baseline` comes first, if it
/// is there.
void group_by_step(std::vector<Draft>& drafts, const std::string& baseline_recipe) {
    std::vector<Draft> grouped;
    for (std::vector<std::size_t>& step : steps_of(drafts)) {
        auto chosen = std::ranges::find_if(
            step, [&](std::size_t i) { return drafts[i].column.recipe == baseline_recipe; });
        if (chosen == step.end()) {  // of "original · ddp" and "original · fsdp2" the first
            chosen = std::ranges::find_if(
                step, [&](std::size_t i) { return drafts[i].own_recipe == baseline_recipe; });
        }
        if (chosen != step.end()) std::rotate(step.begin(), chosen, chosen + 1);
        const std::size_t baseline = grouped.size();
        for (const std::size_t i : step) {
            drafts[i].column.baseline = baseline;
            grouped.push_back(std::move(drafts[i]));
        }
    }
    drafts = std::move(grouped);
}

/// One note for each further step: what differs, and the baseline of that step.
void note_steps(const std::vector<Draft>& drafts, std::vector<std::string>& notes) {
    const Draft& first = drafts.front();
    for (std::size_t i = 1; i < drafts.size(); ++i) {
        const Draft& draft = drafts[i];
        if (draft.column.baseline != i) continue;
        if (!says_what_it_trains(draft) || !says_what_it_trains(first)) continue;
        std::vector<std::string> others;
        for (const Draft& other : drafts) {
            if (other.column.baseline == i) others.push_back(other.column.recipe);
        }
        notes.push_back(fmt::format(
            "{} and {} {}: {}; {}.", first.column.recipe, draft.column.recipe,
            draft.has_recipe ? "differ in more than the recipe" : "do not train the same step",
            fmt::join(differences_of(first, draft), ", "),
            others.size() > 1
                ? fmt::format("changes of {} are against {}",
                              fmt::join(others.begin() + 1, others.end(), ", "), others.front())
                : "their figures are not comparable"));
    }
}

void note_differences(const std::vector<Draft>& drafts, std::vector<std::string>& notes) {
    for (const Draft& draft : drafts) {
        const Draft& baseline = drafts[draft.column.baseline];
        if (&draft == &baseline) continue;
        if (draft.column.source != baseline.column.source) {
            const auto on_device = [](const ComparisonColumn& column) {
                return column.device.empty() ? "" : " on " + column.device;
            };
            notes.push_back(fmt::format(
                "{} is {}{}, {} is {}{}: the differences between them are not the recipe's alone.",
                baseline.column.recipe, describe(baseline.column.source),
                on_device(baseline.column), draft.column.recipe, describe(draft.column.source),
                on_device(draft.column)));
        } else if (!draft.column.device.empty() && !baseline.column.device.empty() &&
                   draft.column.device != baseline.column.device) {
            notes.push_back(fmt::format("{} ran on {}, {} on {}: their times are not comparable.",
                                        baseline.column.recipe, baseline.column.device,
                                        draft.column.recipe, draft.column.device));
        }
        const std::string communication = about_communication(draft.column, baseline.column);
        if (!communication.empty()) notes.push_back(communication);
        const bool knows_batches = draft.column.batch_size > 0 && baseline.column.batch_size > 0;
        if (knows_batches && !is_comparable(draft.column, baseline.column)) {
            notes.push_back(
                fmt::format("The step of {} was recorded at a batch of {}, the step of {} at {}: "
                            "their memory and "
                            "step times are not compared.",
                            draft.column.recipe, draft.column.batch_size, baseline.column.recipe,
                            baseline.column.batch_size));
        }
        if (baseline.has_sweep && draft.has_sweep &&
            draft.column.memory_limit_bytes != baseline.column.memory_limit_bytes) {
            notes.push_back(
                fmt::format("The sweeps of {} and {} had different memory limits: their "
                            "maximum batches are not comparable.",
                            baseline.column.recipe, draft.column.recipe));
        }
    }
}

/// A capture and its sweep are two runs. If their times of the same batch differ, the speed of the
/// machine has changed in between.
void note_speeds(const std::vector<Draft>& drafts, std::vector<std::string>& notes) {
    constexpr double kWorthSaying = 0.1;
    std::vector<std::string> times;
    for (const Draft& draft : drafts) {
        const ComparisonColumn& column = draft.column;
        if (column.steps < 2 || draft.step_is_sweeps) continue;
        if (column.was_busy || column.sweep_was_busy) continue;  // another note says so
        for (const ThroughputPoint& point : column.curve) {
            if (point.batch_size != column.batch_size || point.sequences_per_s <= 0) continue;
            const double ratio = column.sequences_per_s / point.sequences_per_s;
            if (std::abs(std::log(ratio)) < std::log(1 + kWorthSaying)) continue;
            times.push_back(fmt::format("{} {} and {}", column.recipe,
                                        format_duration(column.step_time_ns),
                                        format_duration(point.step_time_ns)));
        }
    }
    if (times.empty()) return;
    notes.push_back(fmt::format(
        "Captures and sweeps timed the same batch differently ({}): the machine's speed "
        "changed in between; compare only times of one run.",
        fmt::join(times, ", ")));
}

/// Times that say nothing, or not much.
void note_bad_times(const std::vector<Draft>& drafts, std::vector<std::string>& notes) {
    std::vector<std::string> busy;
    std::map<std::string, double> errors;  // by device
    for (const Draft& draft : drafts) {
        const ComparisonColumn& column = draft.column;
        if (has_bad_times(column) || column.sweep_was_busy) busy.push_back(column.recipe);
        if (column.time_error > 0) errors[column.device] = column.time_error;
    }
    if (!busy.empty()) {
        notes.push_back(fmt::format(
            "The machine was busy with something else while {} ran: those times are left out; "
            "capture again when it is idle.",
            join_with_and(busy)));
    }
    for (const auto& [device, error] : errors) {
        notes.push_back(fmt::format(
            "Times on {} are predicted: expect ±{:.0f} % in each of them, and ±{:.0f} % in the "
            "ratio of two recipes.",
            device, 100 * error, 100 * kErrorOfRatio));
    }
}

void note_out_of_memory(const std::vector<Draft>& drafts, std::vector<std::string>& notes) {
    for (const Draft& draft : drafts) {
        const ComparisonColumn& column = draft.column;
        if (column.out_of_memory.empty()) continue;
        notes.push_back(column.is_cut_off
                            ? fmt::format("{} ran out of memory: its figures are those up to "
                                          "there, and its peak would be higher.",
                                          column.recipe)
                            : fmt::format("{}: {}", column.recipe, column.out_of_memory));
    }
}

void note_files(const std::vector<NamedTrace>& traces, std::vector<std::string>& notes) {
    for (const NamedTrace& named : traces) {
        const auto steps = static_cast<int64_t>(named.trace->steps.size());
        if (named.trace->run().state == RunState::kIncomplete) {
            notes.push_back(fmt::format("{} is incomplete: {} {} recorded.", named.file, steps,
                                        steps == 1 ? "step was" : "steps were"));
        }
        const bool is_known = workload_of(*named.trace) || program_of(*named.trace);
        if (traces.size() > 1 && !is_known) {
            notes.push_back(
                fmt::format("{} does not say which workload it ran, so that nothing can check "
                            "whether it is comparable.",
                            named.file));
        }
    }
}

models::Result<void> check_baseline(const std::vector<Draft>& drafts, const std::string& baseline) {
    std::vector<std::string> recipes;
    for (const Draft& draft : drafts) {
        if (baseline.empty() || draft.column.recipe == baseline) return {};
        if (draft.own_recipe == baseline) return {};
        if (std::ranges::find(recipes, draft.column.recipe) == recipes.end()) {
            recipes.push_back(draft.column.recipe);
        }
    }
    return models::fail("No trace has the recipe '{}' to compare with; choose one of: {}.",
                        baseline, fmt::join(recipes, ", "));
}

}  // namespace

bool at_same_batch(const ComparisonColumn& a, const ComparisonColumn& b) {
    const bool both_have_steps = a.peak_allocated_bytes > 0 && b.peak_allocated_bytes > 0;
    if (!both_have_steps) return true;
    const bool both_count = a.sequences_per_step > 0 && b.sequences_per_step > 0;
    return both_count ? a.sequences_per_step == b.sequences_per_step : a.batch_size == b.batch_size;
}

bool is_comparable(const ComparisonColumn& column, const ComparisonColumn& baseline) {
    return !column.differs_in.empty() || at_same_batch(column, baseline);
}

std::string peak_of_limit(const ComparisonColumn& column) {
    return text_of_limit(column.peak_allocated_bytes, column.step_limit_bytes);
}

bool has_predicted_memory(const ComparisonColumn& column) {
    return !column.memory_planned_for.empty() || column.source == Source::kPredicted;
}

bool has_bad_times(const ComparisonColumn& column) {
    return column.was_busy && column.source != Source::kPredicted;
}

bool speed_is_uncertain(const ComparisonColumn& column, const ComparisonColumn& baseline) {
    if (column.was_busy || baseline.was_busy) return true;
    if (column.step_ratio) return !column.step_ratio->shows_difference();
    if (column.steps < 2 || baseline.steps < 2) return true;
    return column.fastest_step_ns <= baseline.slowest_step_ns &&
           baseline.fastest_step_ns <= column.slowest_step_ns;
}

models::Result<Comparison> compare(const std::vector<NamedTrace>& traces,
                                   const std::string& baseline) {
    if (traces.empty())
        return models::fail("There is no trace to compare: name at least one file.");
    std::vector<Draft> drafts;
    for (const NamedTrace& named : traces) join(drafts, named);
    name_unchanged_programs(drafts);
    if (auto ok = check_baseline(drafts, baseline); !ok) return tl::unexpected(ok.error());
    group_by_step(drafts, baseline.empty() ? "original" : baseline);
    for (Draft& draft : drafts) {
        const Draft& baseline_draft = drafts[draft.column.baseline];
        pair_steps(draft.column, baseline_draft.column);
        const bool are_programs = is_of_user(draft) && is_of_user(baseline_draft);
        if (!are_programs || &draft == &baseline_draft) continue;
        draft.column.differs_in = program_differences(baseline_draft, draft);
    }

    std::vector<ComparisonColumn> columns;
    for (const Draft& draft : drafts) columns.push_back(draft.column);
    const std::vector<std::string> labels = unique_labels(columns);
    for (std::size_t i = 0; i < drafts.size(); ++i) drafts[i].column.recipe = labels[i];

    Comparison comparison;
    const auto captured = std::ranges::find_if(drafts, [](const Draft& draft) {
        return draft.column.baseline == 0 && has_own_batch(draft) && says_what_it_trains(draft);
    });
    const Draft& described = captured == drafts.end() ? drafts.front() : *captured;
    if (described.workload) comparison.workload = describe(*described.workload);
    if (described.program) comparison.workload = describe(*described.program);
    note_files(traces, comparison.notes);
    note_steps(drafts, comparison.notes);
    note_differences(drafts, comparison.notes);
    note_speeds(drafts, comparison.notes);
    note_bad_times(drafts, comparison.notes);
    note_out_of_memory(drafts, comparison.notes);
    const bool one_step = std::ranges::all_of(drafts, [](const Draft& draft) {
        return says_what_it_trains(draft) && draft.column.baseline == 0;
    });
    for (Draft& draft : drafts) comparison.columns.push_back(std::move(draft.column));
    if (one_step) comparison.sentence = quote(comparison.columns);
    return comparison;
}

}  // namespace profiler
