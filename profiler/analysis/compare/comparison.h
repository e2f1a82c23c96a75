#pragma once

#include "models/config/result.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/analysis/step/step_report.h"
#include "profiler/analysis/step/throughput.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Recipes side by side: memory, maximum batch, throughput.
namespace profiler {

/// One column: all traces of one workload and recipe (a capture and its sweep may be two files).
struct ComparisonColumn {
    std::string recipe;           // "tempo"; of columns with one recipe "tempo (before)"
    std::string recipe_of_trace;  // "tempo" in any case; over many GPUs "tempo · fsdp2"
    std::string model;            // of a program; empty: a workload
    Source source = Source::kMeasuredCpu;
    std::string device;       // "cpu"
    bool is_planned = false;  // no file holds it: a plan says what it would be
    std::string
        memory_planned_for;    // the GPU of the plan whose peak it is; empty: a captured step's
    std::size_t baseline = 0;  // the column of the same step with which this one is compared
    /// By what a program's step differs from the baseline's: "precision (fp32 and amp-fp16)".
    /// Empty: it is the same step.
    std::vector<std::string> differs_in;
    int64_t batch_size = 0;          // of the captured step
    int64_t sequences_per_step = 0;  // of all its micro-batches; 0: not known
    int64_t peak_allocated_bytes = 0;
    int64_t peak_reserved_bytes = 0;
    std::string out_of_memory;      // why the captured step did not fit; empty: it did
    bool is_cut_off = false;        // memory ran out in the last step: its peak would be higher
    int64_t step_limit_bytes = -1;  // the memory that the captured step had; -1: not known
    std::optional<PhaseKind> peak_phase;  // none: outside a phase, or no captured step
    int64_t saved_bytes = 0;              // the ledger's total: from forward to backward
    bool knows_saved = true;  // false: the file does not say, or the step ran out of memory
    CategoryBytes peak_by_category{};
    int64_t step_time_ns = 0;  // median of recorded steps
    int64_t fastest_step_ns = 0;
    int64_t slowest_step_ns = 0;
    int64_t steps = 0;
    std::vector<int64_t> step_times_ns;     // in the order of the steps
    std::string turns_run;                  // turns_run_of the captured steps
    std::optional<PairedRatio> step_ratio;  // to the baseline's steps; none: not measured in turn
    bool was_busy = false;  // something else took the processor during the steps (kMachineBusy)
    bool sweep_was_busy = false;                 // the same, of the sweep
    double time_error = 0;                       // of predicted times; 0: measured
    double sequences_per_s = 0;                  // 0: not known
    std::optional<double> loss;                  // of the last recorded step; none: predicted
    BatchBounds max_batch;                       // what the sweep found of the maximum batch
    int64_t memory_limit_bytes = -1;             // of the sweep
    std::optional<double> best_sequences_per_s;  // over the sweep
    std::optional<int64_t> best_batch_size;
    std::vector<ThroughputPoint> curve;       // by batch size
    std::shared_ptr<const Trace> step_trace;  // the capture; null when only a sweep was given
    std::vector<std::string> files;
};

/// Predicted times of two recipes on one GPU share most of their error: of nine pairs in ten the
/// predicted ratio of the steps is off by at most this. Source: pairs in docs/dev/validation.md.
inline constexpr double kErrorOfRatio = 0.05;

/// "14.1 GiB of 16.0 GiB"; without a known limit "14.1 GiB".
std::string peak_of_limit(const ComparisonColumn& column);

/// Whether the recorded steps trained as many samples, in micro-batches or at once: a sweep's own
/// step may have another batch, and then bytes and times of the two are not comparable. True where
/// one of them holds no step.
bool at_same_batch(const ComparisonColumn& a, const ComparisonColumn& b);

/// Whether bytes and times of a column and its baseline are compared: of the same batch, or of
/// programs whose difference is the question.
bool is_comparable(const ComparisonColumn& column, const ComparisonColumn& baseline);

/// Whether the peak was predicted, by a trace or by a plan.
bool has_predicted_memory(const ComparisonColumn& column);

/// Whether the spread of the steps may explain the difference between a column's speed and its
/// baseline's. Measured in turn, the pairs of steps decide; else it is uncertain where the step
/// times of the two overlap. A single step shows no spread, and a busy machine no speed: both are
/// uncertain.
bool speed_is_uncertain(const ComparisonColumn& column, const ComparisonColumn& baseline);

/// Whether the steps were measured while something else slowed them down: their times mean nothing.
bool has_bad_times(const ComparisonColumn& column);

/// What a column saves against another one and what it costs: "tempo trains the same step in 29.1 %
/// less memory than original (...) and takes 3.0 % more time a step at a batch of 8." Empty where
/// the recipes alone do not explain the differences.
std::string quote_pair(ComparisonColumn column, const ComparisonColumn& baseline);

struct Comparison {
    std::vector<ComparisonColumn> columns;  // grouped by step, the baseline of each step first
    std::string workload;  // of the first step: "bert-large, 3 layers, no head, B=8 S=512, fp32"
    std::vector<std::string> notes;  // what is not comparable and why; incomplete captures
    std::string sentence;  // what a user would quote: what a recipe saves, and what it costs
};

/// Joins files of equal workload and recipe. The batch that a sweep traced does not set it apart:
/// its maximum batch and throughput stand beside the steps of captures. The baseline is the recipe
/// `baseline`; if that is empty, `original`; if there is none, the first. Built-in workloads of
/// several steps (another model, batch, precision) each have the baseline of their own step, and
/// a note says what differs. Programs are all compared with one: what the user varied is
/// ComparisonColumn::differs_in. Errors: no traces; no trace has the recipe `baseline`.
models::Result<Comparison> compare(const std::vector<NamedTrace>& traces,
                                   const std::string& baseline = {});

}  // namespace profiler
