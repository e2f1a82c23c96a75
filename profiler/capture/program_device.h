#pragma once

#include "profiler/capture/recorder.h"
#include "profiler/capture/run_description.h"

/// The device of a program that is not ours, as its recording sees it.
namespace profiler {

class ProgramDevice {
public:
    virtual ~ProgramDevice() = default;

    virtual RunEnvironment environment() const = 0;
    /// How the recorder listens to this device.
    virtual RecorderOptions recorder_options() = 0;
    /// Makes a storage known that the device's allocator did not make: one of NumPy, of a mapped
    /// file, or from before the allocator was watched.
    virtual void adopt(const at::Tensor& /*tensor*/) {}

    /// Once, after the run's row is there.
    virtual void start() {}
    /// Records the device's work from here on, before ops are recorded, and until stop_work().
    virtual void start_work(Recorder& /*recorder*/) {}
    /// Adds the rows of the work so far. Between two ops, while no op is recorded.
    virtual void stop_work() {}
    /// Names the memory that libraries hold.
    virtual void describe_workspaces(Recorder& /*recorder*/) {}
    /// Between two steps, while no op is recorded: adds the rows of the step that ended.
    virtual void read_step() {}
    /// A profiler of the program begins on this thread, or has ended. Torch has one place for both.
    virtual void set_profiled(bool /*is_profiled*/) {}
    /// After the recorder has stopped: adds what is still missing, and what was missed.
    virtual void stop(Recorder& /*recorder*/) {}
};

}  // namespace profiler
