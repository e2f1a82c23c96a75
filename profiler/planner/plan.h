#pragma once

#include "models/config/workload.h"
#include "profiler/allocator/settings.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/planner/step/step_memory.h"
#include "profiler/planner/step/step_time.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What fits on which GPU and how fast it is: a row for each workload on each GPU. A row that is
/// not possible does not stop the others.
namespace profiler {

enum class PlanStatus : uint8_t { kOk, kDoesNotFit, kNotSupported };
inline constexpr std::array<std::string_view, 3> kPlanStatusNames{"ok", "does_not_fit",
                                                                  "not_supported"};
constexpr std::string_view name_of(PlanStatus s) {
    return kPlanStatusNames[static_cast<std::size_t>(s)];
}

/// What limits the largest batch: the GPU's memory, the 2^31 elements that a tensor may have, or
/// the end of the search.
enum class MaxBatchEnd : uint8_t { kMemory, kElements, kSearch };
inline constexpr std::array<std::string_view, 3> kMaxBatchEndNames{"memory", "elements", "search"};
constexpr std::string_view name_of(MaxBatchEnd e) {
    return kMaxBatchEndNames[static_cast<std::size_t>(e)];
}

struct PlanRequest {
    std::vector<models::Workload> workloads;  // their batch sizes are ignored
    std::vector<const Gpu*> gpus;
    const SoftwareEnvironment* environment = nullptr;
    std::optional<int64_t> batch_size;    // empty: the largest that fits
    std::optional<int64_t> budget_bytes;  // memory to use, CUDA context included; empty: all
    DataParallel parallel;
    std::optional<double> bus_bytes_per_s;  // empty: the calibration's
    AllocatorSettings allocator;
    /// Each row is traced on its own GPU, at the batch that was asked for and at the largest one.
    /// False: GPUs share traces of one GPU, and batches are interpolated.
    bool traces_each_gpu = true;
    bool wants_memory_curve = false;
    unsigned busy_cores = 0;  // with other work, which comes first
};

/// Finds GPUs and environment by their ids; "all" alone stands for every GPU. The request points
/// into `data`. Errors: unknown ids.
models::Result<PlanRequest> make_plan_request(std::vector<models::Workload> workloads,
                                              const std::vector<std::string>& gpus,
                                              const std::string& environment,
                                              const PlannerData& data);

/// A point of the throughput curve.
struct PlanPoint {
    int64_t batch_size = 0;
    int64_t step_time_ns = 0;
    double sequences_per_s = 0;  // of all GPUs together
};

/// A point of the memory curve: what the GPU must have, and what lives at the allocated peak.
struct MemoryPoint {
    int64_t batch_size = 0;
    /// The least with which the step runs, CUDA context included; to a thousandth of the GPU.
    int64_t needed_bytes = 0;
    int64_t gap_bytes = 0;  // of these, what lies unused between blocks
    CategoryBytes by_category{};
};

struct PlanMemory {
    PeakContents contents;               // peaks, and what lives at the allocated peak
    std::vector<MemoryTerm> terms;       // what data parallelism adds
    std::optional<int64_t> saved_bytes;  // from forward to backward; empty: not known
    int64_t context_bytes = 0;
    int64_t usable_bytes = 0;  // of the GPU, or the budget
};

/// A program of the user's, in place of a workload.
struct PlannedProgram {
    RecordedProgram step;  // its batch size does not count
    std::string recipe;    // that was put into it; empty: none
};

struct PlanRow {
    models::Workload workload;
    std::optional<PlannedProgram> program;  // then the workload says nothing
    Gpu gpu;
    SoftwareEnvironment environment;  // that was assumed
    PlanStatus status = PlanStatus::kOk;
    std::string reason;                           // why it is not ok; else empty
    std::vector<std::string_view> reason_fields;  // the fields to change, as models::Error::fields
    bool ran_out_of_memory = false;               // this machine did, when it planned the row
    std::vector<std::string> notes;               // assumptions

    std::optional<int64_t> batch_size;  // of the figures
    std::optional<int64_t> max_batch_size;
    MaxBatchEnd max_batch_end = MaxBatchEnd::kMemory;
    /// Where something other than memory does: not_limited_by_memory. Else empty. It is among the
    /// notes, too.
    std::string other_limit;
    std::optional<int64_t> best_batch_size;  // of the highest throughput
    std::optional<PlanMemory> memory;
    std::optional<StepTime> time;
    std::optional<TimeAccuracy> time_accuracy;  // empty without times
    double sequences_per_s = 0;
    double best_sequences_per_s = 0;
    double model_tflops = 0;       // of one GPU
    double best_model_tflops = 0;  // at the best batch
    std::vector<PlanPoint> curve;
    /// A few batches, rising: 1, 2 and up to the largest that fits. Empty unless the request wants
    /// it.
    std::vector<MemoryPoint> memory_curve;

    /// As a predicted trace names it: "NVIDIA T4 with torch-2.11".
    std::string device_name() const;

    /// Makes it a row that is not supported.
    void refuse(const models::Error& error);
};

struct Plan {
    std::vector<PlanRow> rows;  // by workload, then by GPU, in the order of the request
    bool has_ok_row() const;
};

/// "it is not memory that limits the batch to 41. At 42: The logits [B, S, V] would have ..."
std::string not_limited_by_memory(int64_t max_batch, std::string_view why);

/// Called before each traced workload, `done` of `total`, by one thread at a time.
using PlanProgress =
    std::function<void(std::size_t done, std::size_t total, const models::Workload& next)>;

Plan make_plan(const PlanRequest& request, const PlannerData& data, const StepSource& source,
               const PlanProgress& progress = {});

}  // namespace profiler
