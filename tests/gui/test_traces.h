#pragma once

#include "app/workspace/document.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace tests {

/// Writes original.tscope, tempo.tscope and tempo-packed.tscope: a synthetic step of an encoder
/// with each recipe, and a sweep over batch sizes up to a memory limit. Also writes
/// sweeps/tempo.tscope, a sweep without a step, and programs/train.tscope, a step of a program with
/// call stacks, and failed/oom.tscope, a program that runs out of memory.
void write_test_traces(const std::filesystem::path& folder);

/// A small step of `recipe` under another name, which need not be a recipe; or its sweep.
struct NamedStep {
    std::string name;
    std::string recipe = "tempo";
    int64_t batch_size = 8;
    bool with_sweep = false;
};
void write_named_step(const std::filesystem::path& file, const NamedStep& step);

/// A step of BERT-base with the recipe `original`, predicted for a GPU by the worker. Null: that
/// failed.
app::DocumentPtr predicted_step(const char* gpu = "a100-80gb", int64_t num_layers = 1);

}  // namespace tests
