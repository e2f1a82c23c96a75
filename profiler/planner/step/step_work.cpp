#include "profiler/planner/step/step_work.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/units.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace profiler {
namespace {

/// A number for each op of a trace: from its name, its module, its phase, and how many equal ones
/// came before. An op has the same number at every batch size, even if a kernel before it runs more
/// ops at one of them.
std::vector<uint64_t> numbers_of_ops(const Trace& trace) {
    const auto mixed = [](uint64_t number, uint64_t more) {  // the constant of splitmix64
        return (number ^ more) * 0x9e3779b97f4a7c15ULL + (number >> 29);
    };
    std::vector<uint64_t> modules;
    for (const Id<ModulePath> id : trace.module_paths.ids()) {
        const StringId path = trace.module_paths.get<&ModulePath::path>(id);
        modules.push_back(std::hash<std::string_view>()(trace.text(path)));
    }
    std::vector<uint64_t> numbers;
    std::unordered_map<uint64_t, uint64_t> equal_before;
    numbers.reserve(trace.ops.size());
    for (const Id<Op> id : trace.ops.ids()) {
        const Id<ModulePath> module = trace.ops.get<&Op::module_path>(id);
        const Id<Phase> phase = trace.ops.get<&Op::phase>(id);
        uint64_t number = std::hash<std::string_view>()(trace.text(trace.ops.get<&Op::name>(id)));
        if (module.valid()) number = mixed(number, modules[module.index()]);
        if (phase.valid()) {
            number =
                mixed(number, static_cast<uint64_t>(trace.phases.get<&Phase::kind>(phase)) + 1);
        }
        numbers.push_back(mixed(number, ++equal_before[number]));
    }
    return numbers;
}

std::vector<bool> allocations_that_stay(const StepRequests& work) {
    std::vector<bool> stays(work.allocations.size(), true);
    for (const StepRequest& request : work.requests) {
        if (request.kind != AllocatorRequestKind::kAlloc) stays[request.allocation] = false;
    }
    return stays;
}

/// Whether a step that allocates these is the first one of its process.
bool makes_what_stays(const StepRequests& work) {
    const std::vector<bool> stays = allocations_that_stay(work);
    for (std::size_t i = 0; i < stays.size(); ++i) {
        const StepAllocation& allocation = work.allocations[i];
        if (stays[i] && allocation.in_last_step &&
            (allocation.category == Category::kOptimizerState ||
             allocation.category == Category::kWorkspace)) {
            return true;
        }
    }
    return false;
}

/// A number for each allocation that a program made before its recording, from the name of its
/// tensor; 0: of the others. The allocator lists such blocks by address, and so in another order at
/// each batch.
std::vector<uint64_t> numbers_of_named(const Trace& trace) {
    std::vector<uint64_t> numbers(trace.allocations.size(), 0);
    for (std::size_t i = trace.tensors.size(); i-- > 0;) {
        const Id<Storage> storage = trace.tensors.get<&Tensor::storage>(Id<Tensor>(i));
        const std::string_view name = trace.text(trace.tensors.get<&Tensor::name>(Id<Tensor>(i)));
        if (!storage.valid() || name.empty()) continue;
        const Id<Allocation> row = trace.storages.get<&Storage::allocation>(storage);
        if (!row.valid() || trace.allocations.get<&Allocation::op>(row).valid()) continue;
        numbers[row.index()] = std::hash<std::string_view>()(name);
    }
    return numbers;
}

models::Result<void> read_requests(const Trace& trace, bool is_program,
                                   std::vector<Id<Allocation>>& rows, StepRequests& work) {
    const auto stream = request_stream_of(trace, profiled_device(trace), &rows);
    if (!stream) return tl::unexpected(stream.error());
    const PhasesByEvent phases(trace);
    const std::vector<uint64_t> op_numbers = numbers_of_ops(trace);
    const auto number_of = [&](Id<Op> op) { return op.valid() ? op_numbers[op.index()] : 0; };
    const std::vector<uint64_t> named =
        is_program ? numbers_of_named(trace) : std::vector<uint64_t>(trace.allocations.size(), 0);
    const Step last = trace.steps[Id<Step>(trace.steps.size() - 1)];
    work.requests.reserve(stream->requests.size());
    bool is_in_last_step = false;
    work.allocations.resize(stream->num_allocations);
    for (const AllocatorRequest& request : stream->requests) {
        work.requests.push_back({request.kind, request.allocation});
        if (request.kind != AllocatorRequestKind::kAlloc) continue;
        const Id<Allocation> row = rows[request.allocation];
        const int64_t event = trace.allocations.get<&Allocation::alloc_event>(row);
        if (!is_in_last_step && event >= last.first_event) {
            is_in_last_step = true;
            work.first_request = work.requests.size() - 1;
        }
        work.allocations[request.allocation] = {
            .size_bytes = request.size_bytes,
            .stream = request.stream,
            .pool = request.pool,
            .category = category_of_block(trace, row),
            .phase = phases.kind_at(event),
            .in_last_step = event >= last.first_event && event < last.last_event,
            .op = number_of(trace.allocations.get<&Allocation::op>(row)) + named[row.index()],
            .freeing_op = number_of(trace.allocations.get<&Allocation::freeing_op>(row))};
    }
    const bool has_earlier_step = phases.has_update_before(last.first_event);
    work.is_first_step = !has_earlier_step && makes_what_stays(work);
    return {};
}

/// "encoder.layer.3.output.dense.weight" -> "encoder.layer.3"; the name itself outside layers.
std::string layer_of(const std::string& name) {
    std::size_t dot = 0;
    while ((dot = name.find('.', dot)) != std::string::npos) {
        const std::size_t end = name.find_first_not_of("0123456789", dot + 1);
        if (end != std::string::npos && end > dot + 1 && name[end] == '.') {
            return name.substr(0, end);
        }
        ++dot;
    }
    return name;
}

void read_parameters(const Trace& trace, Parameters& parameters) {
    std::vector<bool> seen(trace.storages.size(), false);
    std::map<std::string, int64_t> layers;
    for (const Tensor tensor : trace.tensors.rows()) {
        if (!tensor.storage.valid() || seen[tensor.storage.index()]) continue;
        const Storage storage = trace.storages[tensor.storage];
        if (storage.category != Category::kParameter) continue;
        seen[tensor.storage.index()] = true;
        parameters.num_elements += storage.size_bytes / likely_element_bytes(tensor.dtype);
        parameters.num_tensors += 1;
        parameters.size_bytes += storage.size_bytes;
        parameters.largest_tensor_bytes =
            std::max(parameters.largest_tensor_bytes, storage.size_bytes);
        int64_t& layer = layers[layer_of(std::string(trace.text(tensor.name)))];
        layer += storage.size_bytes;
        parameters.largest_layer_bytes = std::max(parameters.largest_layer_bytes, layer);
    }
}

void read_ops(const Trace& trace, const OpWorkDefaults& defaults, StepWork& work) {
    const Id<Step> whole = last_whole_step(trace);
    const Id<Step> step = whole.valid() ? whole : Id<Step>(trace.steps.size() - 1);
    const StepOps ops = ops_of_step(trace, step, defaults);
    work.has_shapes = ops.has_shapes;
    for (const OpWork& op : ops.ops) {
        work.ops.push_back({.phase = op.phase, .op_class = op.op_class, .work = op.work});
        // Backward computes two GEMMs for each GEMM of forward. What checkpointing computes again
        // does not count as model flop.
        if (op.op_class == OpClass::kContraction && op.phase != PhaseKind::kBackward) {
            work.model_flop += (op.phase == PhaseKind::kInference ? 1 : 3) * op.work.flop;
        }
    }
}

bool same_op(const StepOp& a, const StepOp& b) {
    return a.phase == b.phase && a.op_class == b.op_class && a.work.kernel == b.work.kernel &&
           a.work.type == b.work.type && a.work.is_own == b.work.is_own;
}

auto key_of(const StepOp& op) {
    const KernelWork& w = op.work;
    return std::tuple(op.phase, op.op_class, w.kernel, w.type, w.flop, w.moved_bytes, w.shape.batch,
                      w.shape.m, w.shape.n, w.shape.k, w.columns, w.is_own);
}

/// Merges pairs of ops that are equal in both lists. The order of the pairs does not change.
void merge_pairs(std::vector<StepOp>& a, std::vector<StepOp>& b) {
    using Key = decltype(std::pair(key_of(a.front()), key_of(b.front())));
    std::map<Key, std::size_t> places;
    std::size_t saved = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const auto [place, is_new] = places.try_emplace(Key(key_of(a[i]), key_of(b[i])), saved);
        if (is_new) {
            a[saved] = a[i];
            b[saved] = b[i];
            ++saved;
        } else {
            a[place->second].count += a[i].count;
            b[place->second].count += b[i].count;
        }
    }
    a.resize(saved);
    b.resize(saved);
}

