#include "profiler/analysis/advice/remedies.h"
#include "profiler/analysis/advice/rule_blocks.h"
#include "profiler/analysis/advice/rules.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

namespace profiler {
namespace {

// ---- lines of the program ----------------------------------------------------------------------

struct ProgramLine {
    std::string file;
    int64_t line = 0;
    std::string_view code;
};

std::optional<ProgramLine> line_of(const Trace& trace, Id<Allocation> block) {
    const Id<Stack> stack = trace.allocations.get<&Allocation::stack>(block);
    const Id<Frame> id = CallSites::program_frame_of(trace, stack);
    if (!id.valid()) return std::nullopt;
    const Frame frame = trace.frames[id];
    return ProgramLine{std::string(trace.text(frame.file)), frame.line, trace.text(frame.code)};
}

/// What is made once, before all steps, may be read in each of them.
bool is_older_than_steps(const Trace& trace, Id<Allocation> block) {
    return trace.steps.empty() || trace.allocations.get<&Allocation::alloc_event>(block) <
                                      trace.steps.get<&Step::first_event>(Id<Step>(0));
}

/// The line of the last op that touches a block: that of what the op, or a call in it, allocated.
std::optional<ProgramLine> line_of_last_use(const Evidence& evidence, Id<Allocation> block) {
    const Id<Op> around = evidence.outermost(evidence.last_use_of(block));
    std::optional<ProgramLine> found;
    const auto look_at = [&](Id<Op> op) {
        for (const Id<Allocation> made : evidence.steps.calls().allocations_of(op)) {
            if (!found) found = line_of(evidence.trace, made);
        }
    };
    if (!around.valid()) return found;
    look_at(around);
    for_each_call_in(evidence.trace, around, look_at);
    return found;
}

// ---- changes -----------------------------------------------------------------------------------

/// Frees each block where its last use ends.
Changes freed_after_last_use(const RemedyCase& which, const Blocks& blocks) {
    const Evidence& evidence = which.evidence;
    Changes changes;
    for (const Id<Allocation> id : blocks) {
        const uint32_t block = which.steps.block_of(id);
        const Id<Op> last = evidence.outermost(evidence.last_use_of(id));
        if (block == ProgramBlock::kNone || !last.valid()) continue;
        changes.of_block[block].free_event =
            std::max(which.steps.event_at_end_of(last), which.steps.block(block).alloc_event);
    }
    return changes;
}

Changes scaled_blocks(const RemedyCase& which, const Blocks& blocks, double scale) {
    Changes changes;
    for (const Id<Allocation> id : blocks) {
        const uint32_t block = which.steps.block_of(id);
        if (block != ProgramBlock::kNone) changes.of_block[block].scale = scale;
    }
    return changes;
}

// ---- remedies ----------------------------------------------------------------------------------

/// Of such a line keep_less tells.
bool is_on_growing_line(const RemedyCase& which, Id<Allocation> block) {
    const std::string line = which.evidence.line_of(block);
    return std::ranges::find(which.growth, line, &GrowingLine::line) != which.growth.end();
}

std::vector<Candidate> delete_after_use(const RemedyCase& which) {
    const Evidence& evidence = which.evidence;
    std::vector<Candidate> remedies;
    for (const Finding& finding : find_unusual(evidence, "held_past_use")) {
        const Id<Allocation> block = finding.evidence.front();
        if (is_on_growing_line(which, block)) continue;
        if (evidence.keepers_of(block).empty() && is_older_than_steps(evidence.trace, block)) {
            continue;
        }
        // Ops without tensors in the trace, such as an index, read it later: nobody knows where.
        const Id<Op> maker = evidence.trace.allocations.get<&Allocation::op>(block);
        if (evidence.outermost(evidence.last_use_of(block)) == evidence.outermost(maker)) continue;
        const std::string_view name = variable_of(evidence, block);
        const Changes changes = freed_after_last_use(which, finding.evidence);
        if (name.empty() || changes.empty()) continue;
        const auto place = line_of_last_use(evidence, block);
        Remedy remedy{
            .title = fmt::format("Delete `{}` after its last use", name),
            .sentence = "The variable keeps the tensor alive, and nothing reads it again.",
            .change = {.kind = RemedyChange::Kind::kEdit, .text = fmt::format("del {}", name)},
            .code_lines = 1};
        if (place) {
            remedy.change.file = place->file;
            remedy.change.line = place->line;
        }
        remedies.push_back(estimated(which, std::move(remedy), changes));
    }
    return remedies;
}

/// What a list gathers, as the outputs of a validation, is seldom read on the GPU again.
std::vector<Candidate> move_to_host(const RemedyCase& which) {
    std::vector<Candidate> remedies;
    for (const Finding& finding : find_unusual(which.evidence, "held_past_use")) {
        const std::string_view name = container_of(which.evidence, finding.evidence.front());
        const bool has_ops = !which.evidence.trace.ops.empty();
        const Changes changes = has_ops ? freed_after_last_use(which, finding.evidence)
                                        : scaled_blocks(which, finding.evidence, 0);
        if (name.empty() || changes.empty()) continue;
        if (is_on_growing_line(which, finding.evidence.front())) continue;
        remedies.push_back(estimated(
            which,
            {.title = fmt::format("Keep `{}` outside of the GPU", name),
             .sentence = fmt::format("{}hing reads what `{}` keeps on the GPU again{} copy each "
                                     "tensor to host memory before it goes in, or keep less of it.",
                                     has_ops ? "Not" : "If not", name, has_ops ? ":" : ","),
             .change = {.kind = RemedyChange::Kind::kEdit, .text = "tensor.detach().cpu()"},
             .code_lines = 1},
            changes));
    }
    return remedies;
}

/// The checkpoint's tensors wait in host memory, and so does the tensor that memory ran out for.
std::vector<Candidate> load_on_host(const RemedyCase& which) {
    const Evidence& evidence = which.evidence;
    std::vector<Candidate> remedies;
    for (const Finding& finding : find_unusual(evidence, "loaded_checkpoint")) {
        Changes changes = scaled_blocks(which, finding.evidence, 0);
        const bool is_asked =
            evidence.failure.valid() &&
            is_in_torch_load(evidence.trace,
                             evidence.trace.failures.get<&Failure::stack>(evidence.failure));
        if (is_asked) changes.of_block[which.steps.failed()].scale = 0;
        remedies.push_back(estimated(
            which,
            {.sentence = "The checkpoint's tensors go to host memory, and load_state_dict copies "
                         "them to the GPU one after another.",
             .change = {.kind = RemedyChange::Kind::kEdit,
                        .text = "torch.load(file, map_location=\"cpu\")"},
             .code_lines = 1},
            changes));
    }
    return remedies;
}

Blocks temporaries_of_optimizer(const Evidence& evidence) {
    const std::vector<Finding> found = find_unusual(evidence, "optimizer_peak");
    return found.empty() ? Blocks() : found.front().evidence;
}

/// "adam.py": the optimizer of torch whose code made the first of the blocks. Empty: another one,
/// or a trace without stacks.
std::string_view optimizer_of_torch(const Evidence& evidence, const Blocks& blocks) {
    constexpr std::string_view kFolder = "torch/optim/";
    constexpr std::string_view kBase = "optimizer.py";  // runs the step of any optimizer
    const Trace& trace = evidence.trace;
    const Id<Stack> stack = trace.allocations.get<&Allocation::stack>(blocks.front());
    for (const Id<Frame> frame : frames_of(trace, stack)) {
        const std::string_view file = trace.text(trace.frames.get<&Frame::file>(frame));
        const std::size_t folder = file.find(kFolder);
        if (folder != file.npos && !file.ends_with(kBase)) {
            return file.substr(folder + kFolder.size());
        }
    }
    return {};
}

bool has_stack(const Evidence& evidence, Id<Allocation> block) {
    return evidence.trace.allocations.get<&Allocation::stack>(block).valid();
}

std::vector<Candidate> fused_optimizer(const RemedyCase& which) {
    const Blocks temporaries = temporaries_of_optimizer(which.evidence);
    if (temporaries.empty()) return {};
    const std::string_view optimizer = optimizer_of_torch(which.evidence, temporaries);
    const bool has_fused_kernel =
        optimizer == "adam.py" || optimizer == "adamw.py" || optimizer == "sgd.py";
    if (has_stack(which.evidence, temporaries.front()) && !has_fused_kernel) return {};
    return {estimated(which,
                      {.sentence = "Give this to the optimizer: one kernel then updates all "
                                   "parameters in place, without temporaries.",
                       .change = {.kind = RemedyChange::Kind::kEdit, .text = "fused=True"},
                       .code_lines = 1},
                      scaled_blocks(which, temporaries, 0))};
}

/// A loop over parameters has the temporaries of one parameter at a time. A program that has such a
/// loop already makes none for all of them.
std::vector<Candidate> one_parameter_at_a_time(const RemedyCase& which) {
    Blocks temporaries = temporaries_of_optimizer(which.evidence);
    std::erase_if(temporaries, [&](Id<Allocation> id) {
        const Id<Op> maker = op_that_made(which.evidence, id);
        return !find_call(which.evidence, maker, is_foreach_call).valid();
    });
    if (temporaries.size() < 2) return {};
    const bool is_of_torch = !optimizer_of_torch(which.evidence, temporaries).empty();
    if (has_stack(which.evidence, temporaries.front()) && !is_of_torch) return {};
    temporaries.erase(temporaries.begin());  // the largest stays
    return {estimated(which,
                      {.sentence = "Give this to the optimizer: a loop then makes temporaries of "
                                   "one parameter at a time. It launches more kernels.",
                       .change = {.kind = RemedyChange::Kind::kEdit, .text = "foreach=False"},
                       .code_lines = 1},
                      scaled_blocks(which, temporaries, 0))};
}

/// With grouped queries torch's math backend repeats keys and values.
bool has_grouped_queries(const Evidence& evidence) {
    for (const Id<Op> op : evidence.trace.ops.ids()) {
        if (evidence.name_of_op(op) != "aten::repeat_interleave") continue;
        if (find_call(evidence, op, is_math_attention).valid()) return true;
    }
    return false;
}

/// A fused kernel has no scores, nor what is computed of them: of N scores 4N bytes in float32, and
/// masks of N bytes. Heads are far smaller where scores weigh much.
std::vector<Candidate> repeat_heads(const RemedyCase& which) {
    const Evidence& evidence = which.evidence;
    const std::vector<Finding> found = find_unusual(evidence, "math_attention");
    if (found.empty() || !has_grouped_queries(evidence)) return {};
    const int64_t mask_bytes = evidence.bytes_of(found.front().evidence.front()) / 4;
    Blocks scores;
    for (const uint32_t block : which.steps.step_blocks()) {
        const Id<Allocation> row = which.steps.block(block).row;
        if (row.valid() && evidence.bytes_of(row) >= mask_bytes &&
            is_made_in(evidence, row, is_math_attention)) {
            scores.push_back(row);
        }
    }
    const Changes changes = scaled_blocks(which, scores, 0);
    if (changes.empty()) return {};
    return {estimated(which,
                      {.sentence = "A fused kernel takes keys and values that the program repeats, "
                                   "without enable_gqa. It keeps no scores.",
                       .change = {.kind = RemedyChange::Kind::kEdit,
                                  .text = "key, value = (x.repeat_interleave(query.size(-3) // "
                                          "x.size(-3), -3) for x in (key, value))"},
                       .code_lines = 2},
                      changes)};
}

/// Gradients of the step before that live in forward are zeros, unless several backwards add up.
std::vector<Candidate> free_gradients(const RemedyCase& which) {
    const Evidence& evidence = which.evidence;
    if (evidence.phase_kind() != PhaseKind::kForward || !evidence.step.valid()) return {};
    const auto micro_batches = micro_batches_of(evidence.trace);
    if (micro_batches.value_or(1) != 1) return {};
    Changes changes;
    for (const Id<Allocation> id : evidence.live) {
        const uint32_t block = which.steps.block_of(id);
        const bool is_old = block != ProgramBlock::kNone &&
                            which.steps.block(block).alloc_event < which.steps.step_begin();
        if (!is_old || evidence.category_of(id) != Category::kGradient) continue;
        changes.of_block[block].free_event = which.steps.step_begin() - 1;
    }
    if (changes.empty()) return {};
    return {estimated(which,
                      {.sentence = "Gradients of the step before live through forward as zeros.",
                       .change = {.kind = RemedyChange::Kind::kEdit,
                                  .text = "optimizer.zero_grad(set_to_none=True)"},
                       .code_lines = 1},
                      changes)};
}

/// A gradient that is a view of its bucket lives elsewhere only until it has been copied there.
std::vector<Candidate> view_buckets(const RemedyCase& which) {
    const Evidence& evidence = which.evidence;
    const std::vector<Finding> found = find_unusual(evidence, "ddp_buckets");
    if (found.empty()) return {};
    const Blocks& buckets = found.front().evidence;
    Changes changes;
    for (const uint32_t block : which.steps.step_blocks()) {
        const Id<Allocation> row = which.steps.block(block).row;
        const bool is_gradient = row.valid() && evidence.category_of(row) == Category::kGradient &&
                                 std::ranges::find(buckets, row) == buckets.end();
        if (!is_gradient) continue;
        changes.of_block[block].free_event = which.steps.block(block).alloc_event;
    }
    if (changes.empty()) return {};
    return {estimated(which,
                      {.sentence = "Gradients are views of DDP's buckets, not tensors beside them.",
                       .change = {.kind = RemedyChange::Kind::kEdit,
                                  .text = "DistributedDataParallel(model, "
                                          "gradient_as_bucket_view=True)"},
                       .code_lines = 1},
                      changes)};
}

struct ProgramFunction {
    std::string_view file, name;
    bool operator==(const ProgramFunction&) const = default;
};

/// The functions of the program that a stack runs through, outermost first.
std::vector<ProgramFunction> functions_around(const Evidence& evidence, Id<Allocation> block) {
    const Trace& trace = evidence.trace;
    std::vector<ProgramFunction> functions;
    for (const Id<Frame> id : frames_of(trace, trace.allocations.get<&Allocation::stack>(block))) {
        if (evidence.steps.sites().kind_of(id) != CallSites::FrameKind::kProgram) continue;
        const Frame frame = trace.frames[id];
        functions.push_back({trace.text(frame.file), trace.text(frame.function)});
    }
    std::ranges::reverse(functions);
    return functions;
}

/// The innermost function of the program in which all blocks were made, but for forwards of
/// modules. Without a name: they were made in no such function.
ProgramFunction function_around_all(const Evidence& evidence, const Blocks& blocks) {
    std::vector<ProgramFunction> shared = functions_around(evidence, blocks.front());
    for (const Id<Allocation> block : blocks) {
        const std::vector<ProgramFunction> own = functions_around(evidence, block);
        const auto [end, unused] = std::ranges::mismatch(shared, own);
        shared.erase(end, shared.end());
    }
    const auto is_statement = [](const ProgramFunction& function) {
        return function.name == "forward" || function.name.starts_with('<');
    };
    while (!shared.empty() && is_statement(shared.back())) shared.pop_back();
    return shared.empty() ? ProgramFunction() : shared.back();
}

/// Whether the program trains in a function, too: without gradients it could not.
bool trains_in(const Evidence& evidence, const ProgramFunction& function) {
    const Trace& trace = evidence.trace;
    std::set<Id<Stack>> seen;
    for (const Id<Allocation> block : trace.allocations.ids()) {
        const auto kind = phase_kind_of(trace, op_that_made(evidence, block));
        const bool is_of_training = kind == PhaseKind::kBackward || kind == PhaseKind::kOptimizer;
        const bool is_new =
            is_of_training && seen.insert(trace.allocations.get<&Allocation::stack>(block)).second;
        if (!is_new) continue;
        const auto around = functions_around(evidence, block);
        if (std::ranges::find(around, function) != around.end()) return true;
    }
    return false;
}

/// "Without gradients a forward saves nothing for a backward: above `def evaluate` in val.py."
Remedy without_gradients(const Evidence& evidence, const Blocks& blocks) {
    const ProgramFunction function = function_around_all(evidence, blocks);
    const bool is_named = !function.name.empty() && !trains_in(evidence, function);
    const std::string place = is_named
                                  ? fmt::format("above `def {}` in {}", function.name,
                                                function.file.substr(function.file.rfind('/') + 1))
                                  : "around the validation";
    return {.sentence =
                fmt::format("Without gradients a forward saves nothing for a backward: {}.", place),
            .change = {.kind = RemedyChange::Kind::kEdit,
                       .text = is_named ? "@torch.no_grad()" : "with torch.no_grad():"},
            .code_lines = 1};
}

std::vector<Candidate> validate_without_gradients(const RemedyCase& which) {
    std::vector<Candidate> remedies;
    for (const Finding& finding : find_unusual(which.evidence, "validation_graph")) {
        const Changes changes = freed_after_last_use(which, finding.evidence);
        if (changes.empty()) continue;
        remedies.push_back(
            estimated(which, without_gradients(which.evidence, finding.evidence), changes));
    }
    return remedies;
}

/// What a line has left behind in the steps before is freed with its step.
Changes freed_with_their_step(const RemedyCase& which, const GrowingLine& line) {
    const Trace& trace = which.evidence.trace;
    Changes changes;
    for (const Id<Allocation> id : which.evidence.live) {
        const uint32_t block = which.steps.block_of(id);
        if (block == ProgramBlock::kNone || which.evidence.line_of(id) != line.line) continue;
        const int64_t born = which.steps.block(block).alloc_event;
        for (const Id<Step> step : trace.steps.ids()) {
            const int64_t end = trace.steps.get<&Step::last_event>(step);
            const bool is_over = end <= which.steps.step_begin();
            if (born >= trace.steps.get<&Step::first_event>(step) && born < end && is_over) {
                changes.of_block[block].free_event = end - 1;
            }
        }
    }
    return changes;
}

std::vector<Candidate> keep_less(const RemedyCase& which) {
    std::vector<Candidate> remedies;
    for (const GrowingLine& line : which.growth) {
        const std::string_view container = container_in(line.held_by);
        const std::string_view name = container.empty() ? variable_set_by(line.code) : container;
        const Changes changes = freed_with_their_step(which, line);
        if (name.empty() || changes.empty()) continue;
        const std::string holder = line.held_by.empty() ? "the program" : line.held_by;
        remedies.push_back(estimated(
            which,
            {.title = fmt::format("Keep `{}` outside of the GPU", name),
             .sentence = fmt::format("It grows by {} a step, held by {}: keep a number, or a copy "
                                     "without its graph in host memory.",
                                     format_bytes(line.bytes_per_step), holder),
             .change = {.kind = RemedyChange::Kind::kEdit,
                        .text =
                            fmt::format("{}.detach().cpu()", container.empty() ? name : "tensor")},
             .code_lines = 1},
            changes));
    }
    return remedies;
}

constexpr std::array kProgramRemedies{
    RemedyRow{"delete_after_use", "Delete after the last use", "held_past_use", delete_after_use},
    RemedyRow{"move_to_host", "Keep it outside of the GPU", "held_past_use", move_to_host},
    RemedyRow{"load_on_host", "Load the checkpoint into host memory", "loaded_checkpoint",
              load_on_host},
    RemedyRow{"fused_optimizer", "Update in one kernel", "optimizer_peak", fused_optimizer},
    RemedyRow{"one_parameter_at_a_time", "Update one parameter at a time", "optimizer_peak",
              one_parameter_at_a_time},
    RemedyRow{"repeat_heads", "Repeat keys and values for each head", "math_attention",
              repeat_heads},
    RemedyRow{"set_to_none", "Free gradients before forward", "", free_gradients},
    RemedyRow{"view_buckets", "Keep gradients in DDP's buckets", "ddp_buckets", view_buckets},
    RemedyRow{"no_grad", "Validate without gradients", "validation_graph",
              validate_without_gradients},
    RemedyRow{"keep_less", "Keep less from step to step", "growth", keep_less},
};

}  // namespace

std::span<const RemedyRow> remedies_of_program() { return kProgramRemedies; }

}  // namespace profiler
