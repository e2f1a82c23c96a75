#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <string>
#include <string_view>

/// A trace as a sequence of bytes, to send between two programs of the same build: the columns
/// in schema order, nothing else. Files are SQLite (trace_file.h).
///
///     texts  count, then length and text of each
///     tables rows, then the values of each column, for each table in file order
///
/// Counts and lengths are 64 bits in this machine's byte order.
namespace profiler {

std::string to_bytes(const Trace& trace);

/// Errors: too few or too many bytes, or a text that appears twice.
models::Result<Trace> trace_from_bytes(std::string_view bytes);

}  // namespace profiler
