#pragma once

#include "models/config/result.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// What the worker measured at the batches of a try_batches request.
namespace profiler {

struct MeasuredBatch {
    int64_t batch_size = 0;
    bool fits = false;                   // false: it ran out of memory
    std::vector<int64_t> step_times_ns;  // after the warm-up; empty if the batch does not fit

    int64_t median_ns() const;  // 0 without steps
};

struct MeasuredBatches {
    std::string device_name;   // "NVIDIA H200"
    int64_t memory_bytes = 0;  // of a GPU; 0: not known
    std::vector<MeasuredBatch> batches;
};

nlohmann::json to_json(const MeasuredBatches& tried);
/// Errors: a field that is missing or of another type.
models::Result<MeasuredBatches> measured_batches_from_json(const nlohmann::json& json);

}  // namespace profiler
