#pragma once

#include "models/config/workload.h"
#include "profiler/analysis/ops/movement.h"

#include <cstdint>
#include <string>
#include <vector>

/// The data flow of one layer: ops are nodes, and an edge is what one op writes and another reads.
namespace profiler {

struct MovementNode {
    std::string name;
    std::string module;  // inside the layer
    PhaseKind phase = PhaseKind::kForward;
    OpClass op_class = OpClass::kOther;
    MovementWork work;        // of this call
    Id<Op> call;              // invalid for a logical op
    bool runs_again = false;  // a checkpoint runs its forward a second time, in backward
};

struct MovementEdge {
    std::size_t from = 0;  // of `nodes`, before `to`
    std::size_t to = 0;
    int64_t words = 0;
    std::string tensor;  // empty: it has no name
};

struct MovementFlow {
    int64_t layer = -1;               // -1: any, of the logical ops
    std::vector<MovementNode> nodes;  // in the order in which they run, forward before backward
    std::vector<MovementEdge> edges;
};

/// A middle layer in the last recorded step. An op that works in place takes its tensor over from
/// the op before it. Empty if no op of a layer is counted.
MovementFlow movement_flow(const Trace& trace);
MovementFlow logical_flow(const models::Workload& workload);

}  // namespace profiler
