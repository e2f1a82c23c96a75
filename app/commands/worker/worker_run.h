#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/options/workload_options.h"

#include <cstdint>
#include <string>

/// Jobs in `temposcope-worker`: all that needs libtorch.
namespace app {

enum class JobKind : uint8_t { kCapture, kSweep };

struct JobOptions {
    JobKind kind = JobKind::kCapture;
    std::string device = "cpu";  // or "cuda"
    int64_t warmup_steps = 1;
    int64_t steps = 3;
    int64_t memory_limit_bytes = -1;
    std::string label;  // in front of the progress: "tempo (2 of 3)"
};

/// Runs one job in a fresh worker, which writes the trace, and shows its progress. Ctrl-C cancels
/// the job, a second one ends the program at once; the worker ends with it.
tl::expected<void, Failure> run_in_worker(const Job& job, const JobOptions& options);

}  // namespace app
