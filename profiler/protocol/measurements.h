#pragma once

#include "models/config/result.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What the worker measured, as the summary of its result.
namespace profiler {

/// Of an even number of values the upper one of the middle. `values` is not empty.
template <typename Number>
Number median(std::vector<Number> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

struct MeasuredBatch {
    int64_t batch_size = 0;
    bool fits = false;                   // false: it ran out of memory
    std::vector<int64_t> step_times_ns;  // after the warm-up; empty if the batch does not fit

    int64_t median_ns() const;  // 0 without steps
};

/// Of a try_batches request.
struct MeasuredBatches {
    std::string device_name;   // "NVIDIA H200"
    int64_t memory_bytes = 0;  // of a GPU; 0: not known
    std::vector<MeasuredBatch> batches;
};

nlohmann::json to_json(const MeasuredBatches& tried);
/// Errors: a field that is missing or of another type.
models::Result<MeasuredBatches> measured_batches_from_json(const nlohmann::json& json);

/// What a device reaches: the figures that the planner's time model takes from a GPU
/// (docs/dev/planner.md).
struct DeviceSpeed {
    /// One GEMM: the product of two [size, size] matrices.
    struct Gemm {
        std::string type;  // of the matrices: "fp32", "tf32", "fp16", "bf16"
        int64_t size = 0;
        double flop_per_s = 0;
    };

    std::string device_name;         // "NVIDIA H200"
    std::string compute_capability;  // "9.0"; empty: not CUDA
    int64_t memory_bytes = 0;        // as the device tells
    int64_t sm_count = 0;            // multiprocessors, or threads
    int64_t l2_bytes = 0;            // 0: not known

    std::vector<Gemm> gemms;            // of each type, the sizes rising
    double bytes_per_s = 0;             // y = 1.2 x: read and written
    double softmax_bytes_per_s = 0;     // the same of softmax, forward and backward: 5 n e bytes
    double layer_norm_bytes_per_s = 0;  // and of LayerNorm: 5 n e
    double launch_ns = 0;               // from the end of a small kernel to the end of the next
};

nlohmann::json to_json(const DeviceSpeed& speed);
/// Errors: a field that is missing or of another type.
models::Result<DeviceSpeed> device_speed_from_json(const nlohmann::json& json);

}  // namespace profiler
