#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <string_view>

namespace profiler {

/// Two recordings of one run, and how errors call them.
struct JoinInput {
    const Trace& trace;
    std::string_view name;
};

/// One trace from a memory snapshot and a trace of the PyTorch profiler of the same run: blocks,
/// segments and call stacks of the snapshot; ops, modules, kernels, steps and phases of the
/// profiler.
///
///     snapshot   |alloc ..... free|     time_us: microseconds since 1970
///     profiler   |  addmm  |            baseTimeNanoseconds + ts: nanoseconds since 1970
///
/// Both files count from 1970, but each with its own estimate of the clock. Where the profiler
/// recorded memory too, blocks of one address and size are the same block: the median of their
/// differences corrects the clocks, and such a block gets exactly the op in which the profiler saw
/// it. Any other block gets the op that started last at its time, on whichever thread.
///
/// Categories are inferred from the phases (kInferredCategories). Steps and phases number the
/// snapshot's events.
/// Errors: the snapshot has no times, one of the two lacks its part, or they do not overlap in
/// time.
models::Result<Trace> join_traces(const JoinInput& memory, const JoinInput& profile);

}  // namespace profiler
