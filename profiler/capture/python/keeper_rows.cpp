#include "profiler/capture/python/keeper_rows.h"

#include "profiler/trace/keeper_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace profiler {
namespace {

/// The last op that read or wrote the block, else the one that made it. None: no op is known.
Id<Op> last_use(const Trace& trace, Id<Allocation> block) {
    const Id<Storage> storage = trace.allocations.get<&Allocation::storage>(block);
    const auto tensors = trace.op_tensors.column<&OpTensor::tensor>();
    for (std::size_t row = tensors.size(); row-- > 0;) {
        if (trace.tensors.get<&Tensor::storage>(tensors[row]) == storage) {
            return trace.op_tensors.get<&OpTensor::op>(Id<OpTensor>(row));
        }
    }
    return trace.allocations.get<&Allocation::op>(block);
}

/// Whether a model that ran has used the block.
bool is_used_in_module(const Trace& trace, Id<Allocation> block) {
    const Id<Storage> storage = trace.allocations.get<&Allocation::storage>(block);
    for (const OpTensor use : trace.op_tensors.rows()) {
        if (trace.tensors.get<&Tensor::storage>(use.tensor) != storage) continue;
        if (trace.ops.get<&Op::module_path>(use.op).valid()) return true;
    }
    return false;
}

bool has_step_begun_since(const Trace& trace, Id<Allocation> block) {
    const auto first_events = trace.steps.column<&Step::first_event>();
    const int64_t made_at = trace.allocations.get<&Allocation::alloc_event>(block);
    return !first_events.empty() && first_events.back() > made_at;
}

/// `is_in_variable`: nothing but variables keeps it.
bool lives_past_last_use(const Trace& trace, Id<Allocation> block, bool is_in_variable) {
    const Id<Op> last = last_use(trace, block);
    const auto phases = trace.ops.column<&Op::phase>();
    const Id<Phase> used_in = last.valid() ? phases[last.index()] : Id<Phase>();
    if (last.valid() && phases.back() != used_in) return true;
    if (used_in.valid()) return false;
    return !is_in_variable || has_step_begun_since(trace, block);
}

/// What the keepers of a block, one after another, say of it.
class CategoryOfKeepers {
public:
    void add(KeeperKind kind) {
        switch (kind) {
            case KeeperKind::kAutograd:
            case KeeperKind::kCpp:
            case KeeperKind::kCollector:
                return;
            case KeeperKind::kParameter:
                category_ = Category::kParameter;
                return;
            case KeeperKind::kGradient:
                category_ = Category::kGradient;
                return;
            case KeeperKind::kOptimizer:
                category_ = Category::kOptimizerState;
                return;
            case KeeperKind::kVariable:
            case KeeperKind::kFrame:
                break;
            default:
                is_in_variable_ = false;
        }
        if (category_ == Category::kUnknown) category_ = Category::kHeld;
    }

    /// Of a block of `trace` whose category nobody knows.
    Category of(const Trace& trace, Id<Allocation> block) const {
        // Of a module that never ran, as the layer from which TransformerEncoder makes its copies,
        // or a moving average.
        const bool is_of_no_model = category_ == Category::kParameter && !trace.ops.empty() &&
                                    !is_used_in_module(trace, block);
        if (is_of_no_model) return Category::kHeld;
        const bool is_held = category_ == Category::kHeld;
        if (is_held && !lives_past_last_use(trace, block, is_in_variable_)) {
            return last_use(trace, block).valid() ? Category::kTemporary : Category::kUnknown;
        }
        return category_;
    }

private:
    Category category_ = Category::kUnknown;
    bool is_in_variable_ = true;
};

void set_category(Trace& trace, Id<Allocation> block, const CategoryOfKeepers& keepers) {
    const Category known = category_of_block(trace, block);
    if (known != Category::kTemporary && known != Category::kUnknown) return;
    const Category found = keepers.of(trace, block);
    if (found == Category::kUnknown) return;
    trace.storages.set<&Storage::category>(trace.allocations.get<&Allocation::storage>(block),
                                           found);
}

/// ": made by aten::nll_loss_backward in backward"; empty: no op is known.
std::string words_of_maker(const Trace& trace, Id<Allocation> block) {
    const Id<Op> maker = trace.allocations.get<&Allocation::op>(block);
    if (!maker.valid()) return {};
    const std::string words =
        fmt::format(": made by {}", trace.text(trace.ops.get<&Op::name>(maker)));
    const Id<Phase> phase = trace.ops.get<&Op::phase>(maker);
    if (!phase.valid()) return words;
    return fmt::format("{} in {}", words, name_of(trace.phases.get<&Phase::kind>(phase)));
}

Id<Allocation> block_from(const nlohmann::json& json, const Trace& trace) {
    const auto row = json.get<std::size_t>();
    if (row < trace.allocations.size()) return Id<Allocation>(row);
    throw std::invalid_argument(fmt::format("there is no allocation {}", row));
}

}  // namespace

std::vector<Id<Allocation>> unnamed_blocks(const Trace& trace, std::size_t count) {
    const auto freed = trace.allocations.column<&Allocation::free_requested_event>();
    const auto bytes = trace.allocations.column<&Allocation::block_bytes>();
    std::vector<Id<Allocation>> blocks;
    for (const Id<Allocation> block : trace.allocations.ids()) {
        if (freed[block.index()] >= 0) continue;
        const Category category = category_of_block(trace, block);
        const bool may_be_anything =
            category == Category::kTemporary || category == Category::kUnknown ||
            category == Category::kActivation || category == Category::kHeld;
        if (may_be_anything) blocks.push_back(block);
    }
    const auto is_larger = [&](Id<Allocation> a, Id<Allocation> b) {
        return std::pair(bytes[b.index()], a) < std::pair(bytes[a.index()], b);
    };
    std::ranges::sort(blocks, is_larger);
    blocks.resize(std::min(blocks.size(), count));
    return blocks;
}

std::vector<Id<Op>> savers_of(const Trace& trace, std::span<const Id<Allocation>> blocks) {
    std::map<Id<Storage>, std::size_t> place_of;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        place_of.emplace(trace.allocations.get<&Allocation::storage>(blocks[i]), i);
    }
    std::vector<Id<Op>> savers(blocks.size());
    for (const Save save : trace.saves.rows()) {
        if (save.released_event >= 0) continue;
        const auto found = place_of.find(save.storage);
        if (found != place_of.end()) savers[found->second] = save.op;
    }
    return savers;
}

void add_keepers(const nlohmann::json& blocks, int64_t event, Trace& trace) {
    std::vector<Keeper> rows;
    std::vector<std::pair<Id<Allocation>, CategoryOfKeepers>> categories;
    for (const nlohmann::json& entry : blocks) {
        const Id<Allocation> block = block_from(entry.at("allocation"), trace);
        CategoryOfKeepers& category = categories.emplace_back(block, CategoryOfKeepers()).second;
        for (const nlohmann::json& keeper : entry.at("keepers")) {
            Keeper row = keeper_from(keeper, block, event, trace.strings);
            category.add(row.kind);
            if (row.kind == KeeperKind::kCpp) {
                row.text = trace.strings.intern(
                    fmt::format("{}{}", trace.text(row.text), words_of_maker(trace, block)));
            }
            rows.push_back(row);
        }
    }
    for (const Keeper& row : rows) trace.keepers.append(row);
    for (const auto& [block, category] : categories) set_category(trace, block, category);
}

}  // namespace profiler
