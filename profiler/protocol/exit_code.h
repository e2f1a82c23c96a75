#pragma once

#include <cstdint>

namespace profiler {

/// How a command ends; a worker's error says which.
enum class ExitCode : uint8_t {
    kOk = 0,
    kFailed = 1,         // one sentence on standard error names the remedy
    kUsage = 2,          // the command line asks for something that does not exist
    kOutOfMemory = 3,    // where the command was not looking for it
    kConditionHeld = 4,  // of a --fail-if... option
};

}  // namespace profiler
