#include "models/config/benchmark.h"

#include "models/config/names.h"

#include <nlohmann/json.hpp>

namespace models {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BenchmarkTime, time_ns, samples, peak_allocated_bytes,
                                   out_of_memory)

Workload layer_workload(Workload workload) {
    workload.head = Head::kLayers;
    workload.model.num_layers = 1;
    workload.gradient_accumulation_steps = 1;
    workload.input_requires_grad = false;
    return workload;
}

std::string describe(const Benchmark& b) {
    const Workload& w = b.workload;
    switch (b.kind) {
        case BenchmarkKind::kMatmul:
            return fmt::format("GEMM of {} in {}", b.size, name_of(w.precision));
        case BenchmarkKind::kVector:
            return fmt::format("{} elements times 1.2", b.size);
        case BenchmarkKind::kLayer:
            return fmt::format("{} layer, B={} S={}, {}, {}", w.model.name, w.batch_size, w.seq_len,
                               w.recipe_name, b.has_backward ? "forward and backward" : "forward");
        case BenchmarkKind::kModel:
            return fmt::format("{}, B={} S={}, {}", w.model.name, w.batch_size, w.seq_len,
                               w.recipe_name);
    }
    return {};
}

nlohmann::json to_json(const Benchmark& b) {
    return {{"kind", name_of(b.kind)},
            {"size", b.size},
            {"has_backward", b.has_backward},
            {"workload", to_json(b.workload)}};
}

Result<Benchmark> benchmark_from_json(const nlohmann::json& json) try {
    Benchmark b;
    const auto kind = find_name<BenchmarkKind>(kBenchmarkNames, json.at("kind").get<std::string>());
    if (!kind) return fail("There is no benchmark {}.", json.at("kind").get<std::string>());
    b.kind = *kind;
    json.at("size").get_to(b.size);
    json.at("has_backward").get_to(b.has_backward);
    auto workload = workload_from_json(json.at("workload"));
    if (!workload) return tl::unexpected(workload.error());
    b.workload = std::move(*workload);
    return b;
} catch (const nlohmann::json::exception& error) {
    return fail("A benchmark cannot be read ({}): it was written by another version.",
                error.what());
}

nlohmann::json to_json(const BenchmarkTime& time) { return nlohmann::json(time); }

Result<BenchmarkTime> benchmark_time_from_json(const nlohmann::json& json) try {
    return json.get<BenchmarkTime>();
} catch (const nlohmann::json::exception& error) {
    return fail("The time of a benchmark cannot be read ({}): the worker is of another build.",
                error.what());
}

}  // namespace models
