#include "profiler/analysis/advice/remedies.h"
#include "profiler/analysis/advice/rule_blocks.h"
#include "profiler/analysis/advice/rules.h"
#include "profiler/trace/recomputation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace profiler {
namespace {

/// A technique for the model: an argument of `run --apply`, or one line of code.
Candidate technique(const RemedyCase& which, std::string_view recipe, std::string sentence,
                    const Changes& changes) {
    return estimated(
        which, {.sentence = std::move(sentence), .change = swap_change(recipe), .code_lines = 1},
        changes);
}

/// The forward of the step that is explained, and who uses its blocks when.
class Forward {
public:
    explicit Forward(const RemedyCase& which) : which_(which), evidence_(which.evidence) {
        const Trace& trace = evidence_.trace;
        bool was_backward = false;
        for (const PhaseKind kind : trace.phases.column<&Phase::kind>()) {
            const bool is_backward = kind == PhaseKind::kBackward;
            const bool begins = was_backward && kind == PhaseKind::kForward;
            pass_of_phase_.push_back((pass_of_phase_.empty() ? 0 : pass_of_phase_.back()) + begins);
            was_backward = is_backward || (was_backward && !begins);
        }
        last_use_.resize(trace.storages.size());
        for (const Id<Op> op : trace.ops.ids()) {
            if (!contains(op)) continue;
            for (const Id<OpTensor> edge : evidence_.tensors_of(op)) {
                const Id<Storage> storage = storage_of(edge);
                if (storage.valid()) last_use_[storage.index()] = op;
            }
        }
    }

