#include "profiler/planner/step/step_work.h"

#include "profiler/analysis/event_order.h"
#include "profiler/analysis/run_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace profiler {
namespace {

struct EventRange {
    int64_t first = 0;
    int64_t last = 0;
    bool contains(int64_t event) const { return event >= first && event < last; }
};

std::vector<EventRange> optimizer_ranges(const Trace& trace) {
    std::vector<EventRange> ranges;
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
        if (phase.kind != PhaseKind::kOptimizer) continue;
        ranges.push_back({phase.first_event, phase.last_event});
    }
    return ranges;
}

models::Result<void> read_requests(const Trace& trace, std::vector<Id<Allocation>>& rows,
                                   StepWork& work) {
    const auto stream = request_stream_of(trace, profiled_device(trace), &rows);
    if (!stream) return tl::unexpected(stream.error());
    const std::vector<EventRange> updates = optimizer_ranges(trace);
    const Step last = trace.steps[Id<Step>(trace.steps.size() - 1)];
    const EventRange last_step{last.first_event, last.last_event};
    work.requests.reserve(stream->requests.size());
    bool is_in_last_step = false;
    work.allocations.resize(stream->num_allocations);
    for (const AllocatorRequest& request : stream->requests) {
        work.requests.push_back({request.kind, request.allocation});
        if (request.kind != AllocatorRequestKind::kAlloc) continue;
        const Id<Allocation> row = rows[request.allocation];
        const Id<Storage> storage = trace.allocations.get<&Allocation::storage>(row);
        const int64_t event = trace.allocations.get<&Allocation::alloc_event>(row);
        if (!is_in_last_step && event >= last_step.first) {
            is_in_last_step = true;
            work.first_request = work.requests.size() - 1;
        }
        const auto holds_event = [&](const EventRange& range) { return range.contains(event); };
        work.allocations[request.allocation] = {
            .size_bytes = request.size_bytes,
            .stream = request.stream,
            .pool = request.pool,
            .category = storage.valid() ? trace.storages.get<&Storage::category>(storage)
                                        : Category::kUnknown,
            .in_optimizer = std::any_of(updates.begin(), updates.end(), holds_event),
            .in_last_step = last_step.contains(event)};
    }
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
    for (std::size_t i = 0; i < trace.tensors.size(); ++i) {
        const Tensor tensor = trace.tensors[Id<Tensor>(i)];
        if (!tensor.storage.valid() || seen[tensor.storage.index()]) continue;
        const Storage storage = trace.storages[tensor.storage];
        if (storage.category != Category::kParameter) continue;
        seen[tensor.storage.index()] = true;
        parameters.num_elements += storage.size_bytes / bytes_of(tensor.dtype);
        parameters.num_tensors += 1;
        parameters.size_bytes += storage.size_bytes;
        parameters.largest_tensor_bytes =
            std::max(parameters.largest_tensor_bytes, storage.size_bytes);
        int64_t& layer = layers[layer_of(std::string(trace.text(tensor.name)))];
        layer += storage.size_bytes;
        parameters.largest_layer_bytes = std::max(parameters.largest_layer_bytes, layer);
    }
}

void read_ops(const Trace& trace, const models::Workload& workload, StepWork& work) {
    const Id<Step> last(trace.steps.size() - 1);
    const StepOps ops = ops_of_step(trace, last, defaults_of(workload));
    work.has_shapes = ops.has_shapes;
    for (const OpWork& op : ops.ops) {
        work.ops.push_back({.phase = op.phase, .op_class = op.op_class, .work = op.work});
        // Backward computes two GEMMs for each GEMM of forward. What checkpointing computes again
        // does not count as model flop.
        if (op.op_class == OpClass::kContraction && op.phase != PhaseKind::kBackward) {
            work.model_flop += 3 * op.work.flop;
        }
    }
}

bool same_request(const StepRequest& a, const StepRequest& b) {
    return a.kind == b.kind && a.allocation == b.allocation;
}

bool same_allocation(const StepAllocation& a, const StepAllocation& b) {
    return a.stream == b.stream && a.pool == b.pool;
}

bool same_op(const StepOp& a, const StepOp& b) {
    return a.phase == b.phase && a.op_class == b.op_class && a.work.kernel == b.work.kernel &&
           a.work.type == b.work.type;
}

template <typename T, typename Same>
bool same_sequence(const std::vector<T>& a, const std::vector<T>& b, const Same& same) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

