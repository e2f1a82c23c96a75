#include "profiler/analysis/ops/gpu_time.h"

#include <algorithm>

namespace profiler {

int64_t covered_ns(std::vector<TimeSpan> spans) {
    std::ranges::sort(spans, {}, &TimeSpan::start_ns);
    int64_t covered = 0, end_ns = INT64_MIN;
    for (const TimeSpan& span : spans) {
        const int64_t start_ns = std::max(span.start_ns, end_ns);
        covered += std::max<int64_t>(span.end_ns - start_ns, 0);
        end_ns = std::max(end_ns, span.end_ns);
    }
    return covered;
}

namespace {

/// The step whose op launched the kernel; none if that is not known.
Id<Step> step_of(const Trace& trace, Id<Op> op) {
    if (!op.valid()) return {};
    const Id<Phase> phase = trace.ops.get<&Op::phase>(op);
    return phase.valid() ? trace.phases.get<&Phase::step>(phase) : Id<Step>();
}

/// The step on the GPU. The host marks its end when the optimizer has been launched, while the
/// GPU is still at work, so what the step launched decides.
TimeSpan on_gpu(const Trace& trace, Id<Step> wanted) {
    TimeSpan span{.start_ns = INT64_MAX, .end_ns = INT64_MIN};
    int64_t end_before_ns = INT64_MIN;
    for (const Kernel kernel : trace.kernels.rows()) {
        const Id<Step> step = step_of(trace, kernel.op);
        if (!step.valid()) continue;
        if (step.index() > wanted.index()) continue;
        if (step != wanted) {
            end_before_ns = std::max(end_before_ns, kernel.end_ns);
            continue;
        }
        span.start_ns = std::min(span.start_ns, kernel.start_ns);
        span.end_ns = std::max(span.end_ns, kernel.end_ns);
    }
    if (end_before_ns != INT64_MIN) span.start_ns = end_before_ns;
    return span;
}

}  // namespace

bool is_nccl_kernel(std::string_view name) {
    return name.starts_with("ncclDevKernel_") || name.starts_with("ncclKernel_");
}

std::optional<GpuTime> gpu_time_of(const Trace& trace, Id<Step> wanted) {
    if (!wanted.valid()) return std::nullopt;
    const TimeSpan step = on_gpu(trace, wanted);
    if (step.start_ns >= step.end_ns) return std::nullopt;
    const Id<Device> device = profiled_device(trace);
    std::vector<TimeSpan> compute, communication;
    const auto add = [&](std::vector<TimeSpan>& spans, const auto& row) {
        if (row.stream.valid() && trace.streams.get<&Stream::device>(row.stream) != device) return;
        const TimeSpan span{std::max(row.start_ns, step.start_ns),
                            std::min(row.end_ns, step.end_ns)};
        if (span.start_ns < span.end_ns) spans.push_back(span);
    };
    for (const Kernel kernel : trace.kernels.rows()) {
        add(is_nccl_kernel(trace.text(kernel.name)) ? communication : compute, kernel);
    }
    for (const Id<Memcpy> id : trace.memcpys.ids()) {
        add(compute, trace.memcpys[id]);
    }
    GpuTime time{.step_ns = step.end_ns - step.start_ns, .compute_ns = covered_ns(compute)};
    const bool is_known = !communication.empty() || trace.run().time_basis == TimeBasis::kMeasured;
    if (is_known) time.communication_ns = covered_ns(communication);
    compute.insert(compute.end(), communication.begin(), communication.end());
    const int64_t busy_ns = covered_ns(std::move(compute));
    if (is_known) time.exposed_communication_ns = busy_ns - time.compute_ns;
    time.idle_ns = time.step_ns - busy_ns;
    return time;
}

}  // namespace profiler
