#pragma once

#include "models/config/result.h"
#include "profiler/formats/join/joined_trace.h"
#include "profiler/trace/trace.h"

#include <span>

namespace profiler {

/// One trace from those that the ranks of one run wrote: the PyTorch profiler writes one for each.
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
