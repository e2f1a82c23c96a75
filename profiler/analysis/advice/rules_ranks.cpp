#include "profiler/analysis/advice/rule_blocks.h"
#include "profiler/analysis/advice/rules.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <array>

namespace profiler {
namespace {

/// DDP adds up gradients in buckets, P bytes of them. Without gradient_as_bucket_view each gradient
/// has memory of its own beside the bucket: 2P.
std::vector<Finding> find_ddp_buckets(const Evidence& evidence) {
    const auto is_bucket = [&](Id<Allocation> id) {  // the name is the recorder's
        return name_of_block(evidence, id).starts_with("DDP bucket ");
    };
    Blocks buckets = live_where(evidence, is_bucket);
    const Blocks gradients = live_where(evidence, [&](Id<Allocation> id) {
        return evidence.category_of(id) == Category::kGradient && !is_bucket(id);
    });
    Finding finding = finding_of(evidence, std::move(buckets), {});
    finding.size_bytes = std::min(finding.size_bytes, bytes_of(evidence, gradients));
    if (finding.size_bytes == 0) return {};
    finding.sentence = fmt::format(
        "Gradients live twice, as tensors and in DDP's {} buckets, which takes {}: "
        "gradient_as_bucket_view is off",
        finding.evidence.size(), format_bytes(finding.size_bytes));
    return {std::move(finding)};
}

// ---- FSDP2 ----------------------------

bool uses_fsdp(const Evidence& evidence) {
    for (const Id<Op> op : evidence.trace.ops.ids()) {
        if (evidence.name_of_op(op).starts_with("fsdp::")) return true;
    }
    return false;
}

bool lies_in_phase(const Phase& phase, int64_t event) {
    return phase.first_event <= event && event < phase.last_event;
}

/// FSDP2 resizes the storage of a gathered parameter in a hook, where no op runs, and frees it when
/// its module's forward is over. It keeps some for backward on purpose: by default those of the
/// root, with reshard_after_forward=False those of all modules.
std::vector<Finding> find_gathered_parameters(const Evidence& evidence) {
    if (evidence.phase_kind() != PhaseKind::kBackward || !uses_fsdp(evidence)) return {};
    std::vector<Phase> forwards;
    for (const Phase phase : evidence.trace.phases.rows()) {
        if (phase.kind == PhaseKind::kForward && phase.step == evidence.step) {
            forwards.push_back(phase);
        }
    }
    Blocks blocks = live_where(evidence, [&](Id<Allocation> id) {
        const int64_t born = evidence.trace.allocations.get<&Allocation::alloc_event>(id);
        return !op_that_made(evidence, id).valid() &&
               std::ranges::any_of(forwards,
                                   [&](const Phase& phase) { return lies_in_phase(phase, born); });
    });
    std::string sentence = fmt::format(
        "Parameters that FSDP gathers in forward stay whole through backward, {}: the "
        "root's are not resharded after forward",
        format_bytes(bytes_of(evidence, blocks)));
    return {finding_of(evidence, std::move(blocks), std::move(sentence))};
}

/// The backwards of the moment's step that are over and reduced no gradients.
std::vector<Phase> backwards_without_reduction(const Evidence& evidence) {
    const Trace& trace = evidence.trace;
    std::vector<bool> reduces(trace.phases.size());
    bool any_reduces = false;
    for (const Collective collective : trace.collectives.rows()) {
        if (collective.kind != CollectiveKind::kReduceScatter || !collective.op.valid()) continue;
        const Id<Phase> phase = trace.ops.get<&Op::phase>(collective.op);
        if (!phase.valid()) continue;
        reduces[phase.index()] = true;
        any_reduces = true;
    }
    std::vector<Phase> found;
    if (!any_reduces) return found;  // not FSDP, or ZeRO: gradients are whole anyway
    for (const Id<Phase> id : trace.phases.ids()) {
        const Phase phase = trace.phases[id];
        const bool is_over = phase.last_event <= evidence.event;
        if (phase.kind == PhaseKind::kBackward && phase.step == evidence.step && is_over &&
            !reduces[id.index()]) {
            found.push_back(phase);
        }
    }
    return found;
}

/// Between micro-batches FSDP keeps a gradient as its share, P/ranks. Where a backward does not
/// reduce, the whole gradient waits for the next one: P.
std::vector<Finding> find_unsharded_gradients(const Evidence& evidence) {
    const std::vector<Phase> backwards = backwards_without_reduction(evidence);
    if (backwards.empty() || !evidence.step.valid()) return {};
    Blocks blocks = live_where(evidence, [&](Id<Allocation> id) {
        const int64_t born = evidence.trace.allocations.get<&Allocation::alloc_event>(id);
        return std::ranges::any_of(backwards,
                                   [&](const Phase& phase) { return lies_in_phase(phase, born); });
    });
    std::string sentence = fmt::format(
        "Gradients of {} wait in full size for the next backward: {} of the step {} without "
        "reduce-scatter, as under no_sync",
        format_bytes(bytes_of(evidence, blocks)), backwards.size(),
        backwards.size() == 1 ? "runs" : "run");
    return {finding_of(evidence, std::move(blocks), std::move(sentence))};
}

constexpr std::array kRankRules{
    Rule{"ddp_buckets", find_ddp_buckets, Asked::kWhenShort},
    Rule{"fsdp_root_gathered", find_gathered_parameters, Asked::kWhenShort},
    Rule{"no_sync_gradients", find_unsharded_gradients},
};

}  // namespace

std::span<const Rule> rules_of_ranks() { return kRankRules; }

}  // namespace profiler
