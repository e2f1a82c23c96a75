#pragma once

#include "models/config/result.h"
#include "profiler/formats/parts/byte_window.h"
#include "profiler/formats/snapshot/plain_values.h"

/// Python pickles as data, protocols 2 to 5.
///
/// A pickle is a program for a stack machine that may call any function. This reader knows only
/// the instructions that make plain values and refuses every other by name, so nothing in a file
/// is ever executed. It does not recurse, limits the nesting, and stops at most_memory_bytes.
namespace profiler {

/// Folds a pickle into the value that it stands for. Numbers of more than 63 bits become reals.
/// Errors: truncated, an instruction that builds objects, nested too deep, not a pickle, what the
/// fold refuses: with the offset, as "byte 17: ...". bytes.stopped() has errors of the disk.
models::Result<PlainValue> fold_pickle(ByteWindow& bytes, ValueFold& fold);

}  // namespace profiler
