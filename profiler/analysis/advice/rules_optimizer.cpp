#include "profiler/analysis/advice/rule_blocks.h"
#include "profiler/analysis/advice/rules.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <array>
#include <set>

namespace profiler {
namespace {

/// A new state is zeros: it stays.
bool is_birth_of_state(std::string_view op_name) { return op_name.starts_with("aten::zeros"); }

/// AdamW's foreach step makes √v of all parameters at once, 4 bytes a parameter. A loop over
/// parameters has it of one at a time.
std::vector<Finding> find_optimizer_peak(const Evidence& evidence) {
    if (evidence.phase_kind() != PhaseKind::kOptimizer) return {};
    Blocks blocks = live_where(evidence, [&](Id<Allocation> id) {
        const Category category = evidence.category_of(id);
        if (category != Category::kTemporary && category != Category::kUnknown) return false;
        const Id<Op> maker = op_that_made(evidence, id);
        return phase_kind_of(evidence.trace, maker) == PhaseKind::kOptimizer &&
               !find_call(evidence, maker, is_birth_of_state).valid();
    });
    if (blocks.empty()) return {};
    const Id<Op> each =
        find_call(evidence, op_that_made(evidence, blocks.front()), is_foreach_call);
    std::string sentence =
        fmt::format("The peak lies in the optimizer's step, whose temporaries take {}{}",
                    format_bytes(bytes_of(evidence, blocks)),
                    each.valid() ? fmt::format(": {} makes one for each parameter, all at once",
                                               evidence.name_of_op(each))
                                 : "");
    return {finding_of(evidence, std::move(blocks), std::move(sentence))};
}

// ---- gradients that nobody uses ----------------------------

constexpr std::string_view kGradientSuffix = ".grad";

/// "0.weight." of "0.weight.exp_avg", for all state that lives.
std::set<std::string_view> names_with_state(const Evidence& evidence) {
    std::set<std::string_view> names;
    for (const Id<Allocation> id : evidence.live) {
        if (evidence.category_of(id) != Category::kOptimizerState) continue;
        const std::string_view name = name_of_block(evidence, id);
        for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
            names.insert(name.substr(0, dot));
        }
    }
    return names;
}

/// By storage: whether an op of an optimizer reads or writes it.
std::vector<bool> used_by_optimizers(const Evidence& evidence) {
    const Trace& trace = evidence.trace;
    std::vector<bool> is_used(trace.storages.size(), false);
    for (const OpTensor edge : trace.op_tensors.rows()) {
        if (phase_kind_of(trace, edge.op) != PhaseKind::kOptimizer || !edge.tensor.valid()) {
            continue;
        }
        const Id<Storage> storage = trace.tensors.get<&Tensor::storage>(edge.tensor);
        if (storage.valid()) is_used[storage.index()] = true;
    }
    return is_used;
}

/// A parameter that has a gradient that no op of an optimizer touches and, after a whole step,
/// still no state, while others have some: no optimizer was given it, and it was not frozen.
/// Neither tells alone: some keep the state of a group at one parameter, as Muon's does, and the
/// kernels of other libraries are no ops.
std::vector<Finding> find_unused_gradients(const Evidence& evidence) {
    if (!evidence.step.valid() || evidence.step.index() == 0) return {};
    const std::set<std::string_view> with_state = names_with_state(evidence);
    if (with_state.empty()) return {};
    const std::vector<bool> is_used = used_by_optimizers(evidence);
    Blocks blocks = live_where(evidence, [&](Id<Allocation> id) {
        const std::string_view name = name_of_block(evidence, id);
        const Id<Storage> storage = evidence.trace.allocations.get<&Allocation::storage>(id);
        if (storage.valid() && is_used[storage.index()]) return false;
        return evidence.category_of(id) == Category::kGradient && name.ends_with(kGradientSuffix) &&
               !with_state.contains(name.substr(0, name.size() - kGradientSuffix.size()));
    });
    if (blocks.empty()) return {};
    const std::string_view largest = name_of_block(evidence, blocks.front());
    std::string sentence = fmt::format(
        "Gradients of {} belong to {} parameters that no optimizer updates, such as {}: they are "
        "not "
        "frozen",
        format_bytes(bytes_of(evidence, blocks)), blocks.size(),
        largest.substr(0, largest.size() - kGradientSuffix.size()));
    return {finding_of(evidence, std::move(blocks), std::move(sentence))};
}

constexpr std::array kOptimizerRules{
    Rule{"optimizer_peak", find_optimizer_peak, Asked::kWhenShort},
    Rule{"unused_gradients", find_unused_gradients},
};

}  // namespace

std::span<const Rule> rules_of_optimizer() { return kOptimizerRules; }

}  // namespace profiler
