#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/options/workload_options.h"

#include <cstdint>
#include <string>
#include <vector>

/// Captures and sweeps in `temposcope-worker`, the program that links libtorch.
namespace app {

enum class MeasureKind : uint8_t { kCapture, kSweep };

struct MeasureOptions {
    MeasureKind kind = MeasureKind::kCapture;
    std::string device = "cpu";  // or "cuda", or "auto"
    int64_t warmup_steps = 1;
    int64_t steps = 3;
    int64_t memory_limit_bytes = -1;
};

/// Runs each job in a fresh worker, which writes its trace, and shows the progress. On the CPU the
/// workers take turns, step by step. Ctrl-C cancels all of them; a second Ctrl-C ends the program
/// at once, and the workers with it.
tl::expected<OutOfMemoryJobs, Failure> measure(const std::vector<Job>& jobs,
                                               const MeasureOptions& options);

}  // namespace app
