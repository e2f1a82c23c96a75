#pragma once

#include "profiler/capture/cuda/cupti_session.h"
#include "profiler/capture/recorder.h"
#include "profiler/trace/stream_rows.h"
#include "profiler/trace/trace.h"

#include <memory>
#include <string>

/// The kernels that ops launch, without their times: for a virtual GPU, which has none.
namespace profiler {

class LaunchRecorder final : public RunObserver {
public:
    LaunchRecorder();

    /// Records launches from here on.
    void start();

    /// Adds the launches so far to `trace`, in their order and with the ops of `trace` that made
    /// them; their times stay unknown (-1). All work is taken for the default stream's. Where CUPTI
    /// refused or lost something, a diagnostic says so.
    void add_to(Trace& trace, StreamRows& streams);

    // RunObserver, on the threads that run ops
    void on_op_begin(Id<Op> op) noexcept override;
    void on_op_end() noexcept override;
    void on_module_begin(std::string_view) noexcept override {}
    void on_module_end() noexcept override {}

private:
    std::unique_ptr<CuptiSession> cupti_;  // null: see problem_
    std::string problem_;
};

}  // namespace profiler
