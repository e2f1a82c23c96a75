#include "profiler/trace/recomputation.h"

namespace profiler {

bool is_autograd_node(std::string_view op_name) {
    return op_name.starts_with("autograd::") || op_name.starts_with("torch::autograd::");
}

bool is_checkpoint_call(std::string_view op_name) {
    return op_name.ends_with("::checkpoint") || op_name.find("CheckpointFunction") != op_name.npos;
}

bool runs_again(const Trace& trace, Id<Op> op) {
    const Op call = trace.ops[op];
    if (!call.forward.valid() || is_autograd_node(trace.text(call.name))) return false;
    for (Id<Op> inner = op, around = call.parent; around.valid() && around < inner;) {
        const Op outer = trace.ops[around];
        const bool is_in_backward = outer.phase.valid() && trace.phases.get<&Phase::kind>(
                                                               outer.phase) == PhaseKind::kBackward;
        if (!is_in_backward || outer.forward != call.forward) return false;
        if (is_checkpoint_call(trace.text(outer.name))) return true;
        inner = around;  // calls stand after the call that makes them; damaged files have cycles
        around = outer.parent;
    }
    return false;
}

bool is_recomputed(const Trace& trace, Id<Op> op) {
    const Op call = trace.ops[op];
    const bool is_in_backward =
        call.phase.valid() && trace.phases.get<&Phase::kind>(call.phase) == PhaseKind::kBackward;
    if (!is_in_backward || !call.module_path.valid()) return false;
    Id<Op> outermost = op;
    for (Id<Op> around = call.parent; around.valid() && around < outermost;) {
        if (is_checkpoint_call(trace.text(trace.ops.get<&Op::name>(around)))) {
            return runs_again(trace, op);
        }
        outermost =
            around;  // calls stand after the call that makes them; damaged files have cycles
        around = trace.ops.get<&Op::parent>(around);
    }
    return call.module_path != trace.ops.get<&Op::module_path>(outermost);
}

}  // namespace profiler
