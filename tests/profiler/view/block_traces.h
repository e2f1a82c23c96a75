#pragma once

#include "profiler/view/memory/blocks_view.h"
#include "tests/support/loaded_step.h"

namespace tests {

struct LoadedBlocks : LoadedStep {
    using LoadedStep::LoadedStep;

    /// The whole trace.
    profiler::BlocksRequest request(int width_px, int height_px) const {
        const auto start_ns = static_cast<double>(index.curve().start_ns());
        const auto end_ns = static_cast<double>(index.curve().end_ns());
        return {.time = {.steps = {&index},
                         .start_ns = start_ns,
                         .end_ns = end_ns,
                         .width_px = width_px},
                .height_px = height_px,
                .all = {start_ns, end_ns},
                .minimap_px = 100};
    }
};

}  // namespace tests
