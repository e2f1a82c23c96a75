#include "profiler/analysis/gpu_time.h"

#include "profiler/analysis/peak.h"

#include <algorithm>
#include <vector>

namespace profiler {
namespace {

struct Span {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
};

/// How much of time the spans cover together. Sorts them.
int64_t covered_ns(std::vector<Span>& spans) {
    std::ranges::sort(spans, {}, &Span::start_ns);
    int64_t covered = 0, end_ns = INT64_MIN;
    for (const Span& span : spans) {
        const int64_t start_ns = std::max(span.start_ns, end_ns);
        covered += std::max<int64_t>(span.end_ns - start_ns, 0);
        end_ns = std::max(end_ns, span.end_ns);
    }
    return covered;
}

}  // namespace

bool is_nccl_kernel(std::string_view name) {
    return name.starts_with("ncclDevKernel_") || name.starts_with("ncclKernel_");
}

std::optional<GpuTime> gpu_time_of_last_step(const Trace& trace) {
    if (trace.steps.empty() || trace.kernels.empty()) return std::nullopt;
    const Step step = trace.steps[Id<Step>(trace.steps.size() - 1)];
    const Id<Device> device = profiled_device(trace);
    const bool is_measured = trace.run().source != Source::kPredicted;
    std::vector<Span> compute, communication;
    const auto add = [&](std::vector<Span>& spans, const auto& row) {
        if (row.stream.valid() && trace.streams.get<&Stream::device>(row.stream) != device) return;
        const Span span{std::max(row.start_ns, step.start_ns), std::min(row.end_ns, step.end_ns)};
        if (span.start_ns < span.end_ns) spans.push_back(span);
    };
    for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
        const Kernel kernel = trace.kernels[Id<Kernel>(i)];
        const bool is_nccl = is_nccl_kernel(trace.text(kernel.name));
        if (!is_nccl) add(compute, kernel);
        if (is_nccl && is_measured) add(communication, kernel);
    }
    for (std::size_t i = 0; i < trace.memcpys.size(); ++i) {
        add(compute, trace.memcpys[Id<Memcpy>(i)]);
    }
    GpuTime time{.compute_ns = covered_ns(compute)};
    if (is_measured) time.communication_ns = covered_ns(communication);
    compute.insert(compute.end(), communication.begin(), communication.end());
    const int64_t busy_ns = covered_ns(compute);
    if (is_measured) time.exposed_communication_ns = busy_ns - time.compute_ns;
    time.idle_ns = step.end_ns - step.start_ns - busy_ns;
    return time;
}

}  // namespace profiler
