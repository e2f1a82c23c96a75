#pragma once

#include "models/config/workload.h"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

/// What `temposcope bench` times: a product of matrices, a pass over a vector, one layer, or whole
/// training steps.
namespace models {

enum class BenchmarkKind : uint8_t { kMatmul, kVector, kLayer, kModel };
inline constexpr std::array<std::string_view, 4> kBenchmarkNames{"matmul", "vector", "layer",
                                                                 "model"};
constexpr std::string_view name_of(BenchmarkKind kind) {
    return kBenchmarkNames[static_cast<std::size_t>(kind)];
}

struct Benchmark {
    BenchmarkKind kind = BenchmarkKind::kMatmul;
    int64_t size = 0;           // matmul: n of [n, n] by [n, n]; vector: elements of y = 1.2 x
    bool has_backward = false;  // layer: forward and backward, else forward alone
    Workload workload;          // layer: of its one layer; model: the step. Else its precision only

    friend bool operator==(const Benchmark&, const Benchmark&) = default;
};

/// The step that a benchmark of a layer runs: one layer, whose input needs no gradient.
Workload layer_workload(Workload workload);

/// "GEMM of 2048 in fp16", "bert-large layer, B=8 S=128, forward": for progress and messages.
std::string describe(const Benchmark& benchmark);

nlohmann::json to_json(const Benchmark& benchmark);
/// Errors: a field that is missing or wrong. Call `validate` on the workload.
Result<Benchmark> benchmark_from_json(const nlohmann::json& json);

/// How long one run took, as the worker reports it.
struct BenchmarkTime {
    int64_t time_ns = 0;                // the median
    int64_t samples = 0;                // that the median is of
    int64_t peak_allocated_bytes = -1;  // of a model's step; -1: not measured
    bool out_of_memory = false;         // then the rest is empty
};
nlohmann::json to_json(const BenchmarkTime& time);
Result<BenchmarkTime> benchmark_time_from_json(const nlohmann::json& json);

}  // namespace models
