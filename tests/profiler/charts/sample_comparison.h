#pragma once

#include "profiler/analysis/compare/comparison.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// A comparison as measured ones look, for drawing.
namespace tests {

inline profiler::ThroughputPoint sample_point(int64_t batch_size, int64_t step_time_ns) {
    profiler::ThroughputPoint point;
    point.batch_size = batch_size;
    point.step_time_ns = step_time_ns;
    point.step_time_min_ns = step_time_ns - step_time_ns / 20;
    point.step_time_max_ns = step_time_ns + step_time_ns / 20;
    point.sequences_per_s =
        static_cast<double>(batch_size) * 1e9 / static_cast<double>(step_time_ns);
    return point;
}

inline profiler::ComparisonColumn sample_column(std::string recipe, int64_t activation_bytes) {
    using profiler::Category;
    profiler::ComparisonColumn column;
    column.recipe = std::move(recipe);
    column.source = profiler::Source::kMeasuredCpu;
    column.device = "test <processor>";
    column.batch_size = 8;
    column.peak_by_category[static_cast<std::size_t>(Category::kParameter)] = 500'000'000;
    column.peak_by_category[static_cast<std::size_t>(Category::kOptimizerState)] = 1'000'000'000;
    column.peak_by_category[static_cast<std::size_t>(Category::kActivation)] = activation_bytes;
    column.peak_allocated_bytes = 1'500'000'000 + activation_bytes;
    column.saved_bytes = activation_bytes;
    column.steps = 3;
    column.step_time_ns = 900'000'000;
    column.sequences_per_s = 8 / 0.9;
    for (const int64_t batch : {4, 8, 16}) {
        column.curve.push_back(sample_point(batch, 100'000'000 * batch + 50'000'000));
    }
    profiler::ThroughputPoint failed;
    failed.batch_size = 17;
    failed.out_of_memory = true;
    column.curve.push_back(failed);
    column.max_batch = profiler::bounds_of(column.curve);
    column.memory_limit_bytes = int64_t{8} << 30;
    return column;
}

inline profiler::Comparison sample_comparison(std::size_t recipes = 2) {
    static const std::vector<std::string> names{
        "original", "tempo",      "tempo-packed", "deepspeed-normalize-invertible",
        "flash",    "checkpoint", "substation",   "gelu=in_place,layer_norm=from_output,masks=bit"};
    profiler::Comparison comparison;
    for (std::size_t i = 0; i < recipes; ++i) {
        comparison.columns.push_back(
            sample_column(names[i], 3'000'000'000 - static_cast<int64_t>(i) * 300'000'000));
    }
    comparison.workload = "bert-large, 3 layers, no head, B=8 S=512, fp32";
    comparison.sentence = "tempo trains the same step in 6.7 % less memory & more.";
    return comparison;
}

/// The same without a sweep.
inline profiler::Comparison sample_without_sweep() {
    profiler::Comparison comparison = sample_comparison();
    for (profiler::ComparisonColumn& column : comparison.columns) {
        column.curve.clear();
        column.max_batch = {};
    }
    return comparison;
}

}  // namespace tests
