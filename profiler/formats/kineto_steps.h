#pragma once

#include "profiler/formats/kineto_memory.h"
#include "profiler/formats/kineto_ops.h"

#include <cstdint>
#include <vector>

namespace profiler::kineto {

/// The rows of `step` and `phase`, and the phase of each op.
///
/// Steps are the ranges "ProfilerStep#N". A file without them that trains is one step. Phases are
/// the ranges "## forward ##" and so on. In a file without those they are inferred: backward is
/// where autograd's engine evaluates functions, the optimizer is the range "Optimizer.step#...",
/// forward is the time with ops before a backward.
void add_steps(const KinetoEvents& events, int64_t start_ns, const MemoryRows& memory,
               Trace& trace);

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

}  // namespace profiler::kineto
