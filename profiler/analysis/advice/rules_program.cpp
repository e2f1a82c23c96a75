#include "profiler/analysis/advice/rule_blocks.h"
#include "profiler/analysis/advice/rules.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/growth.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/recomputation.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace profiler {
namespace {

/// What is free and what is cached would have served the request together, and no piece alone does.
std::vector<Finding> find_fragmentation(const Evidence& evidence) {
    if (!evidence.failure.valid() || evidence.asked_bytes == 0) return {};
    const CachedPieces& cached = evidence.cached;
    const int64_t free_bytes =
        std::max<int64_t>(evidence.trace.failures.get<&Failure::free_bytes>(evidence.failure), 0);
    const bool is_enough = cached.total_bytes + free_bytes >= evidence.asked_bytes;
    if (!is_enough || cached.largest_bytes >= evidence.asked_bytes) return {};
    return {{.id = {},
             .sentence = fmt::format(
                 "{} are cached in {} pieces, the largest {}: with the {} that are free they would "
                 "serve the {} that were asked for, if they were one piece",
                 format_bytes(cached.total_bytes), format_count(cached.num),
                 format_bytes(cached.largest_bytes), format_bytes(free_bytes),
                 format_bytes(evidence.asked_bytes)),
             .size_bytes = cached.total_bytes,
             .evidence = {}}};
}

// ---- held past the last use ----------------------------

/// "read last in the loss"
std::string last_use_text(const Evidence& evidence, Id<Allocation> id) {
    const Id<Op> op = evidence.last_use_of(id);
    const std::optional<PhaseKind> kind = phase_kind_of(evidence.trace, op);
    if (find_call(evidence, op, is_loss_call).valid() && kind != PhaseKind::kBackward) {
        return "read last in the loss";
    }
    return kind ? fmt::format("read last in {}", describe(*kind))
                : fmt::format("read last by {}", evidence.name_of_op(op));
}

/// "alive until the next forward". What an error frees says nothing.
std::string end_of_life_text(const Evidence& evidence, Id<Allocation> id) {
    const Trace& trace = evidence.trace;
    const int64_t freed = trace.allocations.get<&Allocation::free_requested_event>(id);
    if (evidence.failure.valid()) return "still alive when memory ran out";
    if (freed < 0) return "alive to the end of the recording";
    const auto kind = PhasesByEvent(trace).kind_at(freed);
    if (!kind) return "alive to the end of the step";
    const bool is_in_next_step =
        evidence.step.valid() && freed >= trace.steps.get<&Step::last_event>(evidence.step);
    if (is_in_next_step && *kind == PhaseKind::kForward) return "alive until the next forward";
    return fmt::format("alive until {}{}", describe(*kind),
                       is_in_next_step ? " of the next step" : "");
}

/// "`logits`, train.py:13,", or without a keeper "`logits`, made at train.py:13,": by the variable
/// that the line sets, else by the tensor's name.
std::string holder_text(const Evidence& evidence, Id<Allocation> id) {
    for (const Id<Keeper> keeper : evidence.keepers_of(id)) {
        const Keeper row = evidence.trace.keepers[keeper];
        if (row.kind == KeeperKind::kCpp || row.kind == KeeperKind::kCollector) continue;
        return fmt::format("{},", evidence.trace.text(row.text));
    }
    std::string_view name = variable_of(evidence, id);
    if (name.empty()) name = name_of_block(evidence, id);
    return fmt::format("{}, made {},", name.empty() ? "a tensor" : fmt::format("`{}`", name),
                       place_of_block(evidence, id));
}

/// Whether torch.load made a block: find_loaded_checkpoint tells of these.
bool is_loaded(const Evidence& evidence, Id<Allocation> id) {
    return is_in_torch_load(evidence.trace, evidence.trace.allocations.get<&Allocation::stack>(id));
}

/// One sentence for each place in the program that makes such blocks.
std::vector<Finding> find_held(const Evidence& evidence, bool of_earlier_steps) {
    const int64_t begin =
        evidence.step.valid() ? evidence.trace.steps.get<&Step::first_event>(evidence.step) : 0;
    Blocks held;
    std::ranges::copy_if(evidence.held, std::back_inserter(held), [&](Id<Allocation> id) {
        const int64_t born = evidence.trace.allocations.get<&Allocation::alloc_event>(id);
        return (born < begin) == of_earlier_steps && !is_loaded(evidence, id);
    });
    std::vector<Finding> found;
    const auto place = [&](Id<Allocation> id) { return place_of_block(evidence, id); };
    for (NamedBlocks& group : group_blocks(evidence, held, place)) {
        const Id<Allocation> largest = group.blocks.front();
        const std::size_t more = group.blocks.size() - 1;
        const std::string keeps =
            fmt::format("{}{} {}", holder_text(evidence, largest),
                        more == 0 ? " keeps" : fmt::format(" and {} more keep", more),
                        format_bytes(group.size_bytes));
        const std::string end_of_life = end_of_life_text(evidence, largest);
        std::string sentence =
            capitalized(evidence.last_use_of(largest).valid()
                            ? fmt::format("{} past the last use: {}, {}", keeps,
                                          last_use_text(evidence, largest), end_of_life)
                            : fmt::format("{} that no recorded op reads: {}", keeps, end_of_life));
        found.push_back(finding_of(evidence, std::move(group.blocks), std::move(sentence)));
    }
    return found;
}

std::vector<Finding> find_held_since_earlier_steps(const Evidence& evidence) {
    return find_held(evidence, true);
}

/// The variables of a training loop live until the loop sets them again: most programs hold their
/// logits so.
std::vector<Finding> find_held_in_this_step(const Evidence& evidence) {
    return find_held(evidence, false);
}

/// A snapshot tells of no ops, and so of no last use: what lists and dictionaries keep when memory
/// has run out, a sentence for each.
std::vector<Finding> find_kept_in_containers(const Evidence& evidence) {
    if (!evidence.trace.ops.empty() || !evidence.failure.valid()) return {};
    Blocks kept = live_where(evidence, [&](Id<Allocation> id) {
        return !container_of(evidence, id).empty() && !is_loaded(evidence, id);
    });
    std::vector<Finding> found;
    const auto name = [&](Id<Allocation> id) { return std::string(container_of(evidence, id)); };
    for (NamedBlocks& group : group_blocks(evidence, kept, name)) {
        const std::size_t more = group.blocks.size() - 1;
        if (more == 0) continue;
        std::string sentence = capitalized(fmt::format("{} and {} more keep {}",
                                                       holder_text(evidence, group.blocks.front()),
                                                       more, format_bytes(group.size_bytes)));
        found.push_back(finding_of(evidence, std::move(group.blocks), std::move(sentence)));
    }
    return found;
}

/// A checkpoint that is loaded onto the GPU lives there beside the tensors that it is copied to.
std::vector<Finding> find_loaded_checkpoint(const Evidence& evidence) {
    const auto is_in_use = [](Category category) {
        return category == Category::kParameter || category == Category::kOptimizerState ||
               category == Category::kWeightCopy || category == Category::kInput;
    };
    Blocks blocks = live_where(evidence, [&](Id<Allocation> id) {
        return !is_in_use(evidence.category_of(id)) && is_loaded(evidence, id);
    });
    if (blocks.empty()) return {};
    std::string sentence = fmt::format(
        "What torch.load has put on the GPU keeps {} {}, beside what it is copied to",
        format_bytes(bytes_of(evidence, blocks)), place_of_block(evidence, blocks.front()));
    return {finding_of(evidence, std::move(blocks), std::move(sentence))};
}

std::vector<Finding> find_growth(const Evidence& evidence) {
    std::vector<Finding> found;
    for (const GrowingLine& line : growing_lines(evidence.trace, evidence.steps.peak())) {
        std::string sentence = fmt::format(
            "{} keeps {} more after each step{}", line.line, format_bytes(line.bytes_per_step),
            line.held_by.empty() ? "" : fmt::format(", held by {}", line.held_by));
        if (line.steps_until_full.value_or(0) > 0) {
            sentence +=
                fmt::format(": memory is full in {} steps", format_count(*line.steps_until_full));
        }
        const auto is_of_line = [&](Id<Allocation> id) {
            return evidence.line_of(id) == line.line;
        };
        found.push_back({.id = {},
                         .sentence = std::move(sentence),
                         .size_bytes = std::accumulate(line.bytes_by_step.begin(),
                                                       line.bytes_by_step.end(), int64_t{0}),
                         .evidence = live_where(evidence, is_of_line)});
    }
    return found;
}

// ---- validation ----------------------------

/// By call: whether backward has a node for it, or for a call in it.
std::vector<bool> calls_with_node(const Evidence& evidence) {
    std::vector<bool> has_node(evidence.trace.ops.size());
    for (const Id<Op> forward : evidence.trace.ops.column<&Op::forward>()) {
        if (forward.valid()) has_node[evidence.outermost(forward).index()] = true;
    }
    return has_node;
}

/// The saves of a step that memory ended before its backward. A validation does not come to one: on
/// lines that no whole step trains on, it saves most of its bytes in the same places again and
/// again. Micro-batches run the lines of the steps before, and their backward frees what they save.
class SavesOfAValidation {
public:
    SavesOfAValidation(const Evidence& evidence, const std::vector<bool>& has_node)
        : evidence_(evidence) {
        for (const Id<Allocation> id : evidence.trace.allocations.ids()) {
            for (const Id<Save> save : evidence.saves_of(id)) {
                const Id<Op> op = op_of(save);
                if (op.valid() && has_node[evidence.outermost(op).index()]) {
                    trained_.insert(stack_of(id));
                }
            }
        }
        std::map<Place, std::vector<Id<Allocation>>> places;
        for (const Id<Allocation> id : evidence.live) {
            if (evidence.is_saved(id) && is_on_new_line(id)) places[place_of(id)].push_back(id);
        }
        int64_t all_bytes = 0, again_bytes = 0;
        for (const auto& [place, blocks] : places) {
            all_bytes += bytes_of(evidence, blocks);
            if (blocks.size() > 1) again_bytes += bytes_of(evidence, blocks);
        }
        exists_ = !trained_.empty() && again_bytes > all_bytes / 2;
    }

