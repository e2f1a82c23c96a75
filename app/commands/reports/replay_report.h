#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/allocator/replay.h"
#include "profiler/allocator/simulation.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The report of `temposcope replay`: how exactly it reproduced the recording, and the memory that
/// each setting needs. docs/commands.md lists the JSON keys.
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
    int64_t num_allocations = 0;  // of the whole stream, to compare allocations_done with
    std::optional<profiler::OutOfMemoryPoint> out_of_memory;
    int64_t allocations_done = 0;  // before memory ran out
};

struct ReplayDocument {
    std::string file;
    std::string source;  // "snapshot" or "trace"
    std::string device;  // "cuda:0"
    int64_t events = 0;
    std::optional<profiler::ReplayReport> exact;  // none for a trace, which has no addresses
    std::vector<ReplayRow> rows;                  // the last is what the command line asks for
    std::vector<std::string> notes;
};

nlohmann::json replay_json(const ReplayDocument& document);
void print_replay(Output& output, const ReplayDocument& document);

}  // namespace app
