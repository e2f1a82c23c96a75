#include "profiler/view/selected/inspector_view.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/ledger_match.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/trace/units.h"
#include "profiler/view/kernels/kernels_view.h"
#include "profiler/view/layers/layer_flow.h"
#include "profiler/view/memory/block_groups.h"
#include "profiler/view/memory/timeline_view.h"
#include "profiler/view/peak/ledger_view.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace profiler {
namespace {

/// The last step that began before an event; none before the first one.
std::optional<std::size_t> step_of(const Trace& trace, int64_t event) {
    const auto first = trace.steps.column<&Step::first_event>();
    const auto after = std::ranges::upper_bound(first, event);
    if (after == first.begin()) return std::nullopt;
    return static_cast<std::size_t>(after - first.begin()) - 1;
}

int64_t layer_of(const Trace& trace, Id<Op> op) {
    const Id<ModulePath> module = op.valid() ? module_of(trace, op) : Id<ModulePath>();
    return module.valid() ? trace.module_paths.get<&ModulePath::layer>(module) : -1;
}

/// The step of the share and of the peak: the step that made the block, else the last step.
std::optional<Step> step_around(const Trace& trace, const Allocation& block) {
    if (trace.steps.empty()) return std::nullopt;
    return trace
        .steps[Id<Step>(step_of(trace, block.alloc_event).value_or(trace.steps.size() - 1))];
}

double share_of_step(const std::optional<Step>& step, int64_t start_ns, int64_t end_ns) {
    if (!step || step->end_ns <= step->start_ns) return 0;
    const auto held_ns =
        static_cast<double>(std::min(end_ns, step->end_ns) - std::max(start_ns, step->start_ns));
    return std::clamp(held_ns / static_cast<double>(step->end_ns - step->start_ns), 0.0, 1.0);
}

/// After how many changes the step, or the trace without one, holds most.
uint32_t rank_of_peak(const BlockHistory& history, const std::optional<Step>& step) {
    uint32_t rank = step ? history.first_change_at(step->start_ns) : 0;
    const uint32_t end = step ? history.first_change_after(step->end_ns)
                              : static_cast<uint32_t>(history.change_count());
    uint32_t highest = rank;
    int64_t live_bytes = 0, most_bytes = 0;  // beyond those at the begin of the step
    while (rank < end) {
        const BlockHistory::Change change = history.change(rank++);
        const int64_t size_bytes = history.size_bytes(change.block);
        live_bytes += change.is_free ? -size_bytes : size_bytes;
        if (live_bytes <= most_bytes) continue;
        most_bytes = live_bytes;
        highest = rank;
    }
    return highest;
}

/// Whether b is freed before a. Backward runs the last layer first. Where phases and layers do not
/// tell, the share of the step does.
bool is_freed_earlier(const TensorLife& b, const TensorLife& a) {
    if (!a.freed || !b.freed) return b.freed.has_value() && !a.freed;
    const StepPlace &of_b = *b.freed, &of_a = *a.freed;
    if (of_b.steps_later != of_a.steps_later) return of_b.steps_later < of_a.steps_later;
    if (of_b.phase && of_a.phase) {
        if (of_b.phase != of_a.phase) return of_b.phase < of_a.phase;
        if (of_b.layer >= 0 && of_a.layer >= 0 && of_b.layer != of_a.layer) {
            return (of_b.layer < of_a.layer) == (of_b.phase != PhaseKind::kBackward);
        }
    }
    return b.share_of_step < a.share_of_step;
}

/// Whether autograd keeps a tensor of an earlier step is known only if it still does.
bool differ_in_saves(const TensorLife& a, const TensorLife& b) {
    const auto is_known = [](const TensorLife& life) {
        return life.is_saved || life.is_in_ledger_step;
    };
    return a.is_saved != b.is_saved && is_known(a) && is_known(b);
}

/// What a tensor is alive across, whatever the time it takes.
bool lives_across_the_same(const TensorLife& a, const TensorLife& b) {
    return !differ_in_saves(a, b) && a.is_at_peak == b.is_at_peak && a.made == b.made &&
           a.freed == b.freed;
}

std::string until_text(const TensorLife& life) {
    if (!life.freed) return "to the end";
    const std::string place = text_of(*life.freed);
    return place.empty() ? "" : "until " + place;
}

/// " keeps it for backward, until backward of layer 3"
std::string keeps_text(const TensorLife& life) {
    const std::string until = until_text(life);
    const std::string_view what = life.is_saved ? " keeps it for backward" : " holds it";
    if (until.empty()) return std::string(what);
    return fmt::format("{}{} {}", what, life.is_saved ? "," : "", until);
}

std::string frees_text(const TensorLife& life) {
    const std::string place = life.freed ? text_of(*life.freed) : "";
    return place.empty() ? " frees it earlier" : " frees it in " + place;
}

/// In one sentence each: how many bytes, when it is freed, and whether it is there at the peak.
std::string difference_text(const TensorLife& a, const TensorLife& b) {
    std::string text;
    const auto add = [&](const std::string& sentence) {
        text += (text.empty() ? "" : " ") + sentence;
    };
    if (a.size_bytes != b.size_bytes) {
        add(fmt::format("B {} it in {} instead of {}.", b.is_saved ? "keeps" : "holds",
                        format_bytes(b.size_bytes), format_bytes(a.size_bytes)));
    }
    if (a.made != b.made && !text_of(a.made).empty() && !text_of(b.made).empty()) {
        add(fmt::format("B makes it in {}, A in {}.", text_of(b.made), text_of(a.made)));
    }
    if (a.freed != b.freed) {
        add(is_freed_earlier(b, a) ? fmt::format("B{}; A{}.", frees_text(b), keeps_text(a))
                                   : fmt::format("A{}; B{}.", frees_text(a), keeps_text(b)));
    } else if (differ_in_saves(a, b)) {
        add(fmt::format("{} keeps it for backward, {} does not.", a.is_saved ? "A" : "B",
                        a.is_saved ? "B" : "A"));
    }
    if (a.is_at_peak != b.is_at_peak) {
        add(fmt::format("It is there at the peak of {}, not at the peak of {}.",
                        a.is_at_peak ? "A" : "B", a.is_at_peak ? "B" : "A"));
    }
    return text;
}

}  // namespace

