#include "profiler/capture/cuda/gpu_notes.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>

namespace profiler {

void add_gpu_notes(const GpuFaults& faults, const AllocatorRowCounts& allocator,
                   int64_t differing_totals, Trace& trace) {
    const auto add = [&](std::string_view code, Severity severity, int64_t count,
                         const std::string& sentence) {
        add_diagnostic(
            trace, {.code = code, .severity = severity, .count = count, .explanation = sentence});
    };
    add("kernels_missing", Severity::kWarning, faults.cupti_problem.empty() ? 0 : 1,
        faults.cupti_problem);
    add("cupti_records_dropped", Severity::kError, faults.dropped_records,
        "CUPTI had no free buffer and dropped records: kernels or calls are missing; record "
        "fewer layers or a smaller batch.");
    add("cupti_buffers_broken", Severity::kError, faults.broken_buffers,
        "CUPTI's buffers ended in the middle of a record: kernels or calls may be missing.");
    add("cupti_records_unknown", Severity::kInfo, faults.unknown_records,
        "CUPTI sent records of kinds that the trace does not store.");
    add("work_without_op", Severity::kWarning, faults.join.without_op,
        "Kernels and copies were started outside every recorded op.");
    add("work_without_time", Severity::kWarning, faults.join.without_time,
        "CUPTI could not time these kernels and copies.");
    add_diagnostics(allocator, trace);
    add("allocator_totals_differ", Severity::kError, differing_totals,
        "After an allocation or a free, torch's totals differed from the trace's.");
    add("capture_memory", Severity::kInfo, faults.most_host_bytes > 0 ? 1 : 0,
        fmt::format("CUPTI's records took up to {} of host memory. No device memory of the "
                    "trace is CUPTI's.",
                    format_bytes(faults.most_host_bytes)));
    add("nvml_missing", Severity::kInfo, faults.has_nvml ? 0 : 1,
        "Without NVML nobody knows how much device memory was in use before this process: "
        "the context's part includes it.");
}

}  // namespace profiler
