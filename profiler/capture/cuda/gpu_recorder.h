#pragma once

#include "profiler/capture/cuda/activity_join.h"
#include "profiler/capture/cuda/cupti_session.h"
#include "profiler/capture/cuda/non_torch_memory.h"
#include "profiler/capture/recorder.h"
#include "profiler/capture/torch_adapter/cuda_allocations.h"
#include "profiler/trace/allocator_rows.h"

#include <c10/core/Device.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

/// Records all of a GPU but the allocator: its work, through CUPTI, and its memory outside the
/// allocator, through CUPTI and the driver. If a part is missing, the trace says so.
namespace profiler {

/// What the driver says of a device's memory, through NVML and CUDA.
///
/// NVML is opened at run time and needs no CUDA context, so that it can tell what was in use before
/// there was one. Where it is missing, or sees only parts (containers hide processes), figures are
/// -1: not known.
class DeviceMonitor {
public:
    /// Of CUDA's device `device`. Makes no context.
    explicit DeviceMonitor(int device);
    ~DeviceMonitor();
    DeviceMonitor(const DeviceMonitor&) = delete;
    DeviceMonitor& operator=(const DeviceMonitor&) = delete;

    bool has_nvml() const { return device_ != nullptr; }
    int64_t nvml_used_bytes() const;  // of the whole device
    int64_t process_bytes() const;    // of this process
    int64_t sm_clock_hz() const;

    struct MemoryInfo {
        int64_t free_bytes = 0;
        int64_t total_bytes = 0;
    };
    /// CUDA's own figure; makes the context if there is none. Throws c10::Error.
    static MemoryInfo cuda_memory();

private:
    struct Functions;
    void* library_ = nullptr;
    std::unique_ptr<Functions> functions_;
    void* device_ = nullptr;  // nvmlDevice_t
};

/// What a capture on a GPU missed or had to assume, besides the allocator's part.
struct GpuFaults {
    std::string cupti_problem;  // why there are no kernels; empty: they were recorded
    int64_t dropped_records = 0;
    int64_t unknown_records = 0;
    int64_t broken_buffers = 0;
    JoinCounts join;
    int64_t most_host_bytes = 0;  // that CUPTI's records took
    bool has_nvml = true;
};

/// Adds one diagnostic to the trace for each fault that occurred. `differing_totals` is how often
/// torch's totals were not those of the trace.
void add_gpu_notes(const GpuFaults& faults, const AllocatorRowCounts& allocator,
                   int64_t differing_totals, Trace& trace);

class GpuRecorder final : public RunObserver {
public:
    /// Creates the CUDA context of `device`, sets CUPTI up, and reads the device's memory before
    /// and after it. Throws c10::Error if CUDA gives no context.
    GpuRecorder(Trace& trace, c10::DeviceIndex device);

    Id<Device> device_row() const { return streams_.device(); }
    StreamRows& streams() { return streams_; }
    /// Device memory that this process has taken outside the allocator so far.
    int64_t outside_bytes() const { return outside_.parts().total_bytes(); }

    /// Records GPU work from here on, with times on `recorder`'s clock; again after stop(), too.
    void start(Recorder& recorder);
    /// Waits for the device, and drops the records of its work so far.
    void drop_work();
    /// Waits for the device, then adds the rows of its work since the last call and one value of
    /// each counter. Call it between parts of the run, such as after each step.
    void add_reading();
    /// Ends the recording of work and adds the records that CUPTI still holds.
    void stop();
    /// What was missed or assumed so far; complete after stop().
    GpuFaults faults() const;

    /// {"cupti": "130001", ...} for the run's software.
    std::string cupti_text() const;
    /// The modules that were loaded, for the run's software: {"time_ns", "image_bytes", "op"}.
    nlohmann::json modules() const;
    /// What CUPTI refused and a recording can do without.
    std::vector<std::string> cupti_refusals() const;

    // RunObserver, on the threads that run ops
    void on_op_begin(Id<Op> op) noexcept override;
    void on_op_end() noexcept override;
    void on_module_begin(std::string_view path) noexcept override;
    void on_module_end() noexcept override;

private:
    void open_cupti_session();
    void add_records(ActivityRecords records);
    void read_device(ReadingCause cause);
    void add_clock();
    int64_t handle_of_stream(uint32_t number);
    void number_streams();

    Trace& trace_;
    const c10::DeviceIndex device_;
    DeviceMonitor monitor_;
    StreamRows streams_;
    NonTorchMemory outside_;
    DriverAllocations driver_allocations_;
    std::unique_ptr<CuptiSession> cupti_;  // null: see faults_.cupti_problem
    GpuFaults faults_;
    std::optional<ActivityJoin> join_;
    std::unordered_map<uint32_t, int64_t> stream_handles_;  // by CUPTI's number
    std::size_t numbered_streams_ = 0;                      // of the trace's rows
    const Recorder* recorder_ = nullptr;                    // gives the clock; null before start()
    int64_t local_memory_bytes_ = 0;                        // the most that a kernel had
};

}  // namespace profiler
