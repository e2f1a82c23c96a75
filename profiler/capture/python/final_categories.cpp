#include "profiler/capture/python/final_categories.h"

#include "profiler/trace/recomputation.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

namespace profiler {
namespace {

/// What lies before it lies before all steps. If there was none, everything does.
int64_t first_event_of_steps(const Trace& trace) {
    const auto first_events = trace.steps.column<&Step::first_event>();
    return first_events.empty() ? std::numeric_limits<int64_t>::max() : first_events.front();
}

bool is_of_phase(const Trace& trace, Id<Op> op, PhaseKind kind) {
    const Id<Phase> phase = op.valid() ? trace.ops.get<&Op::phase>(op) : Id<Phase>();
    return phase.valid() && trace.phases.get<&Phase::kind>(phase) == kind;
}

/// The block behind what an op uses; invalid: none.
Id<Allocation> block_of(const Trace& trace, const OpTensor& use) {
    if (!use.tensor.valid()) return {};
    const Id<Storage> storage = trace.tensors.get<&Tensor::storage>(use.tensor);
    return storage.valid() ? trace.storages.get<&Storage::allocation>(storage) : Id<Allocation>();
}

void set_category(Trace& trace, Id<Allocation> block, Category category) {
    const Id<Storage> storage = trace.allocations.get<&Allocation::storage>(block);
    if (storage.valid()) trace.storages.set<&Storage::category>(storage, category);
}

}  // namespace

void name_survivors(Trace& trace, std::size_t first) {
    for (std::size_t i = first; i < trace.storages.size(); ++i) {
        const Storage storage = trace.storages[Id<Storage>(i)];
        if (storage.category != Category::kTemporary || !storage.allocation.valid()) continue;
        const bool is_freed =
            trace.allocations.get<&Allocation::free_requested_event>(storage.allocation) >= 0;
        if (!is_freed) trace.storages.set<&Storage::category>(Id<Storage>(i), Category::kUnknown);
    }
}

namespace {

/// Whether the model that made a block was over at an event.
bool is_over(const Trace& trace, Id<Op> maker, int64_t event) {
    const Id<Phase> phase = trace.ops.get<&Op::phase>(maker);
    return phase.valid() && trace.phases.get<&Phase::last_event>(phase) <= event;
}

/// Whether a block lived when memory ran out, outside of every model that ran then. An error ends
/// the variables of the program, so that all that they held is freed and looks temporary.
bool outlived_failure(const Trace& trace, const Allocation& block) {
    if (!block.stack.valid()) return false;
    const bool is_of_model = block.op.valid() && trace.ops.get<&Op::module_path>(block.op).valid();
    const int64_t freed = block.free_requested_event;
    return std::ranges::any_of(trace.failures.column<&Failure::event>(), [&](int64_t event) {
        return block.alloc_event < event && (freed < 0 || event <= freed) &&
               (!is_of_model || is_over(trace, block.op, event));
    });
}

/// Whether a block of `category` says what others of its origin are. A batch that lay there before
/// the steps does not: it is one of a data set.
bool tells_of_likes(Category category, bool is_of_steps) {
    return category == Category::kHeld || category == Category::kGradient ||
           (category == Category::kInput && is_of_steps);
}

/// What a block of the same origin as two others is.
Category common(Category a, Category b) {
    if (a == b) return a;
    const auto are = [&](Category one, Category other) {
        return (a == one && b == other) || (a == other && b == one);
    };
    // The next batch is held, until it is an input.
    return are(Category::kHeld, Category::kInput) ? Category::kInput : Category::kUnknown;
}

}  // namespace

void name_likes_of_kept(Trace& trace) {
    const int64_t first_step = first_event_of_steps(trace);
    const auto origin_of = [&](Id<Allocation> id) {
        const Id<Op> op = trace.allocations.get<&Allocation::op>(id);
        return std::tuple(
            op.valid() ? trace.ops.get<&Op::name>(op) : StringId(),
            op.valid() ? trace.ops.get<&Op::module_path>(op) : Id<ModulePath>(),
            trace.allocations.get<&Allocation::stack>(id),
            op.valid() ? int64_t{0} : trace.allocations.get<&Allocation::requested_bytes>(id));
    };
    const auto has_origin = [&](Id<Allocation> id) {
        return trace.allocations.get<&Allocation::op>(id).valid() ||
               trace.allocations.get<&Allocation::alloc_event>(id) < first_step;
    };
    std::map<decltype(origin_of({})), Category> kept;
    for (const Id<Allocation> id : trace.allocations.ids()) {
        const Category category = category_of_block(trace, id);
        const bool is_of_steps = trace.allocations.get<&Allocation::alloc_event>(id) >= first_step;
        if (!tells_of_likes(category, is_of_steps) || !has_origin(id)) continue;
        Category& known = kept.try_emplace(origin_of(id), category).first->second;
        known = common(known, category);
    }
    if (kept.empty()) return;
    for (const Id<Allocation> id : trace.allocations.ids()) {
        const Allocation block = trace.allocations[id];
        const Category category = category_of_block(trace, id);
        const bool may_change =
            category == Category::kUnknown || category == Category::kHeld ||
            (category == Category::kTemporary && outlived_failure(trace, block));
        if (!may_change || !has_origin(id)) continue;
        const auto like = kept.find(origin_of(id));
        if (like == kept.end() || like->second == Category::kUnknown) continue;
        set_category(trace, id, like->second);
    }
}

void name_kept_for_backward(Trace& trace) {
    const auto step_of = [&](Id<Op> op) {
        return trace.phases.get<&Phase::step>(trace.ops.get<&Op::phase>(op));
    };
    for (const OpTensor use : trace.op_tensors.rows()) {
        if (!is_of_phase(trace, use.op, PhaseKind::kBackward)) continue;
        const Id<Allocation> block = block_of(trace, use);
        if (!block.valid() || category_of_block(trace, block) != Category::kTemporary) continue;
        const Id<Op> maker = trace.allocations.get<&Allocation::op>(block);
        const bool is_kept = is_of_phase(trace, maker, PhaseKind::kForward) &&
                             trace.ops.get<&Op::module_path>(maker).valid() &&
                             step_of(maker) == step_of(use.op);
        if (is_kept) set_category(trace, block, Category::kActivation);
    }
}

void name_recomputed(Trace& trace) {
    std::vector<std::optional<bool>> known(trace.ops.size());
    const auto is_recomputation = [&](Id<Op> op) {
        if (!op.valid()) return false;
        std::optional<bool>& answer = known[op.index()];
        if (!answer) answer = is_recomputed(trace, op);
        return *answer;
    };
    for (const OpTensor use : trace.op_tensors.rows()) {
        const bool reads_in_backward =
            is_of_phase(trace, use.op, PhaseKind::kBackward) && !is_recomputation(use.op);
        const Id<Allocation> block = reads_in_backward ? block_of(trace, use) : Id<Allocation>();
        if (!block.valid() || !is_recomputation(trace.allocations.get<&Allocation::op>(block))) {
            continue;
        }
        const Category category = category_of_block(trace, block);
        const bool is_result =
            category == Category::kTemporary || category == Category::kActivation;
        if (is_result) set_category(trace, block, Category::kRecomputed);
    }
}

namespace {

/// How many blocks of each size there are.
using Sizes = std::map<int64_t, std::size_t>;
/// Blocks of each size that may belong to a copy, the oldest first.
using Candidates = std::map<int64_t, std::vector<Id<Allocation>>>;

/// Of the parameters, or of those with a gradient.
Sizes sizes_of_parameters(const Trace& trace, bool only_trained) {
    std::set<std::string_view> trained;
    constexpr std::string_view kGradient = ".grad";
    for (const Tensor tensor : trace.tensors.rows()) {
        const std::string_view name = trace.text(tensor.name);
        const bool is_gradient =
            tensor.storage.valid() &&
            trace.storages.get<&Storage::category>(tensor.storage) == Category::kGradient;
        if (is_gradient && name.ends_with(kGradient)) {
            trained.insert(name.substr(0, name.size() - kGradient.size()));
        }
    }
    Sizes sizes;
    std::vector<bool> is_counted(trace.storages.size(), false);
    for (const Tensor tensor : trace.tensors.rows()) {
        const std::string_view name = trace.text(tensor.name);
        if (!tensor.storage.valid() || name.empty() || is_counted[tensor.storage.index()]) continue;
        const Storage storage = trace.storages[tensor.storage];
        if (storage.category != Category::kParameter) continue;
        if (only_trained && !trained.contains(name)) continue;
        is_counted[tensor.storage.index()] = true;
        ++sizes[storage.size_bytes];
    }
    return sizes;
}

Candidates candidates_of(const Trace& trace) {
    const int64_t first_step = first_event_of_steps(trace);
    Candidates candidates;
    for (const Id<Allocation> id : trace.allocations.ids()) {
        const Category category = category_of_block(trace, id);
        const bool may_be_copy = category == Category::kUnknown || category == Category::kHeld;
        if (trace.allocations.get<&Allocation::alloc_event>(id) >= first_step || !may_be_copy) {
            continue;
        }
        candidates[trace.allocations.get<&Allocation::requested_bytes>(id)].push_back(id);
    }
    return candidates;
}

/// How many whole copies there are of tensors with `sizes`, each `factor` times as large.
std::size_t num_copies(const Sizes& sizes, double factor, const Candidates& candidates) {
    std::size_t copies = std::numeric_limits<std::size_t>::max();
    for (const auto& [bytes, count] : sizes) {
        const auto found =
            candidates.find(static_cast<int64_t>(static_cast<double>(bytes) * factor));
        copies = std::min(copies, found == candidates.end() ? 0 : found->second.size() / count);
    }
    return copies;
}

void take_copies(Trace& trace, const Sizes& sizes, double factor, Candidates& candidates) {
    constexpr std::size_t kFewestTensors = 3;
    std::size_t num_tensors = 0;
    for (const auto& [bytes, count] : sizes) num_tensors += count;
    if (sizes.size() < 2 || num_tensors < kFewestTensors) return;
    const std::size_t copies = num_copies(sizes, factor, candidates);
    if (copies == 0) return;
    for (const auto& [bytes, count] : sizes) {
        auto& blocks = candidates[static_cast<int64_t>(static_cast<double>(bytes) * factor)];
        const auto end = blocks.begin() + static_cast<std::ptrdiff_t>(copies * count);
        for (auto block = blocks.begin(); block != end; ++block) {
            set_category(trace, *block, Category::kWeightCopy);
        }
        blocks.erase(blocks.begin(), end);
    }
}

}  // namespace

void name_weight_copies(Trace& trace) {
    Candidates candidates = candidates_of(trace);
    if (candidates.empty()) return;
    for (const bool only_trained : {false, true}) {
        const Sizes sizes = sizes_of_parameters(trace, only_trained);
        for (const double factor : {1.0, 2.0, 0.5}) take_copies(trace, sizes, factor, candidates);
    }
}

}  // namespace profiler
