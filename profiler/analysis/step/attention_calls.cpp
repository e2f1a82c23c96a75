#include "profiler/analysis/step/attention_calls.h"

#include "profiler/analysis/step/origin.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

constexpr std::string_view kAttention = "aten::scaled_dot_product_attention";
constexpr std::string_view kBackend = "aten::_scaled_dot_product_";

/// "efficient" of "aten::_scaled_dot_product_efficient_attention"; "math" of
/// "aten::_scaled_dot_product_attention_math"; empty of other calls.
std::string_view backend_of(std::string_view op) {
    if (!op.starts_with(kBackend)) return {};
    std::string_view name = op.substr(kBackend.size());
    if (name.starts_with("attention_math")) return "math";
    return name.substr(0, name.find("_attention"));
}

/// What is known of a call once those inside of it are known.
struct AttentionCall {
    std::string_view backend;
    Id<Stack> stack;
};

using AttentionCalls = std::map<Id<Op>, AttentionCall>;

Id<Op> attention_around(const Trace& trace, const AttentionCalls& calls, Id<Op> op) {
    for (; op.valid(); op = trace.ops.get<&Op::parent>(op)) {
        if (calls.contains(op)) return op;
        const Id<Op> parent = trace.ops.get<&Op::parent>(op);
        if (!(parent < op)) return {};  // damaged files may have cycles
    }
    return {};
}

/// Those of forward in the last step that has any. Autocast calls a second one in the first.
AttentionCalls calls_of_last_step(const Trace& trace) {
    AttentionCalls calls;
    Id<Step> step;
    for (const Id<Op> id : trace.ops.ids()) {
        if (name_of_call(trace, id) != kAttention) continue;
        const Id<Phase> phase = trace.ops.get<&Op::phase>(id);
        if (!phase.valid() || trace.phases.get<&Phase::kind>(phase) == PhaseKind::kBackward) {
            continue;
        }
        const Id<Step> own = trace.phases.get<&Phase::step>(phase);
        if (own != step) calls.clear();
        step = own;
        if (!attention_around(trace, calls, id).valid()) calls.try_emplace(id);
    }
    return calls;
}

void find_backends_and_stacks(const Trace& trace, AttentionCalls& calls) {
    if (calls.empty()) return;
    for (const Id<Op> id : trace.ops.ids()) {
        const std::string_view backend = backend_of(name_of_call(trace, id));
        const Id<Op> call = backend.empty() ? Id<Op>() : attention_around(trace, calls, id);
        if (call.valid() && calls[call].backend.empty()) calls[call].backend = backend;
    }
    for (const Id<Allocation> id : trace.allocations.ids()) {
        const Id<Stack> stack = trace.allocations.get<&Allocation::stack>(id);
        const Id<Op> op = stack.valid() ? trace.allocations.get<&Allocation::op>(id) : Id<Op>();
        const Id<Op> call = op.valid() ? attention_around(trace, calls, op) : Id<Op>();
        if (call.valid() && !calls[call].stack.valid()) calls[call].stack = stack;
    }
}

}  // namespace

std::vector<AttentionSite> attention_sites(const Trace& trace) {
    AttentionCalls calls = calls_of_last_step(trace);
    find_backends_and_stacks(trace, calls);
    std::unordered_map<int32_t, StringId> reasons;
    for (const SlowAttention slow : trace.slow_attentions.rows()) {
        reasons.emplace(attention_around(trace, calls, slow.op).value, slow.reasons);
    }
    const CallSites sites(trace);
    std::map<std::tuple<std::string, std::string, std::string_view, std::string_view>, int64_t>
        counts;
    for (const auto& [id, call] : calls) {
        const Id<ModulePath> module = module_of(trace, id);
        const auto reason = reasons.find(id.value);
        ++counts[{call.stack.valid() ? sites.of(call.stack) : std::string(),
                  module.valid()
                      ? any_layer_path(path_of_module(trace, module), layer_path_of(trace, module))
                      : std::string(),
                  call.backend,
                  reason == reasons.end() ? std::string_view() : trace.text(reason->second)}];
    }
    std::vector<AttentionSite> rows;
    for (const auto& [key, count] : counts) {
        const auto& [line, modules, backend, why] = key;
        const bool has_reason = backend != "flash";
        rows.push_back({line, modules, std::string(backend), count,
                        has_reason ? std::string(why) : std::string()});
    }
    std::ranges::stable_sort(rows, std::greater(), &AttentionSite::num_calls);
    return rows;
}

std::string_view flash_refusal_of(const Trace& trace, Id<Op> call) {
    for (const SlowAttention slow : trace.slow_attentions.rows()) {
        if (slow.op == call || is_within(trace, call, slow.op) || is_within(trace, slow.op, call)) {
            return trace.text(slow.reasons);
        }
    }
    return {};
}

}  // namespace profiler
