#pragma once

#include "profiler/trace/file/trace_file.h"

#include <filesystem>
#include <stdexcept>
#include <utility>

/// A small capture: each step has one allocation.
namespace tests {

inline profiler::Trace read(const std::filesystem::path& path) {
    auto trace = profiler::read_trace(path);
    if (!trace) throw std::runtime_error(trace.error().message);
    return std::move(*trace);
}

inline profiler::TraceWriter create(const std::filesystem::path& path) {
    auto writer = profiler::TraceWriter::create(path);
    if (!writer) throw std::runtime_error(writer.error().message);
    return std::move(*writer);
}

inline void add_step(profiler::Trace& trace) {
    if (trace.runs.empty()) trace.runs.append({.workload = trace.strings.intern("{}")});
    const int64_t event = static_cast<int64_t>(trace.allocations.size());
    trace.steps.append({.first_event = event, .last_event = event + 1});
    trace.allocations.append({.device = {},
                              .stream = {},
                              .requested_bytes = 5,
                              .block_bytes = 64,
                              .alloc_event = event,
                              .op = {},
                              .freeing_op = {},
                              .storage = {},
                              .segment = {},
                              .stack = {}});
}

}  // namespace tests
