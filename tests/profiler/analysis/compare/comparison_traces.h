#pragma once

#include "tests/support/trace_builder.h"

#include <cstdint>
#include <memory>
#include <string>
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
    std::string turns_run;  // empty: not measured in turn
};

std::shared_ptr<const Trace> make_trace(const Spec& spec);

}  // namespace tests
