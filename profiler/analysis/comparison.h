#pragma once

#include "models/config/result.h"
#include "profiler/analysis/peak.h"
#include "profiler/analysis/step_report.h"
#include "profiler/analysis/throughput.h"
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
    std::string recipe;  // "tempo"
    Source source = Source::kMeasuredCpu;
    std::string device;  // "cpu"
    std::size_t baseline =
        0;                   // the column that ran the same step and that this one is held against
    int64_t batch_size = 0;  // of the captured step
    int64_t peak_allocated_bytes = 0;
    int64_t peak_reserved_bytes = 0;
    std::optional<PhaseKind> peak_phase;  // none: outside a phase, or no captured step
    int64_t saved_bytes = 0;              // the ledger's total: from forward to backward
    CategoryBytes peak_by_category{};
    int64_t step_time_ns = 0;  // median of recorded steps
    int64_t fastest_step_ns = 0;
    int64_t slowest_step_ns = 0;
    int64_t steps = 0;
    bool was_busy = false;  // something else took the processor during the steps (kMachineBusy)
    double sequences_per_s = 0;
    std::optional<double> loss;                  // of the last recorded step; none: predicted
    BatchBounds max_batch;                       // what the sweep found of the maximum batch
    int64_t memory_limit_bytes = -1;             // of the sweep
    std::optional<double> best_sequences_per_s;  // over the sweep
    std::optional<int64_t> best_batch_size;
    std::vector<ThroughputPoint> curve;       // by batch size
    std::shared_ptr<const Trace> step_trace;  // the capture; null when only a sweep was given
    std::vector<std::string> files;
};

/// Whether the steps of one took times that steps of the other took too: what differs is then no
/// more than their spread. A single step says nothing of its spread, so it overlaps with all, and
/// so do steps on a machine that was busy with something else.
bool speed_is_uncertain(const ComparisonColumn& a, const ComparisonColumn& b);

struct Comparison {
    std::vector<ComparisonColumn> columns;  // those of one step side by side, their baseline first
    std::string
        workload;  // "bert-large, 3 layers, layers head, B=8 S=512, fp32"; of the first step
    std::vector<std::string> notes;  // what is not comparable and why; incomplete captures
    std::string sentence;  // what a user would quote: "tempo keeps 38 % less than original ..."
};

/// Joins files of equal workload and recipe. Baseline: `original` if present, else the first.
/// Traces of several steps (another model, batch, precision) each have the baseline of their own
/// step, and a note says what differs. Errors: no traces.
models::Result<Comparison> compare(const std::vector<NamedTrace>& traces);

}  // namespace profiler
