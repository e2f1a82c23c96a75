#pragma once

#include "models/config/benchmark.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What others have published for the benchmarks of `temposcope bench`: assets/
/// published_benchmarks.json. A test compares it with the rows of tests/validation/published.json.
namespace profiler {

/// One figure on one GPU. Which of the values is known depends on the benchmark: TFLOPS of a GEMM
/// or a layer, the bandwidth of a vector, sequences/s and memory of a model.
struct PublishedBenchmark {
    models::Benchmark benchmark;
    std::string gpu;     // its id
    std::string source;  // "mli"
    std::string setup;   // of a model: the software environment of the measurement
    std::optional<double> tflops;
    std::optional<double> bytes_per_s;
    std::optional<double> sequences_per_s;
    std::optional<int64_t> peak_bytes;
};

/// What the program brings. Throws std::logic_error when that is damaged: a test reads it.
const std::vector<PublishedBenchmark>& published_benchmarks();
/// Errors: a field that is missing or wrong, an unknown model.
models::Result<std::vector<PublishedBenchmark>> parse_published_benchmarks(std::string_view text);

/// The time that the figure stands for; none where it is not known.
std::optional<int64_t> time_ns_of(const PublishedBenchmark& published);

/// The published figure for a benchmark on this GPU, whatever the seed; null: there is none. Layers
/// agree in model, recipe, batch and length; models in precision, head and micro-batches, too, and
/// in the software environment unless `setup` is empty.
const PublishedBenchmark* find_published(const std::vector<PublishedBenchmark>& all,
                                         const models::Benchmark& benchmark, std::string_view gpu,
                                         std::string_view setup = {});

}  // namespace profiler
