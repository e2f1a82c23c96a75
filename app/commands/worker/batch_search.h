#pragma once

#include "app/commands/worker/program_run.h"
#include "profiler/analysis/peak.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

/// The largest batch with which a program trains on a virtual GPU, found by running it.
namespace app {

/// What a run with one batch came to.
struct BatchTry {
    int64_t batch_size = 0;
    bool fits = false;
    int64_t peak_allocated_bytes = -1;  // -1: not known, the program failed before its first step
    int64_t peak_reserved_bytes = -1;
    std::string place;  // of the peak: "backward, encoder.layer.3.attention.self"
    profiler::CategoryBytes by_category{};
};

struct LargestBatch {
    std::string gpu;
    std::optional<BatchTry> largest;      // none: not even a batch of 1 fits
    std::optional<BatchTry> first_above;  // that does not fit; none: the search ended before
};

inline constexpr int64_t kMostBatch = 1 << 16;

/// Runs 1, 2, 4, ... to kMostBatch, then bisects. In the words of `run`, each `{placeholder}` is
/// the batch size. A batch fits if two steps come to their end, so that the second one finds the
/// optimizer's state.
/// Errors: no word has the placeholder; the program ends for another reason than memory.
models::Result<LargestBatch> find_largest_batch(const ProgramRun& run,
                                                const std::string& placeholder,
                                                const std::function<void(const BatchTry&)>& tried);

}  // namespace app
