#include "profiler/analysis/advice/rule_blocks.h"

#include "profiler/trace/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace profiler {
namespace {

/// The name between the first two backticks of "`logits`, train.py:13 (<module>)".
std::string_view quoted_name(std::string_view text) {
    const std::size_t begin = text.find('`');
    const std::size_t end = begin == text.npos ? begin : text.find('`', begin + 1);
    return end == text.npos ? std::string_view() : text.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::vector<NamedBlocks> group_blocks(
    const Evidence& evidence, const Blocks& blocks,
    const std::function<std::string(Id<Allocation>)>& name_of_block) {
    std::map<std::string, Blocks> by_name;
    for (const Id<Allocation> id : blocks) by_name[name_of_block(id)].push_back(id);
    std::vector<NamedBlocks> groups;
    for (auto& [name, members] : by_name) {
        const int64_t size_bytes = bytes_of(evidence, members);
        groups.push_back({name, std::move(members), size_bytes});
    }
    std::ranges::stable_sort(groups, std::greater(), &NamedBlocks::size_bytes);
    return groups;
}

Finding finding_of(const Evidence& evidence, Blocks blocks, std::string sentence) {
    const int64_t size_bytes = bytes_of(evidence, blocks);
    return {.id = {},
            .sentence = std::move(sentence),
            .size_bytes = size_bytes,
            .evidence = std::move(blocks)};
}

Id<Op> op_that_made(const Evidence& evidence, Id<Allocation> block) {
    return evidence.trace.allocations.get<&Allocation::op>(block);
}

bool is_made_in(const Evidence& evidence, Id<Allocation> block,
                bool (*matches)(std::string_view op_name)) {
    const Id<Op> maker = op_that_made(evidence, block);
    if (!maker.valid()) return false;
    const Id<Op> forward = evidence.trace.ops.get<&Op::forward>(maker);
    return find_call(evidence, maker, matches).valid() ||
           find_call(evidence, forward, matches).valid();
}

bool is_loss_call(std::string_view op_name) {
    for (const std::string_view part : {"log_softmax", "logsumexp", "nll_loss", "cross_entropy"}) {
        if (op_name.find(part) != op_name.npos) return true;
    }
    return false;
}

bool is_math_attention(std::string_view op_name) {
    return op_name == "aten::_scaled_dot_product_attention_math";
}

bool is_foreach_call(std::string_view op_name) { return op_name.starts_with("aten::_foreach_"); }

std::optional<PhaseKind> phase_kind_of(const Trace& trace, Id<Op> op) {
    const Id<Phase> phase = op.valid() ? trace.ops.get<&Op::phase>(op) : Id<Phase>();
    if (!phase.valid()) return std::nullopt;
    return trace.phases.get<&Phase::kind>(phase);
}

Id<Step> step_of_op(const Trace& trace, Id<Op> op) {
    const Id<Phase> phase = op.valid() ? trace.ops.get<&Op::phase>(op) : Id<Phase>();
    return phase.valid() ? trace.phases.get<&Phase::step>(phase) : Id<Step>();
}

Id<Storage> copied_from(const Evidence& evidence, Id<Allocation> block) {
    const Trace& trace = evidence.trace;
    const Id<Op> maker = op_that_made(evidence, block);
    const std::string_view name = evidence.name_of_op(maker);
    if (name != "aten::_to_copy" && name != "aten::clone") return {};
    Id<Storage> source;
    for_each_call_in(trace, maker, [&](Id<Op> op) {
        if (source.valid() || evidence.name_of_op(op) != "aten::copy_") return;
        for (const Id<OpTensor> edge : evidence.tensors_of(op)) {
            const Id<Storage> storage =
                trace.tensors.get<&Tensor::storage>(trace.op_tensors.get<&OpTensor::tensor>(edge));
            if (storage != trace.allocations.get<&Allocation::storage>(block)) source = storage;
        }
    });
    return source;
}

DType dtype_of_block(const Evidence& evidence, Id<Allocation> block) {
    const auto tensors = evidence.tensors_of(block);
    return tensors.empty() ? DType::kOther
                           : evidence.trace.tensors.get<&Tensor::dtype>(tensors.front());
}

std::string_view name_of_block(const Evidence& evidence, Id<Allocation> block) {
    const Id<Storage> storage = evidence.trace.allocations.get<&Allocation::storage>(block);
    if (!storage.valid()) return {};
    return evidence.trace.text(evidence.steps.storage_names()[storage.index()]);
}

std::string_view variable_set_by(std::string_view code) {
    const std::size_t equals = code.find(" = ");
    if (equals == code.npos) return {};
    const std::string_view name = code.substr(0, equals);
    const bool is_name =
        std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
    return is_name && !name.empty() && !is_digit(name.front()) ? name : std::string_view();
}

std::string_view variable_of(const Evidence& evidence, Id<Allocation> block) {
    const auto keepers = evidence.keepers_of(block);
    for (const Id<Keeper> id : keepers) {
        const Keeper keeper = evidence.trace.keepers[id];
        const bool is_variable =
            keeper.kind == KeeperKind::kVariable || keeper.kind == KeeperKind::kFrame;
        if (is_variable) return quoted_name(evidence.trace.text(keeper.text));
    }
    if (!keepers.empty()) return {};
    const Id<Stack> stack = evidence.trace.allocations.get<&Allocation::stack>(block);
    const Id<Frame> frame = CallSites::program_frame_of(evidence.trace, stack);
    return variable_set_by(evidence.steps.sites().code_of(frame));
}

std::vector<Id<Frame>> frames_of(const Trace& trace, Id<Stack> stack) {
    std::vector<Id<Frame>> frames;
    while (stack.valid()) {
        const Stack row = trace.stacks[stack];
        frames.push_back(row.frame);
        stack = row.parent < stack ? row.parent : Id<Stack>();  // damaged files may have cycles
    }
    return frames;
}

bool is_in_torch_load(const Trace& trace, Id<Stack> stack) {
    return std::ranges::any_of(frames_of(trace, stack), [&](Id<Frame> id) {
        const Frame frame = trace.frames[id];
        return trace.text(frame.function) == "load" &&
               trace.text(frame.file).ends_with("torch/serialization.py");
    });
}

std::string_view container_in(std::string_view keeper) {
    const std::string_view name = quoted_name(keeper);
    const std::size_t index = name.find('[');
    return index == name.npos ? std::string_view() : name.substr(0, index);
}

std::string_view container_of(const Evidence& evidence, Id<Allocation> block) {
    for (const Id<Keeper> id : evidence.keepers_of(block)) {
        const Keeper keeper = evidence.trace.keepers[id];
        if (keeper.kind != KeeperKind::kContainer) continue;
        const std::string_view name = container_in(evidence.trace.text(keeper.text));
        if (!name.empty()) return name;
    }
    return {};
}

std::string modules_of_block(const Evidence& evidence, Id<Allocation> block) {
    const Trace& trace = evidence.trace;
    const Id<ModulePath> module = module_of(trace, op_that_made(evidence, block));
    if (!module.valid()) return {};
    return any_layer_path(path_of_module(trace, module), layer_path_of(trace, module));
}

std::string place_of_block(const Evidence& evidence, Id<Allocation> block) {
    const Id<Stack> stack = evidence.trace.allocations.get<&Allocation::stack>(block);
    if (evidence.steps.sites().is_of_python(stack)) {
        const std::string line = evidence.line_of(block);  // "train.py:13 <module>"
        const bool is_node = line.starts_with("autograd ");
        if (!is_node) return fmt::format("at {}", line.substr(0, line.rfind(' ')));
    }
    const std::string modules = modules_of_block(evidence, block);
    if (!modules.empty()) return fmt::format("in {}", modules);
    const std::string_view op = evidence.name_of_op(op_that_made(evidence, block));
    return op.empty() ? "outside of ops" : fmt::format("by {}", op);
}

}  // namespace profiler