    bool contains(Id<Allocation> id) const { return exists_ && is_on_new_line(id); }
    /// Whether a backward follows in another step: of a model that is not trained in each.
    bool is_trained_at_times(Id<Allocation> id) const {
        return stack_of(id).valid() && trained_.contains(stack_of(id));
    }

private:
    using Place = std::tuple<Id<Stack>, Id<ModulePath>, std::string_view>;

    Id<Op> op_of(Id<Save> save) const { return evidence_.trace.saves.get<&Save::op>(save); }
    Id<Stack> stack_of(Id<Allocation> id) const {
        return evidence_.trace.allocations.get<&Allocation::stack>(id);
    }
    bool is_on_new_line(Id<Allocation> id) const {
        return stack_of(id).valid() && !trained_.contains(stack_of(id));
    }
    Place place_of(Id<Allocation> id) const {
        const Id<Op> op = op_of(evidence_.saves_of(id).front());
        const Id<ModulePath> module =
            op.valid() ? evidence_.trace.ops.get<&Op::module_path>(op) : Id<ModulePath>();
        return {stack_of(id), module, evidence_.name_of_op(op)};
    }

    const Evidence& evidence_;
    std::set<Id<Stack>> trained_;
    bool exists_ = false;
};

/// A forward that saves tensors, and whose step ends without a backward through it: a validation, a
/// teacher or a generator that is only looked at, without torch.no_grad().
std::vector<Finding> find_validation_graph(const Evidence& evidence) {
    const Trace& trace = evidence.trace;
    const std::vector<bool> has_node = calls_with_node(evidence);
    // A backward without nodes is one of which the trace tells no more.
    const auto phases = trace.phases.column<&Phase::kind>();
    const bool has_backward = std::ranges::find(phases, PhaseKind::kBackward) != phases.end();
    if (has_backward && std::ranges::find(has_node, true) == has_node.end()) return {};
    const SavesOfAValidation validation(evidence, has_node);
    const auto is_in_vain = [&](Id<Allocation> id, Id<Save> save) {
        const Id<Op> op = trace.saves.get<&Save::op>(save);
        const bool is_of_checkpoint = evidence.name_of_op(op) == kInputsOfCheckpoint;
        if (phase_kind_of(trace, op) != PhaseKind::kForward || is_of_checkpoint) return false;
        const Id<Step> step = step_of_op(trace, op);
        if (!step.valid() || has_node[evidence.outermost(op).index()]) return false;
        if (kind_of(trace, step) == StepKind::kBroken) return validation.contains(id);
        return !validation.is_trained_at_times(id);
    };
    Blocks blocks = live_where(evidence, [&](Id<Allocation> id) {
        return evidence.category_of(id) == Category::kActivation && evidence.is_saved(id) &&
               std::ranges::all_of(evidence.saves_of(id),
                                   [&](Id<Save> save) { return is_in_vain(id, save); });
    });
    if (blocks.empty()) return {};
    const bool is_cut_off =
        std::ranges::any_of(blocks, [&](Id<Allocation> id) { return validation.contains(id); });
    std::string sentence = fmt::format(
        "A forward saves {} for a backward that {}, the most {}: {} without torch.no_grad()",
        format_bytes(bytes_of(evidence, blocks)), is_cut_off ? "does not come" : "never comes",
        place_of_block(evidence, blocks.front()),
        is_cut_off ? "if it is a validation, it runs" : "it runs");
    return {finding_of(evidence, std::move(blocks), std::move(sentence))};
}

/// Smaller ones join a few numbers of each batch.
constexpr double kLeastShareOfOutputs = 0.1;

/// Whether it joins tensors outside of models, in no backward and no update.
bool is_cat_of_program(const Evidence& evidence, Id<Op> op) {
    const auto is_cat = [](std::string_view op_name) { return op_name == "aten::cat"; };
    const std::optional<PhaseKind> kind = phase_kind_of(evidence.trace, op);
    return find_call(evidence, op, is_cat).valid() && !module_of(evidence.trace, op).valid() &&
           (!kind || kind == PhaseKind::kForward || kind == PhaseKind::kLoss);
}

/// A validation that keeps the logits of all batches and joins them holds them twice.
std::vector<Finding> find_concatenated_outputs(const Evidence& evidence) {
    Blocks blocks = live_where(evidence, [&](Id<Allocation> id) {
        return !evidence.is_saved(id) && is_cat_of_program(evidence, op_that_made(evidence, id));
    });
    const bool is_asked =
        evidence.failure.valid() &&
        is_cat_of_program(evidence, evidence.trace.failures.get<&Failure::op>(evidence.failure));
    const int64_t size_bytes = bytes_of(evidence, blocks) + (is_asked ? evidence.asked_bytes : 0);
    const int64_t needed_bytes = evidence.allocated_bytes + evidence.asked_bytes;
    if (static_cast<double>(size_bytes) <
        kLeastShareOfOutputs * static_cast<double>(needed_bytes)) {
        return {};
    }
    const std::string place = blocks.empty() ? "" : place_of_block(evidence, blocks.front()) + " ";
    return {{.id = {},
             .sentence = fmt::format("torch.cat {}joins outputs into {}, beside its parts", place,
                                     format_bytes(size_bytes)),
             .size_bytes = size_bytes,
             .evidence = std::move(blocks)}};
}

// ---- batches of a sweep ----------------------------

/// With fewer batches a jump cannot be told from a slope.
constexpr std::size_t kFewestPoints = 4;
/// Of the peak. A step that rounds up differently jumps by less.
constexpr double kLeastJump = 0.05;

struct Jump {
    SweepPoint below, above;
    int64_t extra_bytes = 0;  // beyond the slope of the other batches
};

std::vector<SweepPoint> points_by_batch(const Trace& trace) {
    std::vector<SweepPoint> points;
    for (const SweepPoint point : trace.sweep_points.rows()) {
        if (point.outcome == SweepOutcome::kOk && point.peak_allocated_bytes > 0) {
            points.push_back(point);
        }
    }
    std::ranges::sort(points, {}, &SweepPoint::batch_size);
    return points;
}

/// Between which neighbours the peak leaves the median slope most.
Jump largest_jump(const std::vector<SweepPoint>& points) {
    std::vector<double> slopes;
    for (std::size_t i = 1; i < points.size(); ++i) {
        const auto rise = static_cast<double>(points[i].peak_allocated_bytes -
                                              points[i - 1].peak_allocated_bytes);
        const int64_t step = points[i].batch_size - points[i - 1].batch_size;
        slopes.push_back(rise / static_cast<double>(std::max<int64_t>(step, 1)));
    }
    std::vector<double> sorted = slopes;
    std::ranges::sort(sorted);
    const double median = sorted[sorted.size() / 2];
    Jump jump;
    for (std::size_t i = 1; i < points.size(); ++i) {
        const auto step = static_cast<double>(points[i].batch_size - points[i - 1].batch_size);
        const auto extra_bytes = static_cast<int64_t>((slopes[i - 1] - median) * step);
        if (std::abs(extra_bytes) <= std::abs(jump.extra_bytes)) continue;
        jump = {points[i - 1], points[i], extra_bytes};
    }
    return jump;
}

/// Libraries choose an algorithm by size: cuDNN another convolution, cuBLAS another workspace.
std::vector<Finding> find_algorithm_jump(const Evidence& evidence) {
    const std::vector<SweepPoint> points = points_by_batch(evidence.trace);
    if (points.size() < kFewestPoints) return {};
    const Jump jump = largest_jump(points);
    const int64_t size_bytes = std::abs(jump.extra_bytes);
    const auto peak_bytes = static_cast<double>(jump.above.peak_allocated_bytes);
    if (static_cast<double>(size_bytes) <= kLeastJump * peak_bytes) return {};
    return {
        {.id = {},
         .sentence = fmt::format("From batch {} to {} the peak changes by {} {} than the other "
                                 "batches say: a library takes another algorithm there",
                                 jump.below.batch_size, jump.above.batch_size,
                                 format_bytes(size_bytes), jump.extra_bytes > 0 ? "more" : "less"),
         .size_bytes = size_bytes,
         .evidence = {}}};
}

constexpr std::array kProgramRules{
    Rule{"fragmentation", find_fragmentation},
    Rule{"held_past_use", find_held_since_earlier_steps},
    Rule{"held_past_use", find_held_in_this_step, Asked::kWhenShort},
    Rule{"held_past_use", find_kept_in_containers},
    Rule{"loaded_checkpoint", find_loaded_checkpoint},
    Rule{"growth", find_growth},
    Rule{"validation_graph", find_validation_graph},
    Rule{"concatenated_logits", find_concatenated_outputs},
    Rule{"algorithm_jump", find_algorithm_jump},
};

}  // namespace

std::span<const Rule> rules_of_program() { return kProgramRules; }

}  // namespace profiler
