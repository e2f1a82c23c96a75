#include "profiler/analysis/advice/rule_blocks.h"
#include "profiler/analysis/advice/rules.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>

namespace profiler {
namespace {

// ---- logits in one piece ----------------------------
//
// Cross-entropy of N tokens over V words holds in one backward, of 16-bit logits (measured,
// transformers' ForCausalLMLoss: difference at most 24 B):
//
//     logits 2NV | log-probabilities 4NV | two gradients 8NV

/// Below that a loss in pieces is not the first thing to change.
constexpr double kLeastShareOfLogits = 0.15;
/// A shift of the logits by a token, and a cast: copies of copies.
constexpr int kMostCopies = 3;

struct Logits {
    std::set<int64_t> sizes;  // in elements: of the logits, and of what they were cut from
    std::string_view shape;   // of the largest
};

int64_t elements_of(const Trace& trace, Id<Tensor> tensor) {
    const Id<Storage> storage = trace.tensors.get<&Tensor::storage>(tensor);
    const int64_t width = element_bytes(trace.tensors.get<&Tensor::dtype>(tensor));
    return storage.valid() && width > 0 ? trace.storages.get<&Storage::size_bytes>(storage) / width
                                        : 0;
}

/// What `log_softmax` reads, back to the tensor that it is a copy of.
void add_logits(const Evidence& evidence, Id<Tensor> tensor, Logits& logits) {
    const Trace& trace = evidence.trace;
    for (int copies = 0; copies <= kMostCopies; ++copies) {
        const int64_t elements = elements_of(trace, tensor);
        if (elements == 0) return;
        const bool is_largest = logits.sizes.empty() || elements > *logits.sizes.rbegin();
        if (is_largest) logits.shape = trace.text(trace.tensors.get<&Tensor::shape>(tensor));
        logits.sizes.insert(elements);
        const Id<Allocation> block =
            trace.storages.get<&Storage::allocation>(trace.tensors.get<&Tensor::storage>(tensor));
        const Id<Storage> source = block.valid() ? copied_from(evidence, block) : Id<Storage>();
        if (!source.valid()) return;
        const auto tensors = evidence.tensors_of(trace.storages.get<&Storage::allocation>(source));
        if (tensors.empty()) return;
        tensor = tensors.front();
    }
}

Logits find_logits(const Evidence& evidence) {
    Logits logits;
    for (const Id<Op> op : evidence.trace.ops.ids()) {
        if (evidence.name_of_op(op) != "aten::_log_softmax") continue;
        for (const Id<OpTensor> edge : evidence.tensors_of(op)) {
            add_logits(evidence, evidence.trace.op_tensors.get<&OpTensor::tensor>(edge), logits);
        }
    }
    return logits;
}

/// Whether so many bytes are a tensor with an element for each logit, in 16 or 32 bits. No other
/// tensor of a step has a product of tokens and words as its size.
bool is_size_of(const Logits& logits, int64_t size_bytes) {
    return (size_bytes % 2 == 0 && logits.sizes.contains(size_bytes / 2)) ||
           (size_bytes % 4 == 0 && logits.sizes.contains(size_bytes / 4));
}

bool lives_for_long(Category category) {
    return category == Category::kParameter || category == Category::kGradient ||
           category == Category::kOptimizerState || category == Category::kInput;
}

std::vector<Finding> find_logits_and_loss(const Evidence& evidence) {
    const Logits logits = find_logits(evidence);
    if (logits.sizes.empty()) return {};
    Blocks blocks = live_where(evidence, [&](Id<Allocation> id) {
        return is_size_of(logits, evidence.bytes_of(id)) &&
               !lives_for_long(evidence.category_of(id)) &&
               phase_kind_of(evidence.trace, op_that_made(evidence, id)) != PhaseKind::kInference;
    });
    Finding finding = finding_of(evidence, std::move(blocks), {});
    const bool is_asked =
        is_size_of(logits, evidence.asked_bytes) && evidence.phase_kind() != PhaseKind::kInference;
    if (is_asked) finding.size_bytes += evidence.asked_bytes;
    const int64_t needed_bytes = evidence.allocated_bytes + evidence.asked_bytes;
    const double share = static_cast<double>(finding.size_bytes) /
                         static_cast<double>(std::max<int64_t>(needed_bytes, 1));
    if (share < kLeastShareOfLogits) return {};
    finding.sentence = fmt::format(
        "The loss takes {} of {} ({}): logits {}, their copies and their gradients{}",
        format_bytes(finding.size_bytes), format_bytes(needed_bytes), format_percent(share),
        logits.shape,
        is_asked
            ? fmt::format(", with the {} that were asked for", format_bytes(evidence.asked_bytes))
            : "");
    return {std::move(finding)};
}

// ---- a loop over chunks ----------------------------

/// Two or three losses of one line are targets of a model, not chunks.
constexpr std::size_t kFewestChunks = 4;

/// A loop over chunks saves what one call for all tokens saves, 4NV, unless each chunk runs in a
/// checkpoint or makes its gradients in forward: the blocks of one line, op and shape that the
/// loss saves until backward, outside of layers (which run one line once for each layer).
std::vector<Finding> find_saved_chunks(const Evidence& evidence) {
    Blocks blocks;
    std::map<Id<Allocation>, const LedgerRow*> row_of;
    for (const LedgerRow& row : evidence.steps.ledger().rows) {
        if (row.layer >= 0 || !row.allocation.valid()) continue;
        if (std::ranges::none_of(row.saved_by, is_loss_call)) continue;
        blocks.push_back(row.allocation);
        row_of[row.allocation] = &row;
    }
    const auto kind_of_chunk = [&](Id<Allocation> id) {
        const LedgerRow& row = *row_of.at(id);
        return fmt::format("{} {} {}", row.op, row.shape, place_of_block(evidence, id));
    };
    std::vector<Finding> found;
    for (NamedBlocks& group : group_blocks(evidence, blocks, kind_of_chunk)) {
        if (group.blocks.size() < kFewestChunks) continue;
        const Id<Allocation> first = group.blocks.front();
        std::string sentence = fmt::format(
            "A loop {} saves all its {} chunks {} for backward, {}: chunks need less memory only "
            "if "
            "each runs in a checkpoint",
            place_of_block(evidence, first), group.blocks.size(), row_of.at(first)->shape,
            format_bytes(group.size_bytes));
        found.push_back(finding_of(evidence, std::move(group.blocks), std::move(sentence)));
    }
    return found;
}

constexpr std::array kLossRules{
    Rule{"logits_and_loss", find_logits_and_loss, Asked::kWhenShort},
    Rule{"chunks_saved", find_saved_chunks},
};

}  // namespace

std::span<const Rule> rules_of_loss() { return kLossRules; }

}  // namespace profiler
