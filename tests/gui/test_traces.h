#pragma once

#include <cstdint>
#include <filesystem>

namespace tests {

/// Writes original.tscope, tempo.tscope and tempo-packed.tscope: a synthetic step of an encoder
/// with each recipe, and a sweep over batch sizes up to a memory limit. Also writes
/// sweeps/tempo.tscope, a sweep without a step.
void write_test_traces(const std::filesystem::path& folder);

}  // namespace tests