    /// Forward and loss of that step.
    bool contains(Id<Op> op) const {
        const auto kind = phase_kind_of(evidence_.trace, op);
        return (kind == PhaseKind::kForward || kind == PhaseKind::kLoss) &&
               step_of_op(evidence_.trace, op) == evidence_.step;
    }
    /// The number of the forward and backward in which the op runs: a step that adds up gradients
    /// has several. Of an op that it contains.
    int pass_of(Id<Op> op) const {
        return pass_of_phase_[evidence_.trace.ops.get<&Op::phase>(op).index()];
    }
    Id<Storage> storage_of(Id<OpTensor> edge) const {
        const Id<Tensor> tensor = evidence_.trace.op_tensors.get<&OpTensor::tensor>(edge);
        return tensor.valid() ? evidence_.trace.tensors.get<&Tensor::storage>(tensor)
                              : Id<Storage>();
    }
    /// Its number among the blocks of the program; ProgramBlock::kNone: it is not one of that step.
    uint32_t block_of(Id<Storage> storage) const {
        if (!storage.valid()) return ProgramBlock::kNone;
        const Id<Allocation> row = evidence_.trace.storages.get<&Storage::allocation>(storage);
        const uint32_t block = row.valid() ? which_.steps.block_of(row) : ProgramBlock::kNone;
        return block != ProgramBlock::kNone && which_.steps.block(block).twin == block
                   ? block
                   : ProgramBlock::kNone;
    }
    /// The event after which forward needs a block no more.
    int64_t end_of_use(uint32_t block) const {
        const ProgramBlock& one = which_.steps.block(block);
        const Id<Storage> storage = evidence_.trace.allocations.get<&Allocation::storage>(one.row);
        const Id<Op> last = storage.valid() ? last_use_[storage.index()] : Id<Op>();
        if (!last.valid()) return one.alloc_event;
        return std::max(one.alloc_event, which_.steps.event_at_end_of(last));
    }
    /// The time of what an op itself runs: its kernels, else the op where none has kernels.
    int64_t time_ns(Id<Op> op) const {
        const Trace& trace = evidence_.trace;
        int64_t sum_ns = 0;
        for (const Id<Kernel> kernel : evidence_.steps.calls().kernels_of(op)) {
            sum_ns += std::max<int64_t>(0, trace.kernels.get<&Kernel::end_ns>(kernel) -
                                               trace.kernels.get<&Kernel::start_ns>(kernel));
        }
        const bool is_leaf = op.index() + 1 == trace.ops.size() ||
                             trace.ops.get<&Op::parent>(Id<Op>(op.index() + 1)) != op;
        if (trace.kernels.empty() && is_leaf) {
            sum_ns = std::max<int64_t>(
                0, trace.ops.get<&Op::end_ns>(op) - trace.ops.get<&Op::start_ns>(op));
        }
        return sum_ns;
    }

private:
    const RemedyCase& which_;
    const Evidence& evidence_;
    std::vector<int> pass_of_phase_;
    std::vector<Id<Op>> last_use_;  // in forward, by storage
};

// ---- the loss in chunks ------------------------------------------------------------------------

/// As temposcope.swap(model, "chunked-loss") cuts it.
constexpr double kChunks = 8;

/// Logits, their copies and gradients by their sizes, which no other tensor of a step has: half and
/// double of one stand for the copies in other types.
std::set<int64_t> sizes_of_logits(const Evidence& evidence) {
    std::set<int64_t> sizes;
    for (const Finding& finding : find_unusual(evidence, "logits_and_loss")) {
        for (const Id<Allocation> id : finding.evidence) {
            const int64_t bytes = evidence.bytes_of(id);
            sizes.insert({bytes / 2, bytes, 2 * bytes});
        }
    }
    return sizes;
}

/// Whether temposcope.swap keeps the logits in chunks through an op: products, what only changes
/// their shape or type, a function of each logit alone, and the loss.
bool keeps_chunks(const Evidence& evidence, Id<Op> op) {
    static constexpr std::array<std::string_view, 25> kKept{
        "aten::linear",     "aten::addmm", "aten::mm",      "aten::matmul",
        "aten::t",          "aten::view",  "aten::reshape", "aten::_reshape_alias",
        "aten::flatten",    "aten::slice", "aten::select",  "aten::_unsafe_view",
        "aten::contiguous", "aten::clone", "aten::to",      "aten::_to_copy",
        "aten::copy_",      "aten::empty", "aten::tanh",    "aten::mul",
        "aten::div",        "aten::alias", "aten::detach",  "aten::empty_strided",
        "aten::empty_like"};
    const bool is_kept = std::ranges::find(kKept, evidence.name_of_op(op)) != kKept.end();
    return is_kept || find_call(evidence, op, is_loss_call).valid();
}

/// Whether a module makes them: no other product is replaced. A trace without modules does not
/// tell.
bool is_made_by_linear(const Evidence& evidence, Id<Op> op) {
    const Trace& trace = evidence.trace;
    const Id<ModulePath> module = module_of(trace, op);
    if (!module.valid()) return trace.module_paths.empty();
    const std::string_view type = trace.text(trace.module_paths.get<&ModulePath::type>(module));
    return type.empty() || type.find("Linear") != type.npos;
}

std::vector<Candidate> chunked_loss(const RemedyCase& which) {
    const Evidence& evidence = which.evidence;
    const std::set<int64_t> sizes = sizes_of_logits(evidence);
    if (sizes.empty()) return {};
    Changes changes;
    for (const uint32_t block : which.steps.step_blocks()) {
        if (sizes.contains(which.steps.block(block).size_bytes)) {
            changes.of_block[block].scale = 1 / kChunks;
        }
    }
    // Backward computes each chunk again: the product that makes it, and the loss.
    const Forward forward(which);
    for (const Id<Op> op : evidence.trace.ops.ids()) {
        if (!forward.contains(op)) continue;
        const bool touches = std::ranges::any_of(evidence.tensors_of(op), [&](Id<OpTensor> edge) {
            const Id<Storage> storage = forward.storage_of(edge);
            return storage.valid() &&
                   sizes.contains(evidence.trace.storages.get<&Storage::size_bytes>(storage));
        });
        if (!touches) continue;
        const std::string_view name = evidence.name_of_op(op);
        const bool is_product = name == "aten::addmm" || name == "aten::mm";
        if (!keeps_chunks(evidence, op)) return {};
        if (is_product && !is_made_by_linear(evidence, op)) return {};
        changes.added_ns += forward.time_ns(op);
    }
    return {technique(which, "chunked-loss",
                      fmt::format("Logits, their copies and their gradients exist for 1/{} of the "
                                  "tokens at a time. Backward computes them again.",
                                  kChunks),
                      changes)};
}

// ---- a checkpoint for each layer ---------------------------------------------------------------

/// What a checkpoint around a layer frees after forward, and what it keeps.
struct LayerBlocks {
    std::set<uint32_t> saved;   // made in the layer, and saved by its ops alone
    std::set<uint32_t> inputs;  // made before it
    int64_t forward_end = 0;    // events
    int64_t backward_begin = ProgramBlock::kNever;
    int64_t backward_end = 0;
    int64_t saved_bytes = 0;
};

class Layers {
public:
    Layers(const RemedyCase& which, const Forward& forward) : which_(which), forward_(forward) {
        find_unfit_layers();
        add_ops();
        std::erase_if(layers_, [this](const auto& one) {
            return unfit_.contains(one.first.path) || is_checkpointed(one.second);
        });
        for (auto& [place, layer] : layers_) find_backward(layer);
    }

