#pragma once

#include <cstdint>
#include <filesystem>

namespace tests {

/// Writes original.tscope, tempo.tscope and tempo-packed.tscope: synthetic steps of an encoder
/// under the recipes, each with a sweep over batch sizes up to a memory limit; and
/// sweeps/tempo.tscope, a sweep without a step.
void write_test_traces(const std::filesystem::path& folder);

}  // namespace tests
