#pragma once

#include "profiler/layouts/layout_plan.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <vector>

/// A plan as a program: which op runs in which orders, and what is copied before and after it. The
/// worker runs it to measure the layer as a whole.
namespace profiler {

struct LayoutRunCopy {
    std::string tensor, from, to;

    friend bool operator==(const LayoutRunCopy&, const LayoutRunCopy&) = default;
};

struct LayoutRunStep {
    std::size_t op = 0;                 // of encoder_layer()
    std::vector<std::string> orders;    // of what it reads, then of what it writes
    std::vector<LayoutRunCopy> before;  // of tensors that it reads
    std::vector<LayoutRunCopy> after;   // of tensors that it wrote

    friend bool operator==(const LayoutRunStep&, const LayoutRunStep&) = default;
};
using LayoutRun = std::vector<LayoutRunStep>;

LayoutRun run_of(const LayoutGraph& graph, const LayoutPlan& plan);

nlohmann::json to_json(const LayoutRun& run);
/// Errors: not a run of the encoder layer: an unknown op or tensor, orders of other dimensions.
models::Result<LayoutRun> layout_run_from_json(const nlohmann::json& json);

}  // namespace profiler