auto key_of(const StepOp& op) {
    const KernelWork& w = op.work;
    return std::tuple(op.phase, op.op_class, w.kernel, w.type, w.flop, w.moved_bytes, w.shape.batch,
                      w.shape.m, w.shape.n, w.shape.k);
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

/// What becomes of an allocation if gradients are zeroed instead of freed.
enum class GradientFate : uint8_t { kAsTraced, kStays, kIsAdded };

/// The fate of each allocation. If the trace has no earlier step, `before` gets the requests that
/// allocate its gradients.
std::vector<GradientFate> gradient_fates(StepWork& step, std::vector<StepRequest>& before) {
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
    const auto workload = workload_of(trace);
    if (!workload) return models::fail("The trace does not say which workload it ran.");
    if (trace.steps.empty()) return models::fail("The trace holds no training step.");
    StepWork work{.batch_size = workload->batch_size, .source = trace.run().source};
    std::vector<Id<Allocation>> own_rows;
    auto read = read_requests(trace, rows != nullptr ? *rows : own_rows, work);
    if (!read) return tl::unexpected(read.error());
    read_parameters(trace, work.parameters);
    read_ops(trace, *workload, work);
    return work;
}

models::Result<AffineStep> AffineStep::fit(const StepWork& small, const StepWork& large) {
    if (small.batch_size >= large.batch_size) {
        return models::fail("Two steps of batch {} and {} give no line.", small.batch_size,
                            large.batch_size);
    }
    if (!same_sequence(small.requests, large.requests, same_request) ||
        !same_sequence(small.allocations, large.allocations, same_allocation)) {
        return models::fail("batches {} and {} ask the allocator for different sequences",
                            small.batch_size, large.batch_size);
    }
    if (!same_sequence(small.ops, large.ops, same_op)) {
        return models::fail("batches {} and {} run different ops", small.batch_size,
                            large.batch_size);
    }
    AffineStep step;
    step.small_ = small;
    step.large_ = large;
    merge_pairs(step.small_.ops, step.large_.ops);
    return step;
}

int64_t AffineStep::interpolate(int64_t small, int64_t large, int64_t batch_size) const {
    const int64_t span = large_.batch_size - small_.batch_size;
    const int64_t rise = (large - small) * (batch_size - small_.batch_size);
    // Rounds towards +infinity, as sizes round up.
    const int64_t whole = rise / span;
    return small + whole + (rise % span > 0 ? 1 : 0);
}

KernelWork AffineStep::interpolate(const KernelWork& small, const KernelWork& large,
                                   int64_t batch_size) const {
    KernelWork work = small;
    const auto between = [&](int64_t a, int64_t b) { return interpolate(a, b, batch_size); };
    work.flop = between(small.flop, large.flop);
    work.moved_bytes = between(small.moved_bytes, large.moved_bytes);
    work.shape = {between(small.shape.batch, large.shape.batch),
                  between(small.shape.m, large.shape.m), between(small.shape.n, large.shape.n),
                  between(small.shape.k, large.shape.k)};
    return work;
}

StepWork AffineStep::ops_at(int64_t batch_size) const {
    StepWork step;
    step.batch_size = batch_size;
    step.source = small_.source;
    step.parameters = small_.parameters;
    step.has_shapes = small_.has_shapes && large_.has_shapes;
    step.model_flop = interpolate(small_.model_flop, large_.model_flop, batch_size);
    step.ops = small_.ops;
    for (std::size_t i = 0; i < step.ops.size(); ++i) {
        step.ops[i].work = interpolate(small_.ops[i].work, large_.ops[i].work, batch_size);
    }
    return step;
}

StepWork AffineStep::at(int64_t batch_size) const {
    StepWork step = ops_at(batch_size);
    step.requests = small_.requests;
    step.first_request = small_.first_request;
    step.allocations = small_.allocations;
    for (std::size_t i = 0; i < step.allocations.size(); ++i) {
        step.allocations[i].size_bytes =
            std::max<int64_t>(interpolate(small_.allocations[i].size_bytes,
                                          large_.allocations[i].size_bytes, batch_size),
                              1);
    }
    return step;
}

void order_frees(StepWork& step) {
    const auto is_free = [](const StepRequest& request) {
        return request.kind == AllocatorRequestKind::kFree;
    };
    const auto begin = step.requests.begin();
    const auto boundary = begin + static_cast<std::ptrdiff_t>(step.first_request);
    for (const auto& [from, to] :
         {std::pair(begin, boundary), std::pair(boundary, step.requests.end())}) {
        for (auto run = std::find_if(from, to, is_free); run != to;) {
            const auto end = std::find_if_not(run, to, is_free);
            std::sort(run, end, [](const StepRequest& a, const StepRequest& b) {
                return a.allocation < b.allocation;
            });
            run = std::find_if(end, to, is_free);
        }
    }
}

void zero_gradients(StepWork& step) {
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