    std::size_t size() const {
        std::set<std::string_view> paths;
        for (const auto& [place, layer] : layers_) paths.insert(place.path);
        return paths.size();
    }

    Changes checkpointed() const {
        Changes changes{.added_ns = forward_ns_};
        for (const auto& [place, layer] : layers_) {
            for (const uint32_t block : layer.inputs)
                keep_until(changes, block, layer.backward_end);
        }
        const Changes kept = changes;
        for (const auto& [place, layer] : layers_) {
            for (const uint32_t block : layer.saved) {
                if (kept.of_block.contains(block)) continue;  // the next layer's input
                const ProgramBlock& one = which_.steps.block(block);
                changes.of_block[block].free_event = std::max(layer.forward_end, one.alloc_event);
                if (layer.backward_begin == ProgramBlock::kNever) continue;
                changes.added.push_back({one.size_bytes, layer.backward_begin - 1, one.free_event});
            }
            changes.later_bytes = std::max(changes.later_bytes, layer.saved_bytes);
        }
        return changes;
    }

private:
    /// A layer in one forward and backward.
    struct Place {
        std::string_view path;
        int pass = 0;
        auto operator<=>(const Place&) const = default;
    };

    std::string_view layer_of(Id<Op> op) const {
        const Trace& trace = which_.evidence.trace;
        return layer_path_of(trace, module_of(trace, op));
    }

    /// Layers that `--apply checkpoint` leaves: lists, which the model never calls, and those with
    /// batch norms, whose statistics a second forward would update twice.
    void find_unfit_layers() {
        const Trace& trace = which_.evidence.trace;
        for (const Id<ModulePath> id : trace.module_paths.ids()) {
            const std::string_view type = trace.text(trace.module_paths.get<&ModulePath::type>(id));
            const std::string_view layer = layer_path_of(trace, id);
            const bool is_list = (type == "ModuleList" || type == "ModuleDict") &&
                                 path_of_module(trace, id) == layer;
            const bool is_batch_norm = type.find("BatchNorm") != type.npos;
            if (!layer.empty() && (is_list || is_batch_norm)) unfit_.insert(layer);
        }
    }

    void add_ops() {
        const Evidence& evidence = which_.evidence;
        std::map<uint32_t, Place> maker;
        for (const Id<Op> op : evidence.trace.ops.ids()) {
            if (!forward_.contains(op)) continue;
            const std::string_view path = layer_of(op);
            const Place place{path, forward_.pass_of(op)};
            for (const Id<Allocation> made : evidence.steps.calls().allocations_of(op)) {
                const uint32_t block = which_.steps.block_of(made);
                if (block == ProgramBlock::kNone) continue;
                maker[block] = place;
                if (path.empty()) continue;
                LayerBlocks& layer = layers_[place];
                layer.forward_end =
                    std::max(layer.forward_end, which_.steps.block(block).alloc_event);
                if (is_saved_by(made, path)) layer.saved.insert(block);
            }
            if (path.empty()) continue;
            forward_ns_ += forward_.time_ns(op);
            for (const Id<OpTensor> edge : evidence.tensors_of(op)) {
                const uint32_t block = forward_.block_of(forward_.storage_of(edge));
                const auto made = maker.find(block);
                const bool is_input =
                    block != ProgramBlock::kNone && (made == maker.end() || made->second != place);
                if (is_input && is_of_tokens(block)) layers_[place].inputs.insert(block);
            }
        }
    }

