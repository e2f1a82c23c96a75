#include "profiler/analysis/advice/evidence.h"

#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/recorded_step.h"

#include <algorithm>

namespace profiler {
namespace {

template <typename Row, typename Key>
RowsBy<Key, Row> rows_by(const Table<Row>& table, std::span<const Id<Key>> keys,
                         std::size_t num_keys) {
    return table.empty() ? RowsBy<Key, Row>() : RowsBy<Key, Row>(keys, num_keys);
}

bool has_a_role(Category category) {
    return category == Category::kParameter || category == Category::kGradient ||
           category == Category::kOptimizerState || category == Category::kInput ||
           category == Category::kWorkspace;
}

/// A broken step goes on to the end of the trace.
Id<Step> step_at(const Trace& trace, int64_t event) {
    for (const Id<Step> id : trace.steps.ids()) {
        const Step step = trace.steps[id];
        const bool is_open = kind_of(trace, id) == StepKind::kBroken;
        if (step.first_event <= event && (is_open || event < step.last_event)) return id;
    }
    return {};
}

}  // namespace

Evidence::Evidence(const StepIndex& index)
    : steps(index), trace(index.trace()), device(profiled_device(trace)) {
    tensors_ = rows_by<Tensor, Storage>(trace.tensors, trace.tensors.column<&Tensor::storage>(),
                                        trace.storages.size());
    saves_ = rows_by<Save, Storage>(trace.saves, trace.saves.column<&Save::storage>(),
                                    trace.storages.size());
    keepers_ = rows_by<Keeper, Allocation>(
        trace.keepers, trace.keepers.column<&Keeper::allocation>(), trace.allocations.size());
    op_tensors_ = rows_by<OpTensor, Op>(trace.op_tensors, trace.op_tensors.column<&OpTensor::op>(),
                                        trace.ops.size());
    find_uses();
    find_moment();
    find_live();
}

void Evidence::find_uses() {
    last_use_.resize(trace.storages.size());
    for (const OpTensor& use : trace.op_tensors.rows()) {
        if (!use.op.valid() || !use.tensor.valid()) continue;
        const Id<Storage> storage = trace.tensors.get<&Tensor::storage>(use.tensor);
        if (!storage.valid()) continue;
        Id<Op>& last = last_use_[storage.index()];
        const bool is_later = !last.valid() || trace.ops.get<&Op::start_ns>(use.op) >=
                                                   trace.ops.get<&Op::start_ns>(last);
        if (is_later) last = use.op;
    }
}

void Evidence::find_moment() {
    failure = fatal_out_of_memory(trace);
    if (!failure.valid()) {
        const PeakReport& peak = steps.peak();
        event = peak.event;
        time_ns = peak.time_ns;
        step = peak.step;
        phase = peak.phase;
        reserved_bytes = peak.reserved_bytes;
        return;
    }
    const Failure failed = trace.failures[failure];
    if (failed.device.valid()) device = failed.device;
    event = failed.event - 1;
    time_ns = failed.time_ns;
    step = failed.step;
    phase = failed.phase;
    asked_bytes = std::max<int64_t>(failed.requested_bytes, 0);
    reserved_bytes = failed.reserved_bytes;
}

void Evidence::find_live() {
    live = live_at(trace, event, device);
    allocated_bytes = profiler::bytes_of(*this, live);
    by_category = bytes_by_category(trace, live);
    for (const Id<Allocation> id : live) {
        if (is_held(id)) held.push_back(id);
    }
    cached = cached_pieces_at(trace, device, event + 1);
    if (reserved_bytes < 0) reserved_bytes = allocated_bytes + cached.total_bytes;
}

std::string Evidence::line_of(Id<Allocation> id) const {
    return steps.sites().of(trace.allocations.get<&Allocation::stack>(id));
}

std::string_view Evidence::code_of(Id<Allocation> id) const {
    return steps.sites().code_of(trace.allocations.get<&Allocation::stack>(id));
}

Id<Op> Evidence::last_use_of(Id<Allocation> id) const {
    const Id<Storage> storage = trace.allocations.get<&Allocation::storage>(id);
    return storage.valid() ? last_use_[storage.index()] : Id<Op>();
}

std::span<const Id<Tensor>> Evidence::tensors_of(Id<Allocation> id) const {
    return tensors_.of(trace.allocations.get<&Allocation::storage>(id));
}

std::span<const Id<Save>> Evidence::saves_of(Id<Allocation> id) const {
    return saves_.of(trace.allocations.get<&Allocation::storage>(id));
}

std::span<const Id<Keeper>> Evidence::keepers_of(Id<Allocation> id) const {
    const auto all = keepers_.of(id);
    if (all.empty()) return all;
    const auto event_of = [&](Id<Keeper> row) { return trace.keepers.get<&Keeper::event>(row); };
    const auto first = std::ranges::find(all, event_of(all.back()), event_of);
    return all.subspan(static_cast<std::size_t>(first - all.begin()));
}

bool Evidence::is_saved(Id<Allocation> id) const {
    return std::ranges::any_of(saves_of(id), [&](Id<Save> save) {
        const int64_t released = trace.saves.get<&Save::released_event>(save);
        return trace.saves.get<&Save::saved_event>(save) <= event + 1 &&
               (released < 0 || released > event);
    });
}

bool Evidence::is_held(Id<Allocation> id) const {
    const Category category = category_of(id);
    if (category == Category::kHeld) return true;
    const Id<Op> last = last_use_of(id);
    if (has_a_role(category) || !last.valid() || is_saved(id)) return false;
    // Calls around the last use may still hold it as their argument.
    const int64_t last_ns = trace.ops.get<&Op::end_ns>(outermost(last));
    if (last_ns < 0 || last_ns > time_ns) return false;
    const int64_t born = trace.allocations.get<&Allocation::alloc_event>(id);
    const Id<Step> birth_step = step_at(trace, born);
    // What several steps use stays for the next one, as an average of the weights does.
    if (!birth_step.valid()) return false;
    const bool is_over = kind_of(trace, birth_step) != StepKind::kBroken;
    if (is_over && last_ns > trace.steps.get<&Step::end_ns>(birth_step)) return false;
    const int64_t begin = phase.valid()  ? trace.phases.get<&Phase::first_event>(phase)
                          : step.valid() ? trace.steps.get<&Step::first_event>(step)
                                         : event;
    return born < begin;
}

std::optional<PhaseKind> Evidence::phase_kind() const {
    if (!phase.valid()) return std::nullopt;
    return trace.phases.get<&Phase::kind>(phase);
}

Id<Op> Evidence::outermost(Id<Op> op) const {
    while (op.valid()) {
        const Id<Op> around = trace.ops.get<&Op::parent>(op);
        // A call begins before the calls in it; a damaged file may say otherwise, without end.
        if (!around.valid() || around.index() >= op.index()) break;
        op = around;
    }
    return op;
}

int64_t bytes_of(const Evidence& evidence, std::span<const Id<Allocation>> blocks) {
    int64_t bytes = 0;
    for (const Id<Allocation> id : blocks) bytes += evidence.bytes_of(id);
    return bytes;
}

}  // namespace profiler
