#pragma once

#include "profiler/analysis/compare/comparison.h"
#include "tests/support/trace_builder.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// Small traces for the tests of comparisons.
namespace tests {

/// One batch of a sweep.
struct Sample {
    int64_t batch_size;
    std::vector<int64_t> step_times_ns;  // empty: out of memory
};

/// A BERT-base run whose steps allocate and save one block.
struct Spec {
    std::string recipe = "original";
    int64_t bytes = 1000;
    std::vector<int64_t> step_times_ns{4'000'000, 2'000'000, 3'000'000};
    std::vector<Sample> sweep;
    int64_t batch_size = 8;
    int64_t micro_batches = 1;
    int64_t memory_limit_bytes = -1;
    PhaseKind peak_phase = PhaseKind::kForward;
    Source source = Source::kMeasuredCpu;
    std::string turns_run;     // empty: not measured in turn
    std::string_view warning;  // the code of a diagnostic
};

std::shared_ptr<const Trace> make_trace(const Spec& spec);

/// Traces "a" and "b".
Comparison compare_two(const Spec& a, const Spec& b);

/// Of its columns.
std::vector<std::string> recipes(const Comparison& comparison);

}  // namespace tests
