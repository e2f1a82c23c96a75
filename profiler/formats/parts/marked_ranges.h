#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// How steps and phases stand among the ranges that a program marks, in files of the PyTorch
/// profiler and in memory snapshots.
namespace profiler {

inline constexpr std::string_view kStepMark = "ProfilerStep#";         // and a number
inline constexpr std::string_view kOptimizerMark = "Optimizer.step#";  // and a class
inline constexpr std::string_view kZeroGradMark = "Optimizer.zero_grad#";

/// "## forward ##"
std::string phase_mark(PhaseKind kind);

struct MarkedRange {
    std::string name;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    bool is_annotation = false;  // neither a step nor a phase
};

/// Steps, phases, and the annotations that are not the marks of such; by start, the longer first.
std::vector<MarkedRange> marked_ranges(const Trace& trace);

}  // namespace profiler
