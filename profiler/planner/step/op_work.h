#pragma once

#include "profiler/planner/step/kernel_model.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <string_view>
#include <vector>

/// From ops of a trace to the work of their kernels. With kernel_model.h this is the one place
/// where an op gets a cost.
namespace profiler {

struct OpWork {
    Id<Op> op;
    PhaseKind phase = PhaseKind::kForward;
    OpClass op_class = OpClass::kOther;
    KernelWork work;
};

/// The kernel that an op of this name runs.
KernelKind kernel_of(std::string_view op_name, OpClass op_class);

struct StepOps {
    std::vector<OpWork> ops;  // in the order in which they began; several of one op run in turn
    bool has_shapes = true;   // false: some product's shape is not in the trace
};

/// What a trace's ops do not say themselves.
struct OpWorkDefaults {
    MatmulType type;     // how fp32 products are computed
    int64_t word_bytes;  // of ops whose tensors the trace does not hold
    models::Implementation implementation = models::Implementation::kOurs;  // of Tempo's ops
};
OpWorkDefaults defaults_of(const models::Workload& workload);

/// What the ops of a step's forward, loss and backward have to do. An op inside another one that
/// is counted is how that one works, and not counted again.
StepOps ops_of_step(const Trace& trace, Id<Step> step, const OpWorkDefaults& defaults);

int64_t bytes_of(DType dtype);

}  // namespace profiler
