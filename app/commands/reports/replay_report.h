#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/allocator/replay.h"
#include "profiler/allocator/simulation.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What `temposcope replay` says: how exactly the recording was reproduced, and memory under each
/// setting. docs/commands.md lists the keys.
namespace app {

/// Memory under one setting.
struct ReplayRow {
    profiler::AllocatorSettings settings;
    bool from_recorded_start = false;  // else from an empty allocator
    std::optional<int64_t> memory_limit_bytes;
    profiler::MemoryUse peak;
    profiler::MemoryUse at_peak;
    int64_t num_segments = 0;  // at the peak
    int64_t num_retries = 0;
    int64_t num_allocations = 0;  // of the stream, to say how far out of memory came
    std::optional<profiler::OutOfMemoryPoint> out_of_memory;
    int64_t allocations_done = 0;  // before memory ran out
};

struct ReplayDocument {
    std::string file;
    std::string source;  // "snapshot" or "trace"
    std::string device;  // "cuda:0"; of a trace, its name
    int64_t events = 0;
    std::optional<profiler::ReplayReport> exact;  // none: a trace, which has no addresses to meet
    std::vector<ReplayRow> rows;                  // the last is what was asked for
    std::vector<std::string> notes;
};

nlohmann::json replay_json(const ReplayDocument& document);
void print_replay(Output& output, const ReplayDocument& document);

}  // namespace app