models::Result<void> check_order(const StepRequests& small, const StepRequests& large) {
    if (small.batch_size < large.batch_size) return {};
    return models::fail("Two steps of batch {} and {} give no line.", small.batch_size,
                        large.batch_size);
}

StepWork without_requests(const StepWork& step) {
    StepWork ops;
    ops.batch_size = step.batch_size;
    ops.source = step.source;
    ops.ops = step.ops;
    ops.parameters = step.parameters;
    ops.model_flop = step.model_flop;
    ops.micro_batches = step.micro_batches;
    ops.has_shapes = step.has_shapes;
    return ops;
}

/// What is affine in the batch, at one batch from its values at two.
struct Line {
    int64_t small_batch;
    int64_t large_batch;
    int64_t batch;

    /// Rounds towards +infinity, as sizes round up.
    int64_t between(int64_t small, int64_t large) const {
        const int64_t span = large_batch - small_batch;
        const int64_t rise = (large - small) * (batch - small_batch);
        return small + rise / span + (rise % span > 0 ? 1 : 0);
    }
    KernelWork between(const KernelWork& small, const KernelWork& large) const {
        KernelWork work = small;
        work.flop = between(small.flop, large.flop);
        work.moved_bytes = between(small.moved_bytes, large.moved_bytes);
        work.shape = {between(small.shape.batch, large.shape.batch),
                      between(small.shape.m, large.shape.m), between(small.shape.n, large.shape.n),
                      between(small.shape.k, large.shape.k)};
        work.columns = between(small.columns, large.columns);
        return work;
    }
};

