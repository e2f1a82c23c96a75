#include "profiler/capture/cuda/gpu_notes.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <string_view>

namespace profiler {
namespace {

class Notes {
public:
    explicit Notes(Trace& trace) : trace_(trace) {}

    void add(std::string_view code, Severity severity, int64_t count, std::string_view sentence) {
        if (count == 0) return;
        trace_.diagnostics.append({.code = trace_.strings.intern(code),
                                   .severity = severity,
                                   .count = count,
                                   .explanation = trace_.strings.intern(sentence)});
    }

private:
    Trace& trace_;
};

void add_work_notes(const GpuFaults& faults, Notes& notes) {
    notes.add("kernels_missing", Severity::kWarning, faults.cupti_problem.empty() ? 0 : 1,
              faults.cupti_problem);
    notes.add("cupti_records_dropped", Severity::kError, faults.dropped_records,
              "CUPTI had no free buffer and dropped records: kernels or calls are missing; record "
              "fewer layers or a smaller batch.");
    notes.add("cupti_buffers_broken", Severity::kError, faults.broken_buffers,
              "CUPTI's buffers ended in the middle of a record: kernels or calls may be missing.");
    notes.add("cupti_records_unknown", Severity::kInfo, faults.unknown_records,
              "CUPTI sent records of kinds that the trace does not store.");
    notes.add("work_without_op", Severity::kWarning, faults.join.without_op,
              "Kernels and copies were started outside every recorded op.");
    notes.add("work_without_time", Severity::kWarning, faults.join.without_time,
              "CUPTI could not time these kernels and copies.");
}

}  // namespace

void add_gpu_notes(const GpuFaults& faults, const AllocatorRowCounts& allocator,
                   int64_t differing_totals, Trace& trace) {
    Notes notes(trace);
    add_work_notes(faults, notes);
    add_diagnostics(allocator, trace);
    notes.add("allocator_totals_differ", Severity::kError, differing_totals,
              "After an allocation or a free, torch's totals differed from the trace's.");
    notes.add("capture_memory", Severity::kInfo, faults.most_host_bytes > 0 ? 1 : 0,
              fmt::format("CUPTI's records took up to {} of host memory. No device memory of the "
                          "trace is CUPTI's.",
                          format_bytes(faults.most_host_bytes)));
    notes.add("nvml_missing", Severity::kInfo, faults.has_nvml ? 0 : 1,
              "Without NVML nobody knows how much device memory was in use before this process: "
              "the context's part includes it.");
}

}  // namespace profiler
