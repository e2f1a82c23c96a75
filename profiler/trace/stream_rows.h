#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <unordered_map>

namespace profiler {

/// The streams of one device in a trace: one row per CUDA handle, added when it first appears.
class StreamRows {
public:
    StreamRows(Trace& trace, Id<Device> device) : trace_(&trace), device_(device) {}

    Id<Stream> row_of(int64_t handle) {
        const auto [found, is_new] = rows_.try_emplace(handle);
        if (is_new) found->second = trace_->streams.append({.device = device_, .handle = handle});
        return found->second;
    }
    Id<Device> device() const { return device_; }

private:
    Trace* trace_;
    Id<Device> device_;
    std::unordered_map<int64_t, Id<Stream>> rows_;
};

}  // namespace profiler
