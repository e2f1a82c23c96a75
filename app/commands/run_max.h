#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/worker/program_run.h"

#include <string>
#include <vector>

namespace app {

class Output;

struct RunMaxRequest {
    ProgramRun run;                   // with the words of the program
    std::vector<std::string> gpus;    // ids, each once
    std::string placeholder;          // "BATCH", or with its braces: the batch size in the words
    std::vector<std::string> values;  // "SEQ=128", "512", "{WIDTH}=64": all combinations are tried
    std::string output;               // CSV or JSON file; empty: none
};

/// `temposcope run --max`: the largest batch of a program on each of the GPUs with each of the
/// values, as a table.
Outcome run_max(const RunMaxRequest& request, Output& output);

}  // namespace app