std::string text_of(const StepPlace& place) {
    if (!place.phase) return {};
    std::string text(name_of(*place.phase));
    if (place.layer >= 0) text += fmt::format(" of layer {}", place.layer);
    if (place.steps_later == 1) text += " of the next step";
    if (place.steps_later > 1) text += fmt::format(", {} steps later", place.steps_later);
    return text;
}

TensorLife life_of(const Trace& trace, const BlockHistory& history, Id<Allocation> allocation,
                   bool is_saved) {
    const Allocation block = trace.allocations[allocation];
    const std::optional<Step> step = step_around(trace, block);
    const int64_t freed_event = block.free_requested_event;
    const bool is_freed = freed_event >= 0 && block.free_requested_ns >= 0;
    const int64_t last_ns = trace.steps.empty()
                                ? block.alloc_ns
                                : trace.steps.get<&Step::end_ns>(Id<Step>(trace.steps.size() - 1));
    const int64_t end_ns = is_freed ? block.free_requested_ns : std::max(last_ns, block.alloc_ns);
    const PhasesByEvent phases(trace);
    TensorLife life{
        .size_bytes = block.requested_bytes,
        .is_saved = is_saved,
        .is_in_ledger_step = block.alloc_ns >= start_of_ledger_step(trace),
        .made = {.phase = phases.kind_at(block.alloc_event), .layer = layer_of(trace, block.op)},
        .lifetime_ns = end_ns - block.alloc_ns,
        .share_of_step = share_of_step(step, block.alloc_ns, end_ns)};
    if (is_freed) {
        const auto made = step_of(trace, block.alloc_event), freed = step_of(trace, freed_event);
        life.freed = {.phase = phases.kind_at(freed_event),
                      .layer = layer_of(trace, block.freeing_op),
                      .steps_later = made && freed ? static_cast<int64_t>(*freed - *made) : 0};
        life.freeing_op = block.freeing_op;
    }
    const uint32_t index = history.block_of(allocation);
    life.is_at_peak =
        index != BlockHistory::kNone && history.is_live(index, rank_of_peak(history, step));
    return life;
}

std::string length_text(const TensorLife& life) {
    std::string text = life.freed ? format_duration(life.lifetime_ns) : "to the end";
    constexpr double kReadsAsNone = 0.0005, kReadsAsAll = 0.9995;
    if (life.share_of_step >= kReadsAsAll) return text + ", the whole step";
    if (life.share_of_step < kReadsAsNone) return text;
    return text + fmt::format(", {} of the step", format_percent(life.share_of_step));
}

