#pragma once

#include "models/config/workload.h"
#include "profiler/planner/step/kernel_model.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <string_view>
#include <vector>

/// From the ops of a trace to the work of their kernels. Only this file and kernel_model.h decide
/// what an op costs.
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
    std::vector<OpWork> ops;  // by start; the kernels of one op follow each other
    bool has_shapes = true;   // false: the shape of some GEMM is not in the trace
};

/// What the ops of a trace do not say.
struct OpWorkDefaults {
    MatmulType type;     // of GEMMs on fp32 tensors
    int64_t word_bytes;  // of ops whose tensors are not in the trace
    models::Implementation implementation = models::Implementation::kOurs;  // of Tempo's ops
    bool is_program = false;  // of the user's: nothing tells how its parameters are updated
};
OpWorkDefaults defaults_of(const models::Workload& workload);
/// Errors: the trace says neither which workload nor which program it ran, or it is in fp64.
models::Result<OpWorkDefaults> defaults_of(const Trace& trace);

/// The work of the ops in forward, loss and backward of a step. An op inside another counted op is
/// not counted again.
///
/// Of a program also the parameter update, and the ops that launch kernels and are not counted:
/// each thread moves kBytesOfThread.
StepOps ops_of_step(const Trace& trace, Id<Step> step, const OpWorkDefaults& defaults);

/// All counted ops of a step: also those inside others, and those of the parameter update.
std::vector<OpWork> counted_ops_of_step(const Trace& trace, Id<Step> step,
                                        const OpWorkDefaults& defaults);

/// What a thread of an element-wise kernel moves: a vector in and a vector out.
inline constexpr double kBytesOfThread = 32;
/// Of a launch; at least 1.
double threads_of(const Kernel& kernel);

}  // namespace profiler
