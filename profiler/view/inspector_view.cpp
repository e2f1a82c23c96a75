#include "profiler/view/inspector_view.h"

#include "profiler/analysis/block_origin.h"
#include "profiler/analysis/event_order.h"
#include "profiler/analysis/layer_path.h"
#include "profiler/analysis/run_text.h"
#include "profiler/trace/units.h"
#include "profiler/view/activity_view.h"
#include "profiler/view/blocks_view.h"
#include "profiler/view/layer_flow.h"
#include "profiler/view/ledger_match.h"
#include "profiler/view/theme.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace profiler {
namespace {

Id<Allocation> allocation_of(const Trace& trace, Id<Storage> storage) {
    const auto storages = trace.allocations.column<&Allocation::storage>();
    const auto found = std::find(storages.begin(), storages.end(), storage);
    return found == storages.end()
               ? Id<Allocation>()
               : Id<Allocation>(static_cast<std::size_t>(found - storages.begin()));
}

/// What backward does in B without a tensor that A keeps: " Backward of gelu uses gelu_output,
/// branch_mask." Empty if the calls of the layer do not say.
std::string what_replaces(const LayerFlow& a, const LayerFlow& b, Id<Storage> storage) {
    const auto tensor = std::find_if(a.tensors.begin(), a.tensors.end(), [&](const FlowTensor& t) {
        return std::find(t.storages.begin(), t.storages.end(), storage) != t.storages.end();
    });
    if (tensor == a.tensors.end() || tensor->consumer == kOutside) return {};
    const auto same_in_b = [&](std::size_t column) {
        const auto found = std::find_if(b.columns.begin(), b.columns.end(), [&](const auto& one) {
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
        const bool is_used = one.consumer == consumer || std::find(one.also.begin(), one.also.end(),
                                                                   consumer) != one.also.end();
        if (is_used) kept.push_back(one.name);
    }
    const std::string from = fmt::format("{}", fmt::join(kept, ", "));
    if (recomputes(producer) || recomputes(consumer)) {
        return " It is computed again in backward" + (kept.empty() ? "." : ", from " + from + ".");
    }
    if (kept.empty()) return {};
    return fmt::format(" Backward of {} uses {}.", a.columns[tensor->consumer].title, from);
}

class TensorReader {
public:
    TensorReader(const InspectorRequest& request, const InspectedTensor& tensor)
        : request_(request), tensor_(tensor), trace_(*source().blocks.trace) {
        if (!tensor_.storage.valid() && tensor_.allocation.valid()) {
            tensor_.storage = trace_.allocations.get<&Allocation::storage>(tensor_.allocation);
        }
        if (!tensor_.allocation.valid() && tensor_.storage.valid()) {
            tensor_.allocation = allocation_of(trace_, tensor_.storage);
        }
    }

    TensorCard read() {
        const BlockOrigin origin =
            origin_of(trace_, *source().blocks.storage_names, tensor_.storage, tensor_.allocation);
        card_.title = origin.name.empty() ? "(no name)" : std::string(origin.name);
        card_.category = origin.category;
        const std::size_t row = row_in_ledger();
        add("bytes", format_exact_bytes(origin.size_bytes));
        add_shape(row);
        add("category", std::string(label_of(origin.category)));
        add("module", row == kNoRow ? std::string(origin.module_path)
                                    : std::string(source().ledger->rows[row].module_path));
        add("made by", name_of(origin.maker));
        if (row != kNoRow) add_keepers(source().ledger->rows[row]);
        add_life();
        if (row != kNoRow) {
            add_closed_form(row);
            add_siblings(source().ledger->rows[row]);
        }
        if (tensor_.source == 0 && request_.sources.size() > 1) tell_fate(row);
        return std::move(card_);
    }

private:
    const InspectorSource& source() const { return request_.sources[tensor_.source]; }
    void add(const char* label, std::string value) {
        if (!value.empty()) card_.rows.emplace_back(label, std::move(value));
    }
    std::string name_of(Id<Op> op) const {
        return op.valid() ? std::string(trace_.text(trace_.ops.get<&Op::name>(op))) : "";
    }

    std::size_t row_in_ledger() const {
        if (!source().ledger) return kNoRow;
        const auto& rows = source().ledger->rows;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const bool same_storage = tensor_.storage.valid() && rows[i].storage == tensor_.storage;
            const bool same_block =
                tensor_.allocation.valid() && rows[i].allocation == tensor_.allocation;
            if (same_storage || same_block) return i;
        }
        return kNoRow;
    }

    void add_shape(std::size_t row) {
        if (row != kNoRow) {
            const LedgerRow& saved = source().ledger->rows[row];
            return add("shape", fmt::format("{} {}", saved.shape, profiler::name_of(saved.dtype)));
        }
        if (!tensor_.storage.valid()) return;
        const auto storages = trace_.tensors.column<&Tensor::storage>();
        const auto found = std::find(storages.begin(), storages.end(), tensor_.storage);
        if (found == storages.end()) return;
        const Tensor seen =
            trace_.tensors[Id<Tensor>(static_cast<std::size_t>(found - storages.begin()))];
        add("shape", fmt::format("{} {}", trace_.text(seen.shape), profiler::name_of(seen.dtype)));
    }

    void add_keepers(const LedgerRow& row) {
        std::vector<std::string_view> keepers = row.saved_by;
        keepers.erase(std::unique(keepers.begin(), keepers.end()), keepers.end());
        add("kept by", fmt::format("{}", fmt::join(keepers, ", ")));
    }

    void add_life() {
        if (!tensor_.allocation.valid()) return;
        const Allocation block = trace_.allocations[tensor_.allocation];
        const bool is_freed = block.free_requested_event >= 0 && block.free_requested_ns >= 0;
        add("made in", phase_text_at(trace_, block.alloc_ns));
        if (!is_freed) return add("lives", "to the end");
        add("lives", format_duration(block.free_requested_ns - block.alloc_ns));
        add("freed in", phase_text_at(trace_, block.free_requested_ns));
        add("freed by", name_of(block.freeing_op));
    }

    void add_closed_form(std::size_t row) {
        if (!source().check) return;
        const auto& form = source().check->form;
        const auto rows = match_closed_form(*source().ledger, form, trace_.run().num_layers);
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
        for (const LedgerRow& row : source().ledger->rows) {
            if (row.layer < 0 || row.tensor != own.tensor) continue;
            if (any_layer_path(row.module_path, row.layer_path) != place) continue;
            ++count;
            bytes += row.size_bytes;
        }
        if (count < 2) return;
        add("in all layers", fmt::format("{} of it, {}", count, format_bytes(bytes)));
    }

    void tell_fate(std::size_t row) {
        const InspectorSource& b = request_.sources[1];
        if (row != kNoRow && b.ledger) {
            const Ledger& own = *source().ledger;
            const std::size_t other = match_ledgers(own, *b.ledger)[row];
            if (other == kNoRow) {
                tell_fate(own.rows[row].size_bytes, 0, "keep");
                return tell_what_replaces(own.rows[row]);
            }
            return tell_fate(own.rows[row].size_bytes, b.ledger->rows[other].size_bytes, "keep");
        }
        const BlockSource& a = source().blocks;
        const uint32_t block = tensor_.allocation.valid() ? a.history->block_of(tensor_.allocation)
                                                          : BlockHistory::kNone;
        if (block == BlockHistory::kNone) return;
        const uint32_t found = b.blocks.details->labels().counterpart(a.details->labels(), block);
        tell_fate(a.history->size_bytes(block),
                  found == BlockHistory::kNone ? 0 : b.blocks.history->size_bytes(found), "hold");
    }

    void tell_what_replaces(const LedgerRow& row) {
        if (row.layer < 0) return;
        const LayerRange layer{row.layer, row.layer};
        const auto flow_of = [&](const InspectorSource& of) {
            return build_layer_flow(*of.blocks.trace, *of.ledger, layer);
        };
        card_.fate_text +=
            what_replaces(flow_of(source()), flow_of(request_.sources[1]), row.storage);
    }

    void tell_fate(int64_t bytes, int64_t other_bytes, const char* verb) {
        if (other_bytes == 0) {
            card_.fate = Fate::kGone;
            card_.fate_text = fmt::format("B does not {} it.", verb);
        } else if (other_bytes == bytes) {
            card_.fate = Fate::kSame;
            card_.fate_text = fmt::format("B {}s the same.", verb);
        } else {
            card_.fate = other_bytes < bytes ? Fate::kSmaller : Fate::kLarger;
            card_.fate_text = fmt::format("B {}s it in {} instead of {}.", verb,
                                          format_bytes(other_bytes), format_bytes(bytes));
        }
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
    int64_t kept_bytes = 0;     // still live when it returns
    int64_t scratch_bytes = 0;  // the most that it held and freed again itself
};

CallMemory memory_of(const Trace& trace, const ActivitySpan& span) {
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
            memory.kept_bytes += block.requested_bytes;
            continue;
        }
        scratch.push_back({block.alloc_event, block.requested_bytes});
        scratch.push_back({block.free_requested_event, -block.requested_bytes});
    }
    std::sort(scratch.begin(), scratch.end(),
              [](const Change& a, const Change& b) { return a.event < b.event; });
    int64_t live_bytes = 0;
    for (const Change& change : scratch) {
        live_bytes += change.bytes;
        memory.scratch_bytes = std::max(memory.scratch_bytes, live_bytes);
    }
    return memory;
}

CallGroup group_of(const InspectorRequest& request, const InspectedCall& call) {
    std::vector<const Trace*> traces;
    for (const InspectorSource& source : request.sources) traces.push_back(source.blocks.trace);
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
    const InspectorSource& source = request.sources[call.source];
    const ActivityId id = call.id;
    const Trace& trace = *source.blocks.trace;
    ActivityReadout readout = read_activity({&trace, source.activity}, id);
    CallCard card{.title = std::move(readout.title),
                  .rows = std::move(readout.rows),
                  .group = group_of(request, call)};
    card.group_rows = rows_of(card.group, call.source);
    if (id.kind != ActivityKind::kOp) return card;
    const CallMemory memory = memory_of(trace, span_of(trace, id));
    if (memory.count == 0) return card;
    card.rows.emplace_back(
        "with its calls",
        fmt::format("allocates {} in {} {}", format_bytes(memory.bytes), format_count(memory.count),
                    memory.count == 1 ? "block" : "blocks"));
    card.rows.emplace_back("leaves live", format_bytes(memory.kept_bytes));
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
InspectorRows largest_at_peak(const InspectorSource& source, Category category) {
    constexpr std::size_t kMostBlocks = 5;
    const Trace& trace = *source.blocks.trace;
    InspectorRows rows;
    for (const Id<Allocation> block : source.peak->live) {
        if (category_of_block(trace, block) != category) continue;
        if (rows.size() == kMostBlocks) break;
        const BlockOrigin origin =
            origin_of(trace, *source.blocks.storage_names,
                      trace.allocations.get<&Allocation::storage>(block), block);
        std::string name = origin.name.empty() ? "(no name)" : std::string(origin.name);
        if (!origin.module_path.empty()) name += fmt::format(" in {}", origin.module_path);
        rows.emplace_back(format_bytes(origin.size_bytes), std::move(name));
    }
    return rows;
}

CategoryCard read_category(const InspectorSource& source, Category category) {
    const Trace& trace = *source.blocks.trace;
    const PeakReport& peak = *source.peak;
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
        for (const InspectorSource& source : request.sources) {
            view.category.push_back(read_category(source, *request.category));
        }
    }
    if (request.tensor && request.tensor->source < request.sources.size()) {
        view.tensor = TensorReader(request, *request.tensor).read();
    }
    if (request.call && request.call->source < request.sources.size() && request.call->id.valid()) {
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

}  // namespace profiler
