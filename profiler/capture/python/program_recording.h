#pragma once

#include "models/training/training.h"
#include "profiler/capture/call_stacks.h"
#include "profiler/capture/program_device.h"
#include "profiler/capture/recorder.h"
#include "profiler/capture/run_description.h"
#include "profiler/trace/file/trace_file.h"

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// Records steps of a program that is not ours into a file. The program says where its steps and
/// phases begin and end, which modules run, and what its tensors are.
namespace profiler {

/// Which call stacks of allocations are recorded.
struct StackOptions {
    /// The folder of the recorder's own Python code, whose frames are left out.
    std::string package;
    bool with_native = false;  // those of C++ below those of Python
};

class ProgramRecording {
public:
    /// Watches the allocator of the CPU from now on, so that a later recording knows its blocks.
    static void watch_allocator();

    /// Begins to record into `file`. `device` is "cpu" or "cuda:1"; `libraries` has the module.
    /// Throws std::runtime_error or c10::Error with one sentence if the file cannot be written or
    /// the device cannot be recorded. Without `stacks` no call stacks are recorded.
    ProgramRecording(const std::filesystem::path& file, std::string_view device,
                     const std::filesystem::path& libraries, const ProgramDescription& program,
                     const std::optional<StackOptions>& stacks);
    ~ProgramRecording();

    void describe_program(const ProgramDescription& program);
    /// A call that no other op is around, and that keeps something for backward.
    struct SavingCall {
        std::string op;                // "aten::dropout"
        std::string module_path;       // that made it; empty: none
        std::set<std::string> savers;  // ops in it that keep something, or it itself: "aten::mul"
    };
    /// Those so far, in their order.
    std::vector<SavingCall> saving_calls();
    void add_layers(const std::vector<std::string>& paths) { recorder_->add_layers(paths); }
    /// What `tensor` is. An input keeps a category that it has from elsewhere: what one model makes
    /// may go into another one.
    void describe(const at::Tensor& tensor, std::string_view name, Category category);
    void add_note(std::string_view code, Severity severity, std::string_view explanation);

    /// A step is known to be one when its first module runs. It begins where the last one ended.
    void begin_step() { recorder_->begin_step(next_step_); }
    /// Commits the step's rows to the file. NaN: the loss is not known.
    void end_step(double loss);
    void begin_phase(models::TrainingPhase phase) { recorder_->on_phase_begin(phase); }
    void end_phase(models::TrainingPhase phase) { recorder_->on_phase_end(phase); }

    /// The allocations so far were there before the first step: what has no name is unknown.
    void begin_steps();
    /// Ends the recording and closes the file; without it the file stays a `.partial`.
    void finish(RunState state);
    /// Ends the recording, and leaves no file.
    void discard();

    // Around a fork of the process, on the thread that forks. The child has only that thread, so no
    // lock may be held then, and it records nothing: the file is its parent's.
    void before_fork();
    void after_fork_in_parent();
    void after_fork_in_child();

private:
    /// What lives on and has no name is not temporary.
    void relabel_survivors();
    void write_call_stacks();
    void commit();

    const std::filesystem::path file_;
    Trace trace_;
    std::optional<TraceWriter> writer_;
    std::unique_ptr<ProgramDevice> device_;
    std::optional<CallStacks> call_stacks_;
    std::optional<Recorder> recorder_;  // after the device: stops before it is gone
    Recorder::StepStart next_step_;
    std::size_t num_checked_storages_ = 0;
    std::unique_lock<std::mutex> held_allocator_, held_rows_;  // during a fork
};

}  // namespace profiler