TensorFate compare_lives(const TensorLife* a, const TensorLife* b) {
    if (!a) return {Fate::kAdded, fmt::format("A does not {} it.", b->is_saved ? "keep" : "hold")};
    if (!b) return {Fate::kGone, fmt::format("B does not {} it.", a->is_saved ? "keep" : "hold")};
    if (a->size_bytes == b->size_bytes && lives_across_the_same(*a, *b)) {
        const std::string until = until_text(*b);
        return {Fate::kSame, fmt::format("B {} the same{}.", b->is_saved ? "keeps" : "holds",
                                         until.empty() ? "" : ", also " + until)};
    }
    return {.fate = b->size_bytes < a->size_bytes   ? Fate::kSmaller
                    : b->size_bytes > a->size_bytes ? Fate::kLarger
                    : a->freed == b->freed          ? Fate::kOther
                    : is_freed_earlier(*b, *a)      ? Fate::kShorter
                                                    : Fate::kLonger,
            .text = difference_text(*a, *b)};
}

namespace {

Id<Allocation> allocation_of(const Trace& trace, Id<Storage> storage) {
    const auto storages = trace.allocations.column<&Allocation::storage>();
    const auto found = std::ranges::find(storages, storage);
    return found == storages.end()
               ? Id<Allocation>()
               : Id<Allocation>(static_cast<std::size_t>(found - storages.begin()));
}

/// What backward does in B without a tensor that A keeps: " Backward of gelu uses gelu_output,
/// branch_mask." Empty if the calls of the layer do not say.
std::string what_replaces(const LayerFlow& a, const LayerFlow& b, Id<Storage> storage) {
    const auto tensor = std::ranges::find_if(a.tensors, [&](const FlowTensor& t) {
        return std::ranges::find(t.storages, storage) != t.storages.end();
    });
    if (tensor == a.tensors.end() || tensor->consumer == kOutside) return {};
    const auto same_in_b = [&](std::size_t column) {
        const auto found = std::ranges::find_if(b.columns, [&](const auto& one) {
            return column != kOutside && one.key == a.columns[column].key;
        });
        return static_cast<std::size_t>(found - b.columns.begin());
    };
    const std::size_t producer = same_in_b(tensor->producer);
    const std::size_t consumer = same_in_b(tensor->consumer);
    const auto recomputes = [&](std::size_t column) {
        return column < b.columns.size() && b.columns[column].backward.recomputes;
    };
    std::vector<std::string> kept;
    for (const FlowTensor& one : b.tensors) {
        const bool is_used =
            one.consumer == consumer || std::ranges::find(one.also, consumer) != one.also.end();
        if (is_used) kept.push_back(one.name);
    }
    const std::string from = fmt::format("{}", fmt::join(kept, ", "));
    if (recomputes(producer) || recomputes(consumer)) {
        return " It is computed again in backward" + (kept.empty() ? "." : ", from " + from + ".");
    }
    const std::string& title = a.columns[tensor->consumer].title;
    const auto is_there = [&](const FlowColumn& one) {
        return one.path == a.columns[tensor->consumer].path;
    };
    const bool knows_all = !b.columns.empty() && b.columns_left_out == 0;
    if (knows_all && std::ranges::none_of(b.columns, is_there)) {
        return fmt::format(" B does not run {} there.", title);
    }
    return kept.empty() ? std::string() : fmt::format(" Backward of {} uses {}.", title, from);
}

/// The row of the ledger that holds a storage or its block.
std::size_t row_of(const StepIndex& source, Id<Storage> storage, Id<Allocation> allocation) {
    const auto& rows = source.ledger().rows;
    const auto found = std::ranges::find_if(rows, [&](const LedgerRow& row) {
        return (storage.valid() && row.storage == storage) ||
               (allocation.valid() && row.allocation == allocation);
    });
    return found == rows.end() ? kNoRow : static_cast<std::size_t>(found - rows.begin());
}

class TensorReader {
public:
    TensorReader(const InspectorRequest& request, const InspectedTensor& tensor)
        : request_(request), tensor_(tensor), trace_(source().trace()) {
        if (!tensor_.storage.valid() && tensor_.allocation.valid()) {
            tensor_.storage = trace_.allocations.get<&Allocation::storage>(tensor_.allocation);
        }
        if (!tensor_.allocation.valid() && tensor_.storage.valid()) {
            tensor_.allocation = allocation_of(trace_, tensor_.storage);
        }
    }