    /// Whether a checkpoint, maybe a selective one, keeps an input of the layer.
    bool is_checkpointed(const LayerBlocks& layer) const {
        const Evidence& evidence = which_.evidence;
        return std::ranges::any_of(layer.inputs, [&](uint32_t block) {
            return std::ranges::any_of(
                evidence.saves_of(which_.steps.block(block).row), [&](Id<Save> save) {
                    const Id<Op> saver = evidence.trace.saves.get<&Save::op>(save);
                    return evidence.name_of_op(saver) == kInputsOfCheckpoint;
                });
        });
    }

    bool is_saved_by(Id<Allocation> id, std::string_view path) const {
        const auto saves = which_.evidence.saves_of(id);
        return !saves.empty() && std::ranges::all_of(saves, [&](Id<Save> save) {
            return layer_of(which_.evidence.trace.saves.get<&Save::op>(save)) == path;
        });
    }
    bool is_of_tokens(uint32_t block) const {
        const Category category = which_.evidence.category_of(which_.steps.block(block).row);
        return category != Category::kParameter && category != Category::kGradient &&
               category != Category::kOptimizerState && category != Category::kWorkspace;
    }

    /// Backward of a layer begins before the first of its saved tensors goes.
    void find_backward(LayerBlocks& layer) const {
        for (const uint32_t block : layer.saved) {
            const ProgramBlock& one = which_.steps.block(block);
            layer.saved_bytes += one.size_bytes;
            layer.backward_end = std::max(layer.backward_end, one.free_event);
            if (one.free_event > layer.forward_end) {
                layer.backward_begin = std::min(layer.backward_begin, one.free_event);
            }
        }
    }

    void keep_until(Changes& changes, uint32_t block, int64_t event) const {
        const int64_t freed = which_.steps.block(block).free_event;
        auto& change = changes.of_block[block];
        change.free_event = std::max({freed, event, change.free_event.value_or(0)});
    }

    const RemedyCase& which_;
    const Forward& forward_;
    std::map<Place, LayerBlocks> layers_;
    std::set<std::string_view> unfit_;  // paths
    int64_t forward_ns_ = 0;
};

std::vector<Candidate> checkpoint_layers(const RemedyCase& which) {
    const Forward forward(which);
    const Layers layers(which, forward);
    if (layers.size() < 2) return {};
    return {technique(which, "checkpoint",
                      fmt::format("{} layers keep only their inputs. Backward computes each "
                                  "layer's forward again.",
                                  layers.size()),
                      layers.checkpointed())};
}

// ---- Tempo's techniques ------------------------------------------------------------------------

// Of ops in forward.
bool is_gelu(std::string_view op_name) { return op_name.find("gelu") != op_name.npos; }
bool is_norm(std::string_view op_name) {
    return op_name.find("layer_norm") != op_name.npos || op_name.find("rms_norm") != op_name.npos;
}
bool is_dropout_op(std::string_view op_name) { return op_name.find("dropout") != op_name.npos; }

/// How a branch mask of GELU, and masks of dropout, are stored.
enum class Masks : uint8_t { kByte, kBit };

class Tempo {
public:
    Tempo(const RemedyCase& which, Masks masks)
        : which_(which), evidence_(which.evidence), forward_(which), masks_(masks) {
        for (const StringId path : evidence_.trace.module_paths.column<&ModulePath::path>()) {
            paths_.insert(evidence_.trace.text(path));
        }
        for (const Id<ModulePath> up : evidence_.trace.module_paths.column<&ModulePath::parent>()) {
            if (up.valid()) has_children_.insert(up);
        }
        find_saved();
        for (const Id<Op> op : evidence_.trace.ops.ids()) {
            if (!forward_.contains(op)) continue;
            const std::string_view name = evidence_.name_of_op(op);
            if (is_gelu(name)) replace_gelu(op);
            if (is_norm(name)) replace_norm(op);
            if (is_dropout_op(name) && masks_ == Masks::kBit) pack_masks(op);
        }
    }

