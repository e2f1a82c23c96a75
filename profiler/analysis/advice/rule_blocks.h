#pragma once

#include "profiler/analysis/advice/evidence.h"
#include "profiler/analysis/advice/explanation.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What several rules ask of blocks and of the ops that made them, and how their sentences name
/// them.
namespace profiler {

using Blocks = std::vector<Id<Allocation>>;

/// The blocks that live at the moment and match, the largest first.
template <typename Predicate>
Blocks live_where(const Evidence& evidence, const Predicate& matches) {
    Blocks found;
    std::ranges::copy_if(evidence.live, std::back_inserter(found), matches);
    return found;
}

struct NamedBlocks {
    std::string name;
    Blocks blocks;
    int64_t size_bytes = 0;
};
/// Blocks that `name_of` gives the same name, the largest group first.
std::vector<NamedBlocks> group_blocks(
    const Evidence& evidence, const Blocks& blocks,
    const std::function<std::string(Id<Allocation>)>& name_of_block);

/// A finding that weighs what its blocks weigh.
Finding finding_of(const Evidence& evidence, Blocks blocks, std::string sentence);

// ---- ops ----------------------------

/// The nearest call around `op`, itself included, whose name matches; none: there is none.
template <typename Predicate>
Id<Op> find_call(const Evidence& evidence, Id<Op> op, const Predicate& matches) {
    while (op.valid() && !matches(evidence.name_of_op(op))) {
        const Id<Op> around = evidence.trace.ops.get<&Op::parent>(op);
        op = around < op ? around : Id<Op>();  // damaged files may have cycles
    }
    return op;
}

/// Calls `visit(Id<Op>)` for each call in `around`, in their order.
template <typename Visit>
void for_each_call_in(const Trace& trace, Id<Op> around, const Visit& visit) {
    for (std::size_t row = around.index() + 1; row < trace.ops.size(); ++row) {
        if (!is_within(trace, Id<Op>(row), around)) return;
        visit(Id<Op>(row));
    }
}

/// The op that allocated a block.
Id<Op> op_that_made(const Evidence& evidence, Id<Allocation> block);
/// Whether `matches` the name of a call around the op that made the block, or, in backward, around
/// its forward op.
bool is_made_in(const Evidence& evidence, Id<Allocation> block,
                bool (*matches)(std::string_view op_name));

/// Whether it computes a cross-entropy, or a part of one.
bool is_loss_call(std::string_view op_name);
/// Whether it is attention in torch's math backend, which keeps the scores of all heads.
bool is_math_attention(std::string_view op_name);
/// Whether it works on all tensors of a list at once, as an optimizer does on all parameters.
bool is_foreach_call(std::string_view op_name);

/// None: outside of phases and steps.
std::optional<PhaseKind> phase_kind_of(const Trace& trace, Id<Op> op);
Id<Step> step_of_op(const Trace& trace, Id<Op> op);

// ---- blocks ----------------------------

/// What a cast or a clone filled the block with; none: neither made it.
Id<Storage> copied_from(const Evidence& evidence, Id<Allocation> block);

DType dtype_of_block(const Evidence& evidence, Id<Allocation> block);
/// "query"; empty: nobody named it.
std::string_view name_of_block(const Evidence& evidence, Id<Allocation> block);
/// "logits" of "logits = model(tokens)"; empty: the line sets no single variable.
std::string_view variable_set_by(std::string_view code);
/// The variable that keeps the block: what the recorder found, else what its line sets. Empty: no
/// variable is known.
std::string_view variable_of(const Evidence& evidence, Id<Allocation> block);
/// The frames of a call stack, the innermost first.
std::vector<Id<Frame>> frames_of(const Trace& trace, Id<Stack> stack);
/// Whether a call stack runs through torch.load.
bool is_in_torch_load(const Trace& trace, Id<Stack> stack);
/// "preds" of a keeper's text, "list `preds[0]`, train.py:19". Empty: it names no container.
std::string_view container_in(std::string_view keeper);
/// The list or dictionary that keeps the block. Empty: none is known.
std::string_view container_of(const Evidence& evidence, Id<Allocation> block);
/// "encoder.layer.*.dropout"; empty: no module made it.
std::string modules_of_block(const Evidence& evidence, Id<Allocation> block);
/// Where it was made, as precisely as the trace knows: "at train.py:13", "in encoder.layer.*.mlp",
/// "by aten::addmm", "outside of ops".
std::string place_of_block(const Evidence& evidence, Id<Allocation> block);

}  // namespace profiler