    TensorCard read() {
        const BlockOrigin origin =
            origin_of(trace_, source().storage_names(), tensor_.storage, tensor_.allocation);
        card_.title = origin.name.empty() ? "(no name)" : std::string(origin.name);
        card_.category = origin.category;
        const std::size_t row = row_of(source(), tensor_.storage, tensor_.allocation);
        add("bytes", format_exact_bytes(origin.size_bytes));
        add_shape(row);
        add("category", std::string(label_of(origin.category)));
        add("module", row == kNoRow ? std::string(origin.module_path)
                                    : std::string(source().ledger().rows[row].module_path));
        add("made by", std::string(origin.maker.valid() ? name_of_call(trace_, origin.maker) : ""));
        if (row != kNoRow) {
            add_keepers(source().ledger().rows[row]);
            add_closed_form(row);
            add_siblings(source().ledger().rows[row]);
        }
        add_life(row);
        return std::move(card_);
    }

private:
    const StepIndex& source() const { return request_.steps[tensor_.source]; }
    void add(const char* label, std::string value) {
        if (!value.empty()) card_.rows.emplace_back(label, std::move(value));
    }

    void add_shape(std::size_t row) {
        if (row != kNoRow) {
            const LedgerRow& saved = source().ledger().rows[row];
            return add("shape", fmt::format("{} {}", saved.shape, name_of(saved.dtype)));
        }
        if (!tensor_.storage.valid()) return;
        const auto storages = trace_.tensors.column<&Tensor::storage>();
        const auto found = std::ranges::find(storages, tensor_.storage);
        if (found == storages.end()) return;
        const Tensor seen =
            trace_.tensors[Id<Tensor>(static_cast<std::size_t>(found - storages.begin()))];
        add("shape", fmt::format("{} {}", trace_.text(seen.shape), name_of(seen.dtype)));
    }

    void add_keepers(const LedgerRow& row) {
        std::vector<std::string_view> keepers = row.saved_by;
        keepers.erase(std::unique(keepers.begin(), keepers.end()), keepers.end());
        add("kept by", fmt::format("{}", fmt::join(keepers, ", ")));
    }

    void add_closed_form(std::size_t row) {
        if (!source().closed_form()) return;
        const auto& form = source().closed_form()->form;
        const auto rows = match_closed_form(source().ledger(), form, trace_.run().num_layers);
        if (row >= rows.size() || rows[row] == kNoRow) return;
        const ClosedFormRow& own = form.rows[rows[row]];
        add("closed form", fmt::format("{} = {}", own.formula, format_bytes(own.size_bytes)));
        if (const auto workload = workload_of(trace_)) {
            add("where", resolve_symbols(own.formula, *workload));
        }
    }

    void add_siblings(const LedgerRow& own) {
        if (own.layer < 0) return;
        const std::string place = any_layer_path(own.module_path, own.layer_path);
        int64_t count = 0, bytes = 0;
        for (const LedgerRow& row : source().ledger().rows) {
            if (row.layer < 0 || row.tensor != own.tensor) continue;
            if (any_layer_path(row.module_path, row.layer_path) != place) continue;
            ++count;
            bytes += row.size_bytes;
        }
        if (count < 2) return;
        add("in all layers", fmt::format("{} of it, {}", count, format_bytes(bytes)));
    }

    TensorLife life_in(const StepIndex& of, Id<Allocation> allocation, std::size_t row) const {
        TensorLife life = life_of(of.trace(), of.blocks(), allocation, row != kNoRow);
        if (row != kNoRow) life.size_bytes = of.ledger().rows[row].size_bytes;
        return life;
    }

    /// In the other trace: as the same saved tensor, or else as the block that stands for its own.
    std::optional<TensorLife> other_life(std::size_t row) const {
        const StepIndex& other = request_.steps[1 - tensor_.source];
        if (row != kNoRow) {
            const std::size_t found = match_ledgers(source().ledger(), other.ledger())[row];
            if (found != kNoRow && other.ledger().rows[found].allocation.valid()) {
                return life_in(other, other.ledger().rows[found].allocation, found);
            }
        }
        const StepIndex& own = source();
        const uint32_t block = own.blocks().block_of(tensor_.allocation);
        if (block == BlockHistory::kNone) return std::nullopt;
        const uint32_t found = other.labels().counterpart(own.labels(), block);
        if (found == BlockHistory::kNone) return std::nullopt;
        const Id<Allocation> allocation = other.blocks().allocation(found);
        const std::size_t other_row = row_of(other, {}, allocation);
        // Saved under another name: an op in place has overwritten it.
        if (row != kNoRow && other_row != kNoRow) return std::nullopt;
        return life_in(other, allocation, other_row);
    }