    const Changes& changes() const { return changes_; }
    /// Without masks their form changes nothing.
    bool has_masks() const {
        return !changes_.added.empty() ||
               std::ranges::any_of(changes_.of_block,
                                   [](const auto& one) { return one.second.scale != 1; });
    }

private:
    /// The op that saves each block, where it is one alone; and what casts made of a block.
    void find_saved() {
        for (const uint32_t number : which_.steps.step_blocks()) {
            const Id<Allocation> id = block(number).row;
            if (!id.valid()) continue;
            for (const Id<Save> save : evidence_.saves_of(id)) {
                savers_[number].insert(evidence_.trace.saves.get<&Save::op>(save));
            }
            const Id<Storage> source = copied_from(evidence_, id);
            if (source.valid() && !evidence_.saves_of(id).empty()) has_saved_copy_.insert(source);
        }
    }

    bool is_saved_by_alone(uint32_t block, Id<Op> op) const {
        const auto savers = savers_.find(block);
        if (savers == savers_.end()) return false;
        return std::ranges::all_of(savers->second, [&](Id<Op> saver) {
            return saver == op || is_within(evidence_.trace, saver, op);
        });
    }
    bool is_saved(uint32_t block) const { return savers_.contains(block); }

    std::vector<uint32_t> blocks_at(Id<Op> op, Access access) const {
        std::vector<uint32_t> blocks;
        for (const Id<OpTensor> edge : evidence_.tensors_of(op)) {
            if (evidence_.trace.op_tensors.get<&OpTensor::access>(edge) != access) continue;
            const uint32_t block = forward_.block_of(forward_.storage_of(edge));
            if (block != ProgramBlock::kNone) blocks.push_back(block);
        }
        return blocks;
    }
    const ProgramBlock& block(uint32_t number) const { return which_.steps.block(number); }
    int64_t mask_bytes(uint32_t activation) const {
        const int64_t width = element_bytes(dtype_of_block(evidence_, block(activation).row));
        const int64_t elements = width > 0 ? block(activation).size_bytes / width : 0;
        return masks_ == Masks::kBit ? (elements + 7) / 8 : elements;
    }
    void free_after_forward(uint32_t number) {
        changes_.of_block[number].free_event = forward_.end_of_use(number);
    }
    /// Where backward saved the input, it now saves the output, unless another op saves it already.
    void save_in_place_of(uint32_t input, uint32_t output) {
        const int64_t needed = block(input).free_event;
        free_after_forward(input);
        if (is_saved(output)) return;
        changes_.of_block[output].free_event = std::max(needed, block(output).free_event);
    }

    /// From its output and a mask of its branch. In torch's encoder and decoder layers the dropped
    /// output is computed again, too.
    void replace_gelu(Id<Op> op) {
        const auto inputs = blocks_at(op, Access::kRead);
        const auto outputs = blocks_at(op, Access::kWrite);
        const Id<ModulePath> module = module_of(evidence_.trace, op);
        if (inputs.size() != 1 || outputs.size() != 1 || !module.valid()) return;
        if (!is_saved_by_alone(inputs.front(), op)) return;
        const std::string path(path_of_module(evidence_.trace, module));
        const bool is_of_torch =
            paths_.contains(path + ".linear2") && paths_.contains(path + ".linear1");
        if (!is_of_torch && has_children_.contains(module)) return;  // a call, not a module
        const int64_t needed = block(inputs.front()).free_event;
        save_in_place_of(inputs.front(), outputs.front());
        changes_.added.push_back(
            {mask_bytes(inputs.front()), block(outputs.front()).alloc_event, needed});
        if (is_of_torch) drop_again(path + ".dropout", outputs.front());
    }

