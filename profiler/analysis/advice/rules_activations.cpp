#include "profiler/analysis/advice/rule_blocks.h"
#include "profiler/analysis/advice/rules.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/recomputation.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <array>
#include <set>

namespace profiler {
namespace {

// ---- autocast ----------------------------

bool is_16_bit(DType dtype) { return dtype == DType::kBFloat16 || dtype == DType::kFloat16; }

bool is_live(const Evidence& evidence, Id<Storage> storage) {
    const Id<Allocation> block = evidence.trace.storages.get<&Storage::allocation>(storage);
    return std::ranges::find(evidence.live, block) != evidence.live.end();
}

/// What 16-bit activations save beside float32: their own size. A cast whose source lives on, such
/// as the output of a norm, costs its size instead.
int64_t saved_by_16_bits(const Evidence& evidence, const std::set<Id<Allocation>>& copies) {
    int64_t saved_bytes = 0;
    for (const Id<Allocation> id : evidence.live) {
        const bool counts = evidence.category_of(id) == Category::kActivation &&
                            is_16_bit(dtype_of_block(evidence, id)) && !copies.contains(id);
        if (!counts) continue;
        const Id<Storage> source = copied_from(evidence, id);
        const bool is_extra = source.valid() && is_live(evidence, source);
        saved_bytes += is_extra ? -evidence.bytes_of(id) : evidence.bytes_of(id);
    }
    return saved_bytes;
}

/// Autocast keeps a 16-bit copy of each parameter that a product reads until the step ends: 2P
/// bytes, whatever the batch. Small batches do not get them back.
std::vector<Finding> find_autocast_copies(const Evidence& evidence) {
    const Trace& trace = evidence.trace;
    Blocks copies = live_where(evidence, [&](Id<Allocation> id) {
        if (!is_16_bit(dtype_of_block(evidence, id))) return false;
        const Id<Storage> source = copied_from(evidence, id);
        return source.valid() &&
               trace.storages.get<&Storage::category>(source) == Category::kParameter;
    });
    if (copies.empty()) return {};
    const int64_t copied_bytes = bytes_of(evidence, copies);
    const int64_t saved_bytes = saved_by_16_bits(evidence, {copies.begin(), copies.end()});
    if (copied_bytes <= saved_bytes) return {};
    std::string sentence = fmt::format(
        "Autocast keeps 16-bit copies of {} parameters, {}, and its 16-bit activations save only "
        "{}: "
        "at this batch float32 takes less memory",
        copies.size(), format_bytes(copied_bytes), format_bytes(std::max<int64_t>(saved_bytes, 0)));
    return {finding_of(evidence, std::move(copies), std::move(sentence))};
}

// ---- dropout ----------------------------

/// Dropout after attention and in the MLP, as in BERT, takes less.
constexpr double kLeastShareOfDropout = 0.1;

bool is_dropout(std::string_view op_name) {
    return op_name.starts_with("aten::") && op_name.find("dropout") != op_name.npos;
}

/// Each dropout of N x H elements of 16 bits keeps an output, 2NH, and a mask, NH. Adapters have
/// one for each matrix, and attention one for each score.
std::vector<Finding> find_dropout(const Evidence& evidence) {
    Blocks blocks = live_where(evidence, [&](Id<Allocation> id) {
        return find_call(evidence, op_that_made(evidence, id), is_dropout).valid();
    });
    const int64_t size_bytes = bytes_of(evidence, blocks);
    const double share = static_cast<double>(size_bytes) /
                         static_cast<double>(std::max<int64_t>(evidence.allocated_bytes, 1));
    if (blocks.empty() || share < kLeastShareOfDropout) return {};
    const auto groups = group_blocks(
        evidence, blocks, [&](Id<Allocation> id) { return modules_of_block(evidence, id); });
    const NamedBlocks& most = groups.front();
    std::string sentence = fmt::format(
        "Outputs and masks of dropout take {} ({}){}", format_bytes(size_bytes),
        format_percent(share),
        most.name.empty()
            ? ""
            : fmt::format(", {} of it in {}", format_bytes(most.size_bytes), most.name));
    return {finding_of(evidence, std::move(blocks), std::move(sentence))};
}

// ---- checkpoints ----------------------------

/// A checkpoint around two or three layers trades memory for fewer kept inputs, on purpose.
constexpr double kLeastShareOfModel = 0.5;

/// The layer around a call, or outside of layers the first name of its module.
std::string_view part_of_model(const Trace& trace, Id<Op> op) {
    const Id<ModulePath> module = trace.ops.get<&Op::module_path>(op);
    if (!module.valid()) return {};
    return split_layer_path(path_of_module(trace, module), layer_path_of(trace, module)).layer;
}

std::set<std::string_view> parts_of_model(const Evidence& evidence) {
    std::set<std::string_view> parts;
    for (const Id<Op> op : evidence.trace.ops.ids()) {
        const bool is_forward = phase_kind_of(evidence.trace, op) == PhaseKind::kForward;
        if (is_forward) parts.insert(part_of_model(evidence.trace, op));
    }
    parts.erase(std::string_view());
    return parts;
}

/// Per-layer checkpoints hold the activations of one layer in backward. One checkpoint around all
/// layers holds them all, as if there were none, and computes them twice.
std::vector<Finding> find_whole_checkpoint(const Evidence& evidence) {
    if (evidence.phase_kind() != PhaseKind::kBackward) return {};
    Blocks all = live_where(evidence, [&](Id<Allocation> id) {
        const Id<Op> maker = op_that_made(evidence, id);
        return maker.valid() && is_recomputed(evidence.trace, maker);
    });
    const auto by_node = group_blocks(evidence, all, [&](Id<Allocation> id) {
        return std::to_string(evidence.outermost(op_that_made(evidence, id)).value);
    });
    if (by_node.empty()) return {};
    const NamedBlocks& most = by_node.front();
    std::set<std::string_view> parts;
    for (const Id<Allocation> id : most.blocks) {
        parts.insert(part_of_model(evidence.trace, op_that_made(evidence, id)));
    }
    parts.erase(std::string_view());
    const std::size_t num_parts = parts_of_model(evidence).size();
    const bool is_whole =
        static_cast<double>(parts.size()) > kLeastShareOfModel * static_cast<double>(num_parts);
    if (parts.size() < 2 || !is_whole) return {};
    std::string sentence = fmt::format(
        "One checkpoint computes {} of {} parts of the model again at once, and {} of activations "
        "live together: a checkpoint for each layer holds one layer at a time",
        parts.size(), num_parts, format_bytes(most.size_bytes));
    return {finding_of(evidence, most.blocks, std::move(sentence))};
}

/// Adds the parameters that calls in `around` read.
void add_parameters_in(const Evidence& evidence, Id<Op> around,
                       std::set<Id<Allocation>>& parameters) {
    const Trace& trace = evidence.trace;
    for_each_call_in(trace, around, [&](Id<Op> op) {
        for (const Id<OpTensor> edge : evidence.tensors_of(op)) {
            const Id<Storage> id =
                trace.tensors.get<&Tensor::storage>(trace.op_tensors.get<&OpTensor::tensor>(edge));
            if (!id.valid()) continue;
            const Storage storage = trace.storages[id];
            const bool is_parameter = storage.category == Category::kParameter;
            if (is_parameter && storage.allocation.valid()) parameters.insert(storage.allocation);
        }
    });
}

/// A reentrant checkpoint gets a node in the graph only if one of its inputs needs a gradient;
/// without it the parameters inside are not trained. Torch warns, and goes on.
std::vector<Finding> find_checkpoints_without_gradients(const Evidence& evidence) {
    const Trace& trace = evidence.trace;
    const Id<Step> step = last_whole_step(trace);
    if (!step.valid()) return {};
    std::vector<bool> has_node(trace.ops.size());
    for (const Id<Op> forward : trace.ops.column<&Op::forward>()) {
        if (forward.valid()) has_node[forward.index()] = true;
    }
    std::set<Id<Allocation>> parameters;
    for (const Id<Op> op : trace.ops.ids()) {
        const bool is_checkpoint = evidence.name_of_op(op) == "CheckpointFunction" &&
                                   phase_kind_of(trace, op) == PhaseKind::kForward &&
                                   step_of_op(trace, op) == step;
        if (is_checkpoint && !has_node[op.index()]) add_parameters_in(evidence, op, parameters);
    }
    if (parameters.empty()) return {};
    Blocks blocks(parameters.begin(), parameters.end());
    std::string sentence = fmt::format(
        "Reentrant checkpoints have no input that needs a gradient, so {} parameters in them, {}, "
        "such as {}, are not trained: use_reentrant=False trains them",
        blocks.size(), format_bytes(bytes_of(evidence, blocks)),
        name_of_block(evidence, blocks.front()));
    return {finding_of(evidence, std::move(blocks), std::move(sentence))};
}

constexpr std::array kActivationRules{
    Rule{"autocast_copies", find_autocast_copies},
    Rule{"dropout_grows", find_dropout, Asked::kWhenShort},
    Rule{"whole_checkpoint", find_whole_checkpoint},
    Rule{"reentrant_without_gradients", find_checkpoints_without_gradients},
};

}  // namespace

std::span<const Rule> rules_of_activations() { return kActivationRules; }

}  // namespace profiler