/// Identifies an allocation of a step at every batch size: the allocating op, the freeing op,
/// stream, pool, and a number among the allocations that agree in these four.
using AllocationKey = std::tuple<uint64_t, uint64_t, int64_t, int64_t, int64_t>;

class AllocationKeys {
public:
    AllocationKey next(const StepAllocation& allocation) {
        AllocationKey key(allocation.op, allocation.freeing_op, allocation.stream, allocation.pool,
                          0);
        std::get<4>(key) = counts_[key]++;
        return key;
    }

private:
    std::map<AllocationKey, int64_t> counts_;
};

/// What becomes of an allocation if gradients are zeroed instead of freed.
enum class GradientFate : uint8_t { kAsTraced, kStays, kIsAdded };

/// The fate of each allocation. If the trace has no earlier step, `before` gets the requests that
/// allocate its gradients.
std::vector<GradientFate> gradient_fates(StepRequests& step, std::vector<StepRequest>& before) {
    std::vector<GradientFate> fates(step.allocations.size(), GradientFate::kAsTraced);
    std::vector<uint32_t> gradients;
    std::size_t per_step = 0;
    for (uint32_t i = 0; i < fates.size(); ++i) {
        if (step.allocations[i].category != Category::kGradient) continue;
        gradients.push_back(i);
        per_step += step.allocations[i].in_last_step ? 1 : 0;
    }
    const bool has_first_step = gradients.size() >= 2 * per_step;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        const bool is_first = has_first_step && i < per_step;
        fates[gradients[i]] = is_first ? GradientFate::kStays : GradientFate::kIsAdded;
        if (has_first_step) continue;
        const StepAllocation copy = step.allocations[gradients[i]];
        before.push_back(
            {AllocatorRequestKind::kAlloc, static_cast<uint32_t>(step.allocations.size())});
        step.allocations.push_back(copy);
    }
    return fates;
}

}  // namespace

