#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/allocator/replay.h"
#include "profiler/allocator/settings_run.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The report of `temposcope replay`: how exactly it reproduced the recording, and the memory that
/// each setting needs. docs/commands.md lists the JSON keys.
namespace app {

struct ReplayDocument {
    std::string file;
    std::string source;  // "snapshot" or "trace"
    std::string device;  // "cuda:0"
    int64_t events = 0;
    std::optional<profiler::ReplayReport> exact;  // none for a trace, which has no addresses
    std::vector<profiler::SettingsRun> rows;      // the last is what the command line asks for
    std::vector<std::string> notes;
};

nlohmann::json replay_json(const ReplayDocument& document);
void print_replay(Output& output, const ReplayDocument& document);

}  // namespace app
