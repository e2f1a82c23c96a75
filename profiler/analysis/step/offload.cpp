#include "profiler/analysis/step/offload.h"

#include "profiler/analysis/step/recorded_step.h"

#include <map>
#include <string_view>

namespace profiler {
namespace {

constexpr std::string_view kToHost = "device_to_host";
constexpr std::string_view kToDevice = "host_to_device";

}  // namespace

Offload offload_of(const Trace& trace) {
    const Id<Step> step = last_whole_step(trace);
    std::multimap<int64_t, int64_t> on_host;  // copies by their bytes: their time
    Offload offload;
    for (const Memcpy copy : trace.memcpys.rows()) {
        const Id<Phase> phase = copy.op.valid() ? trace.ops.get<&Op::phase>(copy.op) : Id<Phase>();
        if (!phase.valid() || trace.phases.get<&Phase::step>(phase) != step) continue;
        const PhaseKind kind = trace.phases.get<&Phase::kind>(phase);
        const std::string_view direction = trace.text(copy.kind);
        if (direction == kToHost && kind != PhaseKind::kBackward) {
            on_host.emplace(copy.size_bytes, copy.end_ns - copy.start_ns);
        }
        if (direction != kToDevice || kind != PhaseKind::kBackward) continue;
        const auto out = on_host.find(copy.size_bytes);
        if (out == on_host.end()) continue;
        offload.size_bytes += copy.size_bytes;
        offload.num_copies += 1;
        offload.copy_ns += out->second + copy.end_ns - copy.start_ns;
        on_host.erase(out);
    }
    return offload;
}

}  // namespace profiler