models::Result<StepWork> step_work_of(const Trace& trace, std::vector<Id<Allocation>>* rows) {
    const auto defaults = defaults_of(trace);
    if (!defaults) return tl::unexpected(defaults.error());
    if (trace.steps.empty()) return models::fail("The trace holds no training step.");
    StepWork work;
    const auto workload = workload_of(trace);
    work.batch_size = workload ? workload->batch_size : trace.run().batch_size;
    work.micro_batches = micro_batches_of(trace).value_or(1);
    work.source = trace.run().source;
    std::vector<Id<Allocation>> own_rows;
    auto read =
        read_requests(trace, defaults->is_program, rows != nullptr ? *rows : own_rows, work);
    if (!read) return tl::unexpected(read.error());
    if (records_saves(trace)) work.saved_bytes = saved_bytes_of(trace);
    read_parameters(trace, work.parameters);
    read_ops(trace, *defaults, work);
    return work;
}

std::optional<std::size_t> first_different_op(const StepWork& small, const StepWork& large) {
    const auto [end, other] = std::ranges::mismatch(small.ops, large.ops, same_op);
    if (end == small.ops.end() && other == large.ops.end()) return std::nullopt;
    return static_cast<std::size_t>(end - small.ops.begin());
}

models::Result<AffineOps> AffineOps::fit(const StepWork& small, const StepWork& large) {
    if (const auto ok = check_order(small, large); !ok) return tl::unexpected(ok.error());
    if (first_different_op(small, large)) {
        return models::fail("Batches {} and {} run different ops, so no line goes through them.",
                            small.batch_size, large.batch_size);
    }
    AffineOps ops(without_requests(small), without_requests(large));
    merge_pairs(ops.small_.ops, ops.large_.ops);
    return ops;
}

StepWork AffineOps::at(int64_t batch_size) const {
    const Line line{small_.batch_size, large_.batch_size, batch_size};
    StepWork step = small_;
    step.batch_size = batch_size;
    step.has_shapes = small_.has_shapes && large_.has_shapes;
    step.model_flop = line.between(small_.model_flop, large_.model_flop);
    for (std::size_t i = 0; i < step.ops.size(); ++i) {
        step.ops[i].work = line.between(small_.ops[i].work, large_.ops[i].work);
    }
    return step;
}

models::Result<AffineRequests> AffineRequests::fit(const StepRequests& small,
                                                   const StepRequests& large) {
    if (const auto ok = check_order(small, large); !ok) return tl::unexpected(ok.error());
    std::map<AllocationKey, int64_t> small_bytes;
    AllocationKeys keys;
    for (const StepAllocation& allocation : small.allocations) {
        small_bytes[keys.next(allocation)] = allocation.size_bytes;
    }
    AffineRequests requests(large);
    requests.small_batch_ = small.batch_size;
    requests.small_saved_bytes_ = small.saved_bytes;
    AllocationKeys large_keys;
    for (const StepAllocation& allocation : large.allocations) {
        const auto same = small_bytes.find(large_keys.next(allocation));
        const bool is_new = same == small_bytes.end();
        if (is_new && allocation.op == 0) {
            return models::fail(
                "Batches {} and {} ask the allocator for different sequences of blocks (the first "
                "that differs has {} and is outside of ops): record batches nearer to each other.",
                small.batch_size, large.batch_size, format_bytes(allocation.size_bytes));
        }
        const int64_t proportional = allocation.size_bytes * small.batch_size / large.batch_size;
        requests.small_bytes_.push_back(is_new ? proportional : same->second);
    }
    return requests;
}