    void add_life(std::size_t row) {
        if (!tensor_.allocation.valid()) return;
        const TensorLife own = life_in(source(), tensor_.allocation, row);
        if (request_.steps.size() < 2) return add_life_rows({{&source(), &own}});
        const std::optional<TensorLife> other = other_life(row);
        const TensorLife* const found = other ? &*other : nullptr;
        const bool is_of_a = tensor_.source == 0;
        const TensorLife* const a = is_of_a ? &own : found;
        const TensorLife* const b = is_of_a ? found : &own;
        card_.fate = compare_lives(a, b);
        if (is_of_a && row != kNoRow && !(b && b->is_saved)) {
            tell_what_replaces(source().ledger().rows[row]);
        }
        Lives lives;
        if (a) lives.emplace_back(&request_.steps[0], a);
        if (b) lives.emplace_back(&request_.steps[1], b);
        add_life_rows(lives);
    }

    using Lives = std::vector<std::pair<const StepIndex*, const TensorLife*>>;

    void add_life_rows(const Lives& lives) {
        const auto add_row = [&](const char* label, const auto& text_of_life) {
            LifeRow row{.label = label, .values = {}};
            for (const auto& [of, life] : lives) {
                row.values.push_back(text_of_life(of->trace(), *life));
            }
            const auto is_empty = [](const std::string& value) { return value.empty(); };
            if (!std::ranges::all_of(row.values, is_empty)) card_.life.push_back(std::move(row));
        };
        using Of = const Trace&;
        using Life = const TensorLife&;
        if (lives.size() > 1) {
            add_row("bytes", [](Of, Life life) { return format_bytes(life.size_bytes); });
        }
        // The ledger leaves out parameters and what belongs to them.
        const bool may_be_saved = card_.category == Category::kActivation ||
                                  card_.category == Category::kTemporary ||
                                  card_.category == Category::kHeld;
        if (may_be_saved) {
            add_row("for backward", [](Of of, Life life) {
                if (!records_saves(of)) return "";
                if (life.is_saved) return "kept";
                return life.is_in_ledger_step ? "not kept" : "not known: of an earlier step";
            });
        }
        add_row("made in", [](Of, Life life) { return text_of(life.made); });
        add_row("freed in",
                [](Of, Life life) { return life.freed ? text_of(*life.freed) : "never"; });
        add_row("freed by", [](Of of, Life life) {
            return life.freeing_op.valid() ? short_call_name(name_of_call(of, life.freeing_op))
                                           : "";
        });
        add_row("lives", [](Of, Life life) { return length_text(life); });
        add_row("at the peak", [](Of, Life life) { return life.is_at_peak ? "held" : "not held"; });
    }

    void tell_what_replaces(const LedgerRow& row) {
        if (row.layer < 0) return;
        const LayerRange layer{row.layer, row.layer};
        const auto flow_of = [&](const StepIndex& of) {
            return build_layer_flow(of.trace(), of.ledger(), layer);
        };
        card_.fate.text +=
            what_replaces(flow_of(source()), flow_of(request_.steps[1]), row.storage);
    }

