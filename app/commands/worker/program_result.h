#pragma once

#include "app/commands/worker/program_run.h"

#include <cstdint>
#include <filesystem>

namespace app {

/// How a program ended, for its launcher.
struct ProgramEnd {
    std::filesystem::file_time_type start;  // of the program
    int exit_code = 1;                      // as a shell would give it
    int64_t resident_bytes = 0;             // the most memory that one of its processes held
    bool was_asked_to_end = false;          // by a signal, such as Ctrl-C
};

/// What became of the recording, from the files that are there and from what the processes told:
/// `status` holds a JSON object a line.
ProgramResult describe_program(const ProgramRun& run, const std::filesystem::path& status,
                               const ProgramEnd& end);

}  // namespace app
