#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <span>
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
/// Both files count from 1970, but each with its own estimate of the clock. If the profiler
/// recorded memory too, two blocks of one address and size are the same block. The median of their
/// time differences corrects the clocks, and such a block gets exactly the op that the profiler
/// saw. Any other block gets the op that started last at its time, on whichever thread.
///
/// Categories are inferred from the phases (kInferredCategories). Steps and phases number the
/// snapshot's events.
/// Errors: the snapshot has no times, one of the two lacks its part, or they do not overlap in
/// time.
models::Result<Trace> join_traces(const JoinInput& memory, const JoinInput& profile);

/// One trace from the traces of all ranks of one run: the PyTorch profiler writes a trace for each
/// rank.
///
///     rank 0   | step 0 |   step 1   |     devices, streams, threads, ops, kernels and blocks of
///     rank 1     | step 0 |   step 1   |   all ranks, on the clock of the lowest rank
///
/// The lowest rank comes first, and analyses are of its device. Steps and phases are its too; ops
/// and blocks of the others keep their own times. A device and a thread are called after their
/// rank: "cuda:1 of rank 1". Modules of one path are one module.
/// Errors: two traces are of one rank, or one is not of the profiler.
models::Result<Trace> join_ranks(std::span<const JoinInput> inputs);

}  // namespace profiler