    const InspectorRequest& request_;
    InspectedTensor tensor_;
    const Trace& trace_;
    TensorCard card_;
};

/// What a call and the calls in it allocate, by the times of the call.
struct CallMemory {
    int64_t count = 0;
    int64_t bytes = 0;
    int64_t left_bytes = 0;     // still live when it returns
    int64_t scratch_bytes = 0;  // the most that it held and freed again itself
};

CallMemory memory_of(const Trace& trace, const CallSpan& span) {
    struct Change {
        int64_t event = 0;
        int64_t bytes = 0;
    };
    CallMemory memory;
    std::vector<Change> scratch;
    const Id<Device> profiled = profiled_device(trace);
    const auto alloc_ns = trace.allocations.column<&Allocation::alloc_ns>();
    for (std::size_t i = 0; i < alloc_ns.size(); ++i) {
        if (alloc_ns[i] < span.start_ns || alloc_ns[i] >= span.end_ns) continue;
        const Allocation block = trace.allocations[Id<Allocation>(i)];
        if (!is_on(profiled, block.device)) continue;
        ++memory.count;
        memory.bytes += block.requested_bytes;
        const bool is_scratch =
            block.free_requested_event >= 0 && block.free_requested_ns <= span.end_ns;
        if (!is_scratch) {
            memory.left_bytes += block.requested_bytes;
            continue;
        }
        scratch.push_back({block.alloc_event, block.requested_bytes});
        scratch.push_back({block.free_requested_event, -block.requested_bytes});
    }
    std::ranges::sort(scratch, {}, &Change::event);
    int64_t live_bytes = 0;
    for (const Change& change : scratch) {
        live_bytes += change.bytes;
        memory.scratch_bytes = std::max(memory.scratch_bytes, live_bytes);
    }
    return memory;
}

CallGroup group_of(const InspectorRequest& request, const InspectedCall& call) {
    std::vector<const Trace*> traces;
    for (const StepIndex& step : request.steps.all()) traces.push_back(&step.trace());
    return build_call_group(traces, call.source, call.id);
}

/// "72 calls, 8.23 ms together; median 112 µs, 98 to 140 µs"
std::string text_of(const CallTimes& times) {
    if (times.num_calls == 0) return "none";
    return fmt::format("{} {}, {} together; median {}, {} to {}", format_count(times.num_calls),
                       times.num_calls == 1 ? "call" : "calls", format_duration(times.total_ns),
                       format_duration(times.median_ns), format_duration(times.least_ns),
                       format_duration(times.most_ns));
}

InspectorRows rows_of(const CallGroup& group, std::size_t source) {
    InspectorRows rows;
    for (std::size_t i = 0; i < group.sources.size(); ++i) {
        rows.emplace_back(i == 0 ? "A" : "B", text_of(group.sources[i]));
    }
    std::string own = format_duration(group.picked_ns);
    if (group.sources[source].num_calls > 1) {
        own += group.num_longer == 0 ? ", none takes longer"
                                     : fmt::format(", {} longer", format_count(group.num_longer));
    }
    rows.emplace_back("this one", std::move(own));
    if (group.sources[source].are_of_device) {
        rows.emplace_back("times", "of the kernels and copies that each launches");
    }
    return rows;
}

CallCard read_call(const InspectorRequest& request, const InspectedCall& call) {
    const StepIndex& source = request.steps[call.source];
    const CallId id = call.id;
    const Trace& trace = source.trace();
    KernelsReadout readout = read_kernels(source, id);
    CallCard card{.title = std::move(readout.title),
                  .rows = std::move(readout.rows),
                  .group = group_of(request, call)};
    card.group_rows = rows_of(card.group, call.source);
    if (id.kind != CallKind::kOp) return card;
    const CallMemory memory = memory_of(trace, span_of(trace, id));
    if (memory.count == 0) return card;
    card.rows.emplace_back(
        "with its calls",
        fmt::format("allocates {} in {} {}", format_bytes(memory.bytes), format_count(memory.count),
                    memory.count == 1 ? "block" : "blocks"));
    card.rows.emplace_back("leaves live", format_bytes(memory.left_bytes));
    if (memory.scratch_bytes > 0) {
        card.rows.emplace_back("scratch", "up to " + format_bytes(memory.scratch_bytes));
    }
    return card;
}

/// The most that a category holds at once, and when.
struct CategoryMost {
    int64_t bytes = 0;
    int64_t time_ns = 0;
};

CategoryMost most_of(const Trace& trace, Category category) {
    const auto bytes = trace.allocations.column<&Allocation::requested_bytes>();
    const auto alloc_ns = trace.allocations.column<&Allocation::alloc_ns>();
    CategoryMost most;
    int64_t live_bytes = 0;
    for (const MemoryChange change : ordered_changes(trace)) {
        const std::size_t i = change.allocation_index();
        if (category_of_block(trace, Id<Allocation>(i)) != category) continue;
        live_bytes += change.is_free() ? -bytes[i] : bytes[i];
        if (live_bytes > most.bytes) most = {live_bytes, alloc_ns[i]};
    }
    return most;
}

/// The largest blocks of the category at the peak.
InspectorRows largest_at_peak(const StepIndex& source, Category category) {
    constexpr std::size_t kMostBlocks = 5;
    const Trace& trace = source.trace();
    InspectorRows rows;
    for (const Id<Allocation> block : source.peak().live) {
        if (category_of_block(trace, block) != category) continue;
        if (rows.size() == kMostBlocks) break;
        const BlockOrigin origin =
            origin_of(trace, source.storage_names(),
                      trace.allocations.get<&Allocation::storage>(block), block);
        std::string name = origin.name.empty() ? "(no name)" : std::string(origin.name);
        if (!origin.module_path.empty()) name += fmt::format(" in {}", origin.module_path);
        rows.emplace_back(format_bytes(origin.size_bytes), std::move(name));
    }
    return rows;
}

CategoryCard read_category(const StepIndex& source, Category category) {
    const Trace& trace = source.trace();
    const PeakReport& peak = source.peak();
    const int64_t bytes = peak.by_category[static_cast<std::size_t>(category)];
    const auto count = std::ranges::count_if(peak.live, [&](Id<Allocation> block) {
        return category_of_block(trace, block) == category;
    });
    CategoryCard card;
    card.rows.emplace_back(
        "at the peak",
        fmt::format("{}, {} of it, in {} {}", format_bytes(bytes),
                    format_percent(static_cast<double>(bytes) /
                                   static_cast<double>(std::max<int64_t>(peak.allocated_bytes, 1))),
                    format_count(count), count == 1 ? "block" : "blocks"));
    const CategoryMost most = most_of(trace, category);
    std::string text = format_bytes(most.bytes);
    const std::string phase = most.bytes > 0 ? phase_text_at(trace, most.time_ns) : "";
    if (!phase.empty()) text += ", in " + phase;
    card.rows.emplace_back("most at once", std::move(text));
    card.largest = largest_at_peak(source, category);
    return card;
}

}  // namespace

