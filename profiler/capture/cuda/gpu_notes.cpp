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
              "fewer --layers or a smaller --batch.");
    notes.add("cupti_buffers_broken", Severity::kError, faults.broken_buffers,
              "CUPTI's buffers ended in the middle of a record: kernels or calls may be missing.");
    notes.add("cupti_records_unknown", Severity::kInfo, faults.unknown_records,
              "CUPTI sent records of kinds that the trace does not store.");
    notes.add("work_without_op", Severity::kWarning, faults.join.without_op,
              "Kernels and copies were started outside every recorded op.");
    notes.add("work_without_time", Severity::kWarning, faults.join.without_time,
              "CUPTI could not time these kernels and copies.");
}

void add_allocator_notes(const AllocatorRowCounts& counts, int64_t differing_totals, Notes& notes) {
    notes.add("unmatched_frees", Severity::kWarning, counts.unmatched_frees,
              "Blocks were freed whose allocation was not seen.");
    notes.add("replaced_blocks", Severity::kError, counts.replaced_blocks,
              "Blocks were allocated at the address of a live block, whose free was not seen.");
    notes.add("outside_segments", Severity::kWarning, counts.outside_segments,
              "Blocks lie outside every segment that was seen.");
    notes.add("unmatched_segments", Severity::kWarning, counts.unmatched_segments,
              "Segments were freed whose allocation was not seen.");
    notes.add("assumed_block_sizes", Severity::kInfo, counts.assumed_block_sizes,
              "The allocator did not report the sizes of these blocks. The trace has the requested "
              "bytes, rounded to 512.");
    notes.add("allocator_totals_differ", Severity::kError, differing_totals,
              "After an allocation or a free, torch's totals differed from the trace's.");
}

}  // namespace

void add_gpu_notes(const GpuFaults& faults, const AllocatorRowCounts& allocator,
                   int64_t differing_totals, Trace& trace) {
    Notes notes(trace);
    add_work_notes(faults, notes);
    add_allocator_notes(allocator, differing_totals, notes);
    notes.add("capture_memory", Severity::kInfo, faults.most_host_bytes > 0 ? 1 : 0,
              fmt::format("CUPTI's records took up to {} of host memory. No device memory of the "
                          "trace is CUPTI's.",
                          format_bytes(faults.most_host_bytes)));
    notes.add("nvml_missing", Severity::kInfo, faults.has_nvml ? 0 : 1,
              "Without NVML nobody knows how much device memory was in use before this process: "
              "the context's part includes it.");
}

}  // namespace profiler
