#pragma once

#include "profiler/capture/cuda/activity_join.h"
#include "profiler/capture/cuda/cuda_allocations.h"
#include "profiler/capture/cuda/cupti_session.h"
#include "profiler/capture/cuda/device_monitor.h"
#include "profiler/capture/cuda/non_torch_memory.h"
#include "profiler/capture/recorder.h"

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

/// What is recorded of a GPU beside the allocator: its work, through CUPTI, and its memory outside
/// the allocator, through CUPTI and the driver. Each part may be missing; the trace then says so.
namespace profiler {

class GpuRecorder final : public RunObserver {
public:
    /// Makes the CUDA context of kCudaDevice, CUPTI's settings and readings before and after it.
    /// Throws c10::Error when there is no context to be had.
    explicit GpuRecorder(Trace& trace);

    Id<Device> device_row() const { return streams_.device(); }
    StreamRows& streams() { return streams_; }
    /// Device memory of this process that is not the allocator's, so far.
    int64_t outside_bytes() const { return outside_.parts().total_bytes(); }

    /// Records GPU work from here on, on `recorder`'s clock.
    void start(Recorder& recorder);
    /// Between parts of the run, as after a step: waits for the device, adds the rows of its work
    /// since the last time, and one value of each counter.
    void add_reading();
    /// After the last step: no more work is recorded, and what CUPTI still holds is added.
    void stop();
    /// After stop(): what was imperfect, as notes.
    void add_notes(const CudaAllocations& allocations);

    /// {"cupti": "130001", ...} for the run's software.
    std::string cupti_text() const;

    // RunObserver, on the threads that run ops
    void on_op_begin(Id<Op> op) noexcept override;
    void on_op_end() noexcept override;
    void on_module_begin(std::string_view path) noexcept override;
    void on_module_end() noexcept override;

private:
    void open_cupti_session();
    void add_records(ActivityRecords records);
    void read_device(ReadingCause cause);
    int64_t handle_of_stream(uint32_t number);
    void number_streams();

    Trace& trace_;
    DeviceMonitor monitor_;
    StreamRows streams_;
    NonTorchMemory outside_;
    DriverAllocations driver_allocations_;
    std::unique_ptr<CuptiSession> cupti_;  // null: see cupti_problem_
    uint32_t cupti_version_ = 0;
    std::string cupti_problem_;
    std::optional<ActivityJoin> join_;
    std::unordered_map<uint32_t, int64_t> stream_handles_;  // by CUPTI's number
    std::size_t numbered_streams_ = 0;                      // of the trace's rows
    const Recorder* recorder_ = nullptr;  // whose clock times are on; null before start()
    int64_t dropped_records_ = 0, unknown_records_ = 0, broken_buffers_ = 0;
};

}  // namespace profiler
