#include "profiler/planner/data/published_benchmarks.h"

#include "embedded/temposcope_planner_data.h"
#include "models/config/flop.h"
#include "models/config/names.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace profiler {
namespace {

using models::Benchmark;
using models::BenchmarkKind;
using models::Workload;
using nlohmann::json;

template <typename T>
T valid(models::Result<T> result) {
    if (!result) throw std::invalid_argument(result.error().message);
    return std::move(*result);
}

Workload workload_from(const json& row) {
    Workload w;
    w.model = valid(models::find_model(row.at("model").get<std::string>()));
    w = valid(models::with_recipe(std::move(w), row.at("recipe").get<std::string>()));
    row.at("seq_len").get_to(w.seq_len);
    row.at("batch_size").get_to(w.batch_size);
    return w;
}

PublishedBenchmark kernel_from(const json& row, BenchmarkKind kind) {
    PublishedBenchmark result{.benchmark = {.kind = kind, .size = row.at("size").get<int64_t>()}};
    if (kind == BenchmarkKind::kVector) {
        result.bytes_per_s = row.at("gb_per_s").get<double>() * kGiga;
        return result;
    }
    result.benchmark.workload.precision =
        valid(models::parse_precision(row.at("precision").get<std::string>()));
    result.tflops = row.at("tflops").get<double>();
    return result;
}

PublishedBenchmark layer_from(const json& row, bool has_backward) {
    Workload w = workload_from(row);
    w.precision = models::Precision::kPureFp16;
    return {.benchmark = {.kind = BenchmarkKind::kLayer,
                          .has_backward = has_backward,
                          .workload = std::move(w)},
            .tflops = row.at(has_backward ? "training_tflops" : "forward_tflops").get<double>()};
}

PublishedBenchmark model_from(const json& row) {
    Workload w = workload_from(row);
    w.head = valid(models::parse_head(row.at("head").get<std::string>()));
    w.precision = valid(models::parse_precision(row.at("precision").get<std::string>()));
    w.padding = valid(models::parse_name<models::Padding>(
        models::kPaddingNames, row.at("padding").get<std::string>(), "padding"));
    row.at("gradient_accumulation_steps").get_to(w.gradient_accumulation_steps);
    PublishedBenchmark result{
        .benchmark = {.kind = BenchmarkKind::kModel, .workload = std::move(w)},
        .setup = row.at("setup").get<std::string>(),
        .sequences_per_s = row.at("sequences_per_s").get<double>()};
    if (row.contains("peak_gb")) {
        result.peak_bytes = std::llround(row.at("peak_gb").get<double>() * kGiga);
    }
    return result;
}

std::vector<PublishedBenchmark> read(const json& document) {
    std::vector<PublishedBenchmark> all;
    const auto add = [&](PublishedBenchmark one, const json& row) {
        row.at("gpu").get_to(one.gpu);
        row.at("source").get_to(one.source);
        (void)document.at("sources").at(one.source);
        all.push_back(std::move(one));
    };
    for (const json& row : document.at("matmul")) {
        add(kernel_from(row, BenchmarkKind::kMatmul), row);
    }
    for (const json& row : document.at("vector")) {
        add(kernel_from(row, BenchmarkKind::kVector), row);
    }
    for (const json& row : document.at("layer")) {
        for (const bool has_backward : {false, true}) add(layer_from(row, has_backward), row);
    }
    for (const json& row : document.at("model")) add(model_from(row), row);
    return all;
}

bool is_same_layer(const Workload& a, const Workload& b) {
    return a.model.name == b.model.name && a.batch_size == b.batch_size && a.seq_len == b.seq_len &&
           models::layer_recipes_of(a) == models::layer_recipes_of(b);
}

bool is_same(const Benchmark& a, const Benchmark& b) {
    if (a.kind != b.kind) return false;
    const Workload &x = a.workload, &y = b.workload;
    switch (a.kind) {
        case BenchmarkKind::kMatmul:
            return a.size == b.size && x.precision == y.precision;
        case BenchmarkKind::kVector:
            return a.size == b.size;
        case BenchmarkKind::kLayer:
            return a.has_backward == b.has_backward && is_same_layer(x, y);
        case BenchmarkKind::kModel:
            return is_same_layer(x, y) && x.head == y.head && x.precision == y.precision &&
                   x.model.num_layers == y.model.num_layers &&
                   x.gradient_accumulation_steps == y.gradient_accumulation_steps;
    }
    return false;
}

}  // namespace

models::Result<std::vector<PublishedBenchmark>> parse_published_benchmarks(
    std::string_view text) try {
    return read(json::parse(text));
} catch (const std::exception& error) {
    return models::fail("The published benchmarks cannot be read: {}.", error.what());
}

const std::vector<PublishedBenchmark>& published_benchmarks() {
    static const std::vector<PublishedBenchmark> all = [] {
        auto parsed = parse_published_benchmarks(embedded::published_benchmarks());
        if (!parsed) throw std::logic_error(parsed.error().message);
        return std::move(*parsed);
    }();
    return all;
}

std::optional<int64_t> time_ns_of(const PublishedBenchmark& published) {
    const Benchmark& b = published.benchmark;
    const auto over = [](double work, const std::optional<double>& rate) -> std::optional<int64_t> {
        if (!rate) return std::nullopt;
        return std::llround(work / *rate * kNsPerS);
    };
    const std::optional<double> flop_per_s =
        published.tflops ? std::optional(*published.tflops * kTera) : std::nullopt;
    switch (b.kind) {
        case BenchmarkKind::kMatmul:
            return over(2 * std::pow(static_cast<double>(b.size), 3), flop_per_s);
        case BenchmarkKind::kVector:
            return over(8 * static_cast<double>(b.size), published.bytes_per_s);
        case BenchmarkKind::kLayer: {
            const int64_t forward = models::layer_forward_flop(b.workload);
            return over(static_cast<double>((b.has_backward ? 3 : 1) * forward), flop_per_s);
        }
        case BenchmarkKind::kModel:
            return over(static_cast<double>(sequences_per_step(b.workload)),
                        published.sequences_per_s);
    }
    return std::nullopt;
}

const PublishedBenchmark* find_published(const std::vector<PublishedBenchmark>& all,
                                         const Benchmark& benchmark, std::string_view gpu,
                                         std::string_view setup) {
    const auto found = std::ranges::find_if(all, [&](const PublishedBenchmark& one) {
        return one.gpu == gpu && (setup.empty() || one.setup == setup) &&
               is_same(one.benchmark, benchmark);
    });
    return found == all.end() ? nullptr : &*found;
}

}  // namespace profiler
