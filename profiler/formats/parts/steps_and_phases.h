#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <functional>
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

/// The rows of `step` and `phase`, and the phase of each op, from `annotation` and `op`.
///
/// Steps are the ranges "ProfilerStep#N". A file without them that trains is one step. Phases are
/// the ranges "## forward ##" and so on. In a file without those they are inferred: backward is
/// where autograd's engine evaluates functions, the optimizer is the range "Optimizer.step#...",
/// forward is the time with ops before a backward.
///
/// `event_at`: the number of the first event of the allocator at a time or later.
void add_steps(Trace& trace, const std::function<int64_t(int64_t time_ns)>& event_at);

/// Gives each storage a category from when it lived and in which op (Categories below); what does
/// not follow from that stays "unknown". Adds a note that says they are inferred.
///
///     allocated in     freed in                            category
///     forward          the backward after it               activation
///     forward          the same forward                    temporary
///     forward          later, filled from the host         input
///     backward         the same backward                   temporary
///     backward         later, or never                     gradient
///     optimizer        the same optimizer phase            temporary
///     optimizer        later, or never                     optimizer_state
///     before           a backward / in zero_grad           activation / gradient
void infer_categories(Trace& trace);

/// The same for a file without phases, from call stacks alone: what autograd allocates and what
/// lives on when the program allocates again is a gradient. (Python does not run in the threads of
/// autograd: where stacks are of Python only, those have none.) What cuBLAS keeps is a workspace.
///
///     program    a a a a . . . . . a a
///     autograd           b b b b
///                          \______________ lives on: a gradient
void infer_gradients(Trace& trace);

}  // namespace profiler
