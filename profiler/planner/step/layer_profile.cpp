#include "profiler/planner/step/layer_profile.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/planner/step/op_work.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace profiler {
namespace {

/// The live bytes after each request, with its time.
class LiveBytes {
public:
    LiveBytes(const Trace& trace, const StepWork& step, const std::vector<Id<Allocation>>& rows) {
        int64_t live = 0;
        for (const StepRequest& request : step.requests) {
            const Id<Allocation> row = rows[request.allocation];
            const int64_t bytes = step.allocations[request.allocation].size_bytes;
            const bool is_alloc = request.kind == AllocatorRequestKind::kAlloc;
            if (request.kind == AllocatorRequestKind::kFreeCompleted) continue;
            live += is_alloc ? bytes : -bytes;
            times_.push_back(is_alloc ? trace.allocations.get<&Allocation::alloc_ns>(row)
                                      : trace.allocations.get<&Allocation::free_requested_ns>(row));
            live_.push_back(live);
        }
    }

    int64_t before(int64_t ns) const {
        const std::size_t index = index_of(ns);
        return index == 0 ? 0 : live_[index - 1];
    }
    /// The highest rise of the live bytes within [begin, end).
    int64_t rise(int64_t begin_ns, int64_t end_ns) const {
        int64_t most = before(begin_ns);
        for (std::size_t i = index_of(begin_ns); i < index_of(end_ns); ++i) {
            most = std::max(most, live_[i]);
        }
        return most - before(begin_ns);
    }

private:
    /// The index of the first request at or after a time.
    std::size_t index_of(int64_t ns) const {
        return static_cast<std::size_t>(std::lower_bound(times_.begin(), times_.end(), ns) -
                                        times_.begin());
    }

    std::vector<int64_t> times_;
    std::vector<int64_t> live_;
};

struct Span {
    int64_t begin_ns = std::numeric_limits<int64_t>::max();
    int64_t end_ns = 0;
    void add(int64_t begin, int64_t end) {
        begin_ns = std::min(begin_ns, begin);
        end_ns = std::max(end_ns, end);
    }
    bool is_empty() const { return begin_ns > end_ns; }
};

struct LayerSpans {
    std::vector<Span> forward;   // by layer
    std::vector<Span> backward;  // by layer; the last layer's comes first
    int64_t backward_end_ns = 0;
};

std::optional<std::size_t> layer_of(const Trace& trace, Id<Op> op) {
    const Id<ModulePath> module_path = trace.ops.get<&Op::module_path>(op);
    if (!module_path.valid()) return std::nullopt;
    const int64_t layer = trace.module_paths.get<&ModulePath::layer>(module_path);
    return layer < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(layer));
}

models::Result<LayerSpans> spans_of_layers(const Trace& trace, std::size_t num_layers) {
    const Id<Step> last(trace.steps.size() - 1);
    LayerSpans spans{.forward = std::vector<Span>(num_layers),
                     .backward = std::vector<Span>(num_layers)};
    for (const Id<Op> id : trace.ops.ids()) {
        const Op op = trace.ops[id];
        if (!op.phase.valid()) continue;
        const Phase phase = trace.phases[op.phase];
        if (phase.step != last) continue;
        const bool is_backward = phase.kind == PhaseKind::kBackward;
        if (is_backward) spans.backward_end_ns = std::max(spans.backward_end_ns, phase.end_ns);
        const auto layer = layer_of(trace, id);
        if (!layer || *layer >= num_layers) continue;
        if (is_backward) spans.backward[*layer].add(op.start_ns, op.end_ns);
        if (phase.kind == PhaseKind::kForward) spans.forward[*layer].add(op.start_ns, op.end_ns);
    }
    const auto is_empty = [](const Span& span) { return span.is_empty(); };
    if (std::ranges::any_of(spans.forward, is_empty) ||
        std::ranges::any_of(spans.backward, is_empty)) {
        return models::fail("The traced step does not say which ops each layer ran.");
    }
    return spans;
}

void read_bytes(const LiveBytes& live, const LayerSpans& spans, LayerProfile& profile) {
    const std::size_t num_layers = spans.forward.size();
    const int64_t forward_end_ns = spans.forward.back().end_ns;
    for (std::size_t i = 0; i < num_layers; ++i) {
        const int64_t begin_ns = spans.forward[i].begin_ns;
        const int64_t end_ns = i + 1 < num_layers ? spans.forward[i + 1].begin_ns : forward_end_ns;
        const int64_t back_ns = spans.backward[i].begin_ns;
        const int64_t back_end_ns = i == 0 ? spans.backward_end_ns : spans.backward[i - 1].begin_ns;
        LayerBytes bytes{.saved_bytes = live.before(end_ns) - live.before(begin_ns),
                         .forward_bytes = live.rise(begin_ns, end_ns),
                         .backward_bytes = live.rise(back_ns, back_end_ns)};
        bytes.gradient_bytes = live.before(back_end_ns) - live.before(back_ns) + bytes.saved_bytes;
        profile.bytes.push_back(bytes);
    }
    profile.head_bytes = live.rise(forward_end_ns, spans.backward.back().begin_ns);
}

}  // namespace

models::Result<LayerProfile> profile_layers(const Trace& trace) {
    std::vector<Id<Allocation>> rows;
    const auto step = step_work_of(trace, &rows);
    if (!step) return tl::unexpected(step.error());
    const auto workload = workload_of(trace);
    const auto num_layers = static_cast<std::size_t>(workload->model.num_layers);
    const auto spans = spans_of_layers(trace, num_layers);
    if (!spans) return tl::unexpected(spans.error());
    LayerProfile profile;
    read_bytes(LiveBytes(trace, *step, rows), *spans, profile);

    StepWork work;
    work.batch_size = step->batch_size;
    work.source = step->source;
    profile.work.assign(num_layers, work);
    const StepOps ops =
        ops_of_step(trace, Id<Step>(trace.steps.size() - 1), defaults_of(*workload));
    for (const OpWork& op : ops.ops) {
        const auto layer = layer_of(trace, op.op);
        if (!layer || *layer >= num_layers) continue;
        profile.work[*layer].ops.push_back(
            {.phase = op.phase, .op_class = op.op_class, .work = op.work});
    }
    return profile;
}

}  // namespace profiler
