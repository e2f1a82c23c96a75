#pragma once

#include "app/workspace/workspace.h"

#include <cstddef>

namespace app {

/// The tooltip over the memory: one instant of A, and of B if `num_traces` is two, with a row per
/// category and a column per trace.
void draw_memory_readout(const Workspace& workspace, std::size_t num_traces, double time_ns);

}  // namespace app