    void drop_again(const std::string& path, uint32_t output) {
        for (const auto& [number, savers] : savers_) {
            const Id<Op> maker = op_that_made(evidence_, block(number).row);
            const bool is_later = block(number).alloc_event > block(output).alloc_event;
            if (!is_later || !is_dropout_op(evidence_.name_of_op(maker))) continue;
            if (path_of_module(evidence_.trace, module_of(evidence_.trace, maker)) != path)
                continue;
            free_after_forward(number);
        }
    }

    /// Whether a module of torch calls torch's function that made the block: one of the program's
    /// own is not replaced. Without a stack nobody knows.
    bool may_be_of_torch_module(Id<Allocation> id) const {
        const Trace& trace = evidence_.trace;
        Id<Stack> stack = trace.allocations.get<&Allocation::stack>(id);
        if (!stack.valid()) return true;
        const auto file_of = [&](Id<Stack> of) {
            return trace.text(trace.frames.get<&Frame::file>(trace.stacks.get<&Stack::frame>(of)));
        };
        if (file_of(stack).ends_with("torch/nn/functional.py")) {
            stack = trace.stacks.get<&Stack::parent>(stack);
        }
        return stack.valid() && file_of(stack).find("torch/nn/modules/") != std::string_view::npos;
    }

    void replace_norm(Id<Op> op) {
        const auto outputs = blocks_at(op, Access::kWrite);
        if (outputs.empty() || !may_be_of_torch_module(block(outputs.front()).row)) return;
        for (const uint32_t input : blocks_at(op, Access::kRead)) {
            if (!is_saved_by_alone(input, op)) continue;
            if (block(input).size_bytes != block(outputs.front()).size_bytes) continue;
            // Under autocast the norm writes the 16-bit tensor that the next op saves.
            const Id<Storage> output =
                evidence_.trace.allocations.get<&Allocation::storage>(block(outputs.front()).row);
            if (has_saved_copy_.contains(output)) {
                free_after_forward(input);
            } else {
                save_in_place_of(input, outputs.front());
            }
        }
    }

    void pack_masks(Id<Op> op) {
        for (const uint32_t mask : blocks_at(op, Access::kWrite)) {
            const DType dtype = dtype_of_block(evidence_, block(mask).row);
            const bool is_mask = dtype == DType::kBool || dtype == DType::kUInt8;
            if (is_mask && is_saved(mask)) changes_.of_block[mask].scale = 1.0 / 8;
        }
    }

    const RemedyCase& which_;
    const Evidence& evidence_;
    const Forward forward_;
    const Masks masks_;
    std::set<std::string_view> paths_;
    std::set<Id<ModulePath>> has_children_;
    std::map<uint32_t, std::set<Id<Op>>> savers_;  // by block
    std::set<Id<Storage>> has_saved_copy_;
    Changes changes_;
};

std::vector<Candidate> tempo(const RemedyCase& which) {
    const Tempo bytes(which, Masks::kByte);
    if (bytes.changes().empty()) return {};
    return {technique(which, "tempo",
                      "GELU and norms compute their gradients from their outputs, which the next "
                      "op keeps anyway.",
                      bytes.changes())};
}

std::vector<Candidate> tempo_packed(const RemedyCase& which) {
    const Tempo bits(which, Masks::kBit);
    if (!bits.has_masks()) return {};
    return {technique(which, "tempo-packed",
                      "GELU and norms keep outputs in place of inputs, and masks take one bit an "
                      "element.",
                      bits.changes())};
}

constexpr std::array kModelRemedies{
    RemedyRow{"chunked_loss", "Compute the loss in chunks", "logits_and_loss", chunked_loss},
    RemedyRow{"tempo", "Tempo: keep outputs in place of inputs", "", tempo},
    RemedyRow{"tempo_packed", "Tempo with masks of one bit", "", tempo_packed},
    RemedyRow{"checkpoint", "Checkpoint each layer", "", checkpoint_layers},
};

}  // namespace

std::span<const RemedyRow> remedies_of_model() { return kModelRemedies; }

RemedyChange swap_change(std::string_view recipe) {
    return {.kind = RemedyChange::Kind::kApply,
            .text = fmt::format("temposcope.swap(model, \"{}\")", recipe),
            .name = std::string(recipe)};
}

}  // namespace profiler