InspectorView build_inspector_view(const InspectorRequest& request) {
    InspectorView view;
    if (request.category) {
        for (const StepIndex& source : request.steps.all()) {
            view.category.push_back(read_category(source, *request.category));
        }
    }
    if (request.tensor && request.tensor->source < request.steps.size()) {
        view.tensor = TensorReader(request, *request.tensor).read();
    }
    if (request.call && request.call->source < request.steps.size() && request.call->id.valid()) {
        view.call = read_call(request, *request.call);
    }
    return view;
}

std::string resolve_symbols(const std::string& formula, const models::Workload& workload) {
    const int64_t batch = workload.batch_size, seq_len = workload.seq_len;
    std::vector<std::string> parts;
    const auto has = [&](char symbol) { return formula.find(symbol) != formula.npos; };
    if (has('e')) {
        using models::Precision;
        const bool is_single =
            workload.precision == Precision::kFp32 || workload.precision == Precision::kTf32;
        const int size_bytes = is_single ? 4 : workload.precision == Precision::kFp64 ? 8 : 2;
        parts.push_back(fmt::format("e = {} B", size_bytes));
    }
    if (has('n')) {
        parts.push_back(
            fmt::format("n = B·S·H = {}·{}·{}", batch, seq_len, workload.model.hidden_size));
    }
    if (has('T')) {
        parts.push_back(
            fmt::format("T = B·A·S² = {}·{}·{}²", batch, workload.model.num_heads, seq_len));
    }
    if (has('R')) parts.push_back(fmt::format("R = B·S = {}·{}", batch, seq_len));
    return fmt::format("{}", fmt::join(parts, ", "));
}

DataTable inspector_data(const InspectorView& view) {
    DataTable table{.columns = {"of", "what", "value"}};
    const auto add = [&](const std::string& of, const InspectorRows& rows) {
        for (const auto& [what, value] : rows) table.rows.push_back({of, what, value});
    };
    for (std::size_t i = 0; i < view.category.size(); ++i) {
        const std::string of = i == 0 ? "category in A" : "category in B";
        add(of, view.category[i].rows);
        add(of + ", largest at the peak", view.category[i].largest);
    }
    if (view.tensor) {
        const TensorCard& card = *view.tensor;
        add(card.title, card.rows);
        for (const LifeRow& row : card.life) {
            const bool are_two = row.values.size() > 1;
            for (std::size_t i = 0; i < row.values.size(); ++i) {
                add(!are_two ? card.title : card.title + (i == 0 ? " in A" : " in B"),
                    {{row.label, row.values[i]}});
            }
        }
        if (!card.fate.text.empty()) add(card.title, {{"A and B", card.fate.text}});
    }
    if (view.call) add(view.call->title, view.call->rows);
    return table;
}

}  // namespace profiler