std::optional<std::size_t> AffineRequests::not_affine() const {
    constexpr double kScratchBytes = 1 << 20;  // scratch grows in steps
    const double ratio = static_cast<double>(large_.batch_size) / static_cast<double>(small_batch_);
    double furthest_bytes = kScratchBytes;
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < small_bytes_.size(); ++i) {
        if (large_.allocations[i].op == 0) continue;  // nothing tells it from the others
        const double above_bytes = static_cast<double>(large_.allocations[i].size_bytes) -
                                   ratio * static_cast<double>(small_bytes_[i]);
        if (above_bytes <= furthest_bytes) continue;
        furthest_bytes = above_bytes;
        found = i;
    }
    return found;
}

StepRequests AffineRequests::at(int64_t batch_size) const {
    const Line line{small_batch_, large_.batch_size, batch_size};
    StepRequests step = large_;
    step.batch_size = batch_size;
    for (std::size_t i = 0; i < step.allocations.size(); ++i) {
        int64_t& bytes = step.allocations[i].size_bytes;
        bytes = std::max<int64_t>(line.between(small_bytes_[i], bytes), 1);
    }
    step.saved_bytes.reset();
    if (small_saved_bytes_ && large_.saved_bytes) {
        step.saved_bytes = line.between(*small_saved_bytes_, *large_.saved_bytes);
    }
    return step;
}

void repeat_first_step(StepRequests& step) {
    if (!step.is_first_step) return;
    const std::size_t begin = std::exchange(step.first_request, step.requests.size());
    const std::vector<bool> stays = allocations_that_stay(step);
    constexpr auto kNone = std::numeric_limits<uint32_t>::max();
    std::vector<uint32_t> second(step.allocations.size(), kNone);  // of those of the first step
    step.requests.reserve(2 * step.requests.size());
    step.allocations.reserve(2 * step.allocations.size());
    for (std::size_t i = begin; i < step.first_request; ++i) {
        const StepRequest request = step.requests[i];
        if (request.kind == AllocatorRequestKind::kAlloc) {
            StepAllocation& first = step.allocations[request.allocation];
            first.in_last_step = false;
            if (stays[request.allocation]) continue;
            second[request.allocation] = static_cast<uint32_t>(step.allocations.size());
            StepAllocation again = first;
            again.in_last_step = true;
            step.allocations.push_back(again);
        }
        const uint32_t again = second[request.allocation];
        if (again != kNone) step.requests.push_back({request.kind, again});
    }
    step.is_first_step = false;
}

void zero_gradients(StepRequests& step) {
    std::vector<StepRequest> requests;
    const std::vector<GradientFate> fates = gradient_fates(step, requests);
    std::optional<uint32_t> added;
    std::size_t first_request = 0;
    for (std::size_t i = 0; i < step.requests.size(); ++i) {
        const StepRequest& request = step.requests[i];
        if (i == step.first_request) first_request = requests.size();
        const bool is_alloc = request.kind == AllocatorRequestKind::kAlloc;
        const GradientFate fate = fates[request.allocation];
        if (is_alloc && added) requests.push_back({AllocatorRequestKind::kFree, *added});
        if (is_alloc) added.reset();
        if (!is_alloc && fate != GradientFate::kAsTraced) continue;
        requests.push_back(request);
        if (fate == GradientFate::kIsAdded) added = request.allocation;
    }
    if (added) requests.push_back({AllocatorRequestKind::kFree, *added});
    step.requests = std::move(requests);
    step.first_request = first_request;
}

void merge_equal_ops(StepWork& step) {
    std::vector<StepOp> same = step.ops;
    merge_pairs(step.ops, same);
}

}  // namespace profiler
