#pragma once

#include "profiler/allocator/simulator.h"
#include "tests/profiler/allocator/invariants.h"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>

namespace tests {

/// A simulator with settings that a test chooses. Checks the invariants at the end of each test.
class ConfiguredSimulator : public testing::Test {
protected:
    void use(std::string_view conf, std::optional<int64_t> limit_bytes = {},
             int64_t device_bytes = int64_t{1} << 40) {
        driver_ = profiler::ModelDriver(device_bytes);
        simulator_.emplace(
            profiler::SimulatorOptions{*profiler::parse_alloc_conf(conf), limit_bytes}, driver_);
    }
    profiler::BlockHandle allocate(int64_t size_bytes, int64_t stream = 0) {
        return simulator_->allocate({size_bytes, stream}).value_or(profiler::kNoBlock);
    }
    int64_t address(profiler::BlockHandle block) const { return simulator_->block(block).address; }
    int64_t size(profiler::BlockHandle block) const { return simulator_->block(block).size_bytes; }
    int64_t reserved() const { return simulator_->use().reserved_bytes; }
    void TearDown() override { expect_sound(*simulator_); }

    profiler::ModelDriver driver_;
    std::optional<profiler::Simulator> simulator_;
};

}  // namespace tests
