#include "profiler/analysis/step/ledger.h"

#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/recomputation.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>
#include <unordered_map>

namespace profiler {
namespace {

/// Where a backward begins: after a forward, and the loss after it.
struct Moment {
    int64_t event = -1;    // changes before this number have happened
    Id<Phase> last_phase;  // that is over then; invalid in a trace without phases
};

/// Of the last step that has any, of those that figures are of. A step may have several: it adds up
/// the gradients of micro-batches, or trains two models.
std::vector<Moment> begins_of_backward(const Trace& trace) {
    const std::vector<bool> is_in_figures = are_in_figures(trace);
    std::vector<Moment> found;
    Id<Step> step;
    bool is_open = false;  // no other phase came since the last one of `found`
    for (const Id<Phase> id : trace.phases.ids()) {
        const Phase phase = trace.phases[id];
        const bool counts =
            phase.step.valid() ? is_in_figures[phase.step.index()] : trace.steps.empty();
        if (!counts) continue;
        const bool is_forward = phase.kind == PhaseKind::kForward;
        const bool goes_on = is_open && phase.step == step;
        is_open = is_forward || (goes_on && phase.kind == PhaseKind::kLoss);
        if (!is_open) continue;
        const bool is_before = !found.empty() && phase.last_event < found.back().event;
        if (is_before) continue;  // a file may say so
        if (phase.step != step) found.clear();
        if (!goes_on || found.empty()) found.emplace_back();
        found.back() = {.event = phase.last_event, .last_phase = id};
        step = phase.step;
    }
    return found;
}

/// A save by an op of a later phase (a recomputation in backward) does not count, even when no
/// allocation lies between.
bool is_saved(const Trace& trace, const Save& save, const Moment& moment) {
    if (save.saved_event > moment.event) return false;
    if (save.released_event >= 0 && save.released_event < moment.event) return false;
    if (!moment.last_phase.valid() || !save.op.valid()) return true;
    const Id<Phase> phase = trace.ops.get<&Op::phase>(save.op);
    return !phase.valid() || phase.index() <= moment.last_phase.index();
}

bool is_step_data(Category category) {
    return category == Category::kParameter || category == Category::kGradient ||
           category == Category::kOptimizerState || category == Category::kInput;
}

bool lies_in(std::string_view module_path, std::string_view wanted) {
    if (wanted.empty() || module_path == wanted) return true;
    return module_path.starts_with(wanted) && module_path[wanted.size()] == '.';
}

/// The op that allocated the storage. Where that is not known (memory that torch did not ask for),
/// the op that returned the tensor first.
Id<Op> maker_of(const Trace& trace, const Storage& storage, Id<Tensor> tensor) {
    if (storage.allocation.valid()) {
        const Id<Op> op = trace.allocations.get<&Allocation::op>(storage.allocation);
        if (op.valid()) return op;
    }
    return tensor.valid() ? trace.tensors.get<&Tensor::producer>(tensor) : Id<Op>();
}

std::string_view name_of_saver(const Trace& trace, Id<Op> op) {
    const std::string_view name = name_of_call(trace, op);
    return name == kInputsOfCheckpoint ? "checkpoint" : name;
}

/// Elements of "[128, 512, 64]"; -1 of a text that is no shape.
int64_t num_elements(std::string_view shape) {
    if (!shape.starts_with('[') || !shape.ends_with(']')) return -1;
    int64_t count = 1;
    const char* at = shape.data() + 1;
    const char* const end = shape.data() + shape.size() - 1;
    while (at < end) {
        int64_t size = 0;
        const auto [rest, error] = std::from_chars(at, end, size);
        const bool is_too_large = __builtin_mul_overflow(count, size, &count);
        if (error != std::errc() || size < 0 || is_too_large) return -1;
        at = rest;
        while (at < end && (*at == ',' || *at == ' ')) ++at;
    }
    return count;
}

/// Whether the tensor is as large as the storage: it is no part of it, and not expanded.
bool is_whole(const Trace& trace, Id<Tensor> tensor, int64_t storage_bytes) {
    const int64_t count = num_elements(trace.text(trace.tensors.get<&Tensor::shape>(tensor)));
    const int64_t element = element_bytes(trace.tensors.get<&Tensor::dtype>(tensor));
    return element > 0 && count == storage_bytes / element && storage_bytes % element == 0;
}

/// Gives rows of a part, as of a slice, the shape of the whole, if some tensor has it.
void describe_whole_storages(const Trace& trace, std::vector<LedgerRow>& rows) {
    std::unordered_map<int32_t, LedgerRow*> parts;  // by storage
    for (LedgerRow& row : rows) {
        if (row.saved_tensor.valid() && !is_whole(trace, row.saved_tensor, row.size_bytes)) {
            parts.emplace(row.storage.value, &row);
        }
    }
    if (parts.empty()) return;
    const auto storages = trace.tensors.column<&Tensor::storage>();
    for (std::size_t i = 0; i < storages.size(); ++i) {
        const auto part = parts.find(storages[i].value);
        if (part == parts.end()) continue;
        LedgerRow& row = *part->second;
        if (!is_whole(trace, Id<Tensor>(i), row.size_bytes)) continue;
        row.shape = trace.text(trace.tensors.get<&Tensor::shape>(Id<Tensor>(i)));
        row.dtype = trace.tensors.get<&Tensor::dtype>(Id<Tensor>(i));
        parts.erase(part);
    }
}

/// What autograd holds then, without parameters, gradients, optimizer state and inputs.
int64_t saved_bytes(const Trace& trace, const Moment& moment) {
    std::vector<bool> is_counted(trace.storages.size());
    int64_t bytes = 0;
    for (const Save save : trace.saves.rows()) {
        if (!save.storage.valid() || !is_saved(trace, save, moment)) continue;
        const Storage storage = trace.storages[save.storage];
        if (is_step_data(storage.category) || is_counted[save.storage.index()]) continue;
        is_counted[save.storage.index()] = true;
        bytes += storage.size_bytes;
    }
    return bytes;
}

/// When the ledger is taken: at the beginning of a backward of the last step. Of several backwards,
/// the one with the most saved bytes counts; of equals, the last. In a trace without phases: at the
/// peak. A null `peak` is found here.
Moment moment_of_ledger(const Trace& trace, const PeakReport* peak) {
    constexpr std::size_t kMostMoments = 64;  // each costs a pass over the saves
    const std::vector<Moment> moments = begins_of_backward(trace);
    if (moments.empty()) {
        const int64_t event = peak != nullptr ? peak->event : find_peak(trace).event;
        return {.event = event + 1, .last_phase = {}};
    }
    if (moments.size() == 1) return moments.front();
    Moment most;
    int64_t most_bytes = -1;
    // clang 14 cannot compile std::views of GCC 12's library.
    const auto last = std::span(moments).last(std::min(moments.size(), kMostMoments));
    for (auto moment = last.rbegin(); moment != last.rend(); ++moment) {
        const int64_t bytes = saved_bytes(trace, *moment);
        if (bytes <= most_bytes) continue;
        most_bytes = bytes;
        most = *moment;
    }
    return most;
}

LedgerRow make_row(const Trace& trace, const Save& save, const EventClock& clock) {
    const Storage storage = trace.storages[save.storage];
    LedgerRow row;
    row.storage = save.storage;
    row.allocation = storage.allocation;
    row.size_bytes = storage.size_bytes;
    row.category = storage.category;
    row.maker = maker_of(trace, storage, save.tensor);
    if (row.maker.valid()) row.made_by = name_of_call(trace, row.maker);
    if (save.tensor.valid()) {
        const Tensor tensor = trace.tensors[save.tensor];
        row.saved_tensor = save.tensor;
        row.tensor = trace.text(tensor.name);
        row.shape = trace.text(tensor.shape);
        row.dtype = tensor.dtype;
    }
    row.saved_event = save.saved_event;
    row.saved_ns = clock.time_of(save.saved_event);
    if (save.op.valid()) {
        const Op op = trace.ops[save.op];
        row.op = name_of_saver(trace, save.op);
        row.saved_ns = op.start_ns;
        if (op.module_path.valid()) {
            const ModulePath module_path = trace.module_paths[op.module_path];
            row.module_path = trace.text(module_path.path);
            row.layer = module_path.layer;
            row.layer_path = layer_path_of(trace, op.module_path);
        }
    }
    return row;
}

}  // namespace

Id<Step> step_of_ledger(const Trace& trace) {
    const std::vector<Moment> moments = begins_of_backward(trace);
    if (moments.empty()) return {};
    return trace.phases.get<&Phase::step>(moments.back().last_phase);
}

int64_t start_of_ledger_step(const Trace& trace) {
    const Id<Step> step = step_of_ledger(trace);
    return step.valid() ? trace.steps.get<&Step::start_ns>(step)
                        : std::numeric_limits<int64_t>::min();
}

int64_t saved_bytes_of(const Trace& trace) {
    return saved_bytes(trace, moment_of_ledger(trace, nullptr));
}

Ledger build_ledger(const Trace& trace, const LedgerOptions& options) {
    return build_ledger(trace, find_peak(trace), options);
}

Ledger build_ledger(const Trace& trace, const PeakReport& peak, const LedgerOptions& options) {
    constexpr int32_t kNoRow = -1;
    constexpr int64_t kStillSaved = INT64_MAX;
    const Moment moment = moment_of_ledger(trace, &peak);
    const EventClock clock(trace);
    std::vector<int32_t> row_of_storage(trace.storages.size(), kNoRow);
    std::vector<LedgerRow> rows;

    for (const Save save : trace.saves.rows()) {
        if (!save.storage.valid() || !is_saved(trace, save, moment)) continue;
        if (!options.include_all &&
            is_step_data(trace.storages.get<&Storage::category>(save.storage))) {
            continue;
        }
        int32_t& index = row_of_storage[save.storage.index()];
        if (index == kNoRow) {
            index = static_cast<int32_t>(rows.size());
            rows.push_back(make_row(trace, save, clock));
        }
        LedgerRow& row = rows[static_cast<std::size_t>(index)];
        if (save.op.valid()) {
            row.saved_by.push_back(name_of_saver(trace, save.op));
            row.saving_ops.push_back(save.op);
        }
        // Saved until the last op that saved it releases it.
        row.released_event = std::max(row.released_event,
                                      save.released_event < 0 ? kStillSaved : save.released_event);
    }

    describe_whole_storages(trace, rows);
    Ledger ledger;
    for (LedgerRow& row : rows) {
        if (!lies_in(row.module_path, options.module_path)) continue;
        if (row.released_event == kStillSaved) {
            row.released_event = -1;
        } else {
            row.released_ns = clock.time_of(row.released_event);
        }
        ledger.total_bytes += row.size_bytes;
        ledger.rows.push_back(std::move(row));
    }
    return ledger;
}

}  // namespace profiler
