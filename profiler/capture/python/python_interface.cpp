#include "models/observer/observer.h"
#include "models/training/training.h"
#include "profiler/capture/call_stacks.h"
#include "profiler/capture/cuda_source.h"
#include "profiler/capture/program_device.h"
#include "profiler/capture/python/c_functions.h"
#include "profiler/capture/python/compiled_code.h"
#include "profiler/capture/python/failure_rows.h"
#include "profiler/capture/python/final_categories.h"
#include "profiler/capture/python/keeper_rows.h"
#include "profiler/capture/python/program_on_cpu.h"
#include "profiler/capture/python/saving_calls.h"
#include "profiler/capture/recorder.h"
#include "profiler/capture/run_description.h"
#include "profiler/capture/torch_adapter/op_call.h"
#include "profiler/capture/torch_adapter/torch_hooks.h"
#include "profiler/capture/tracking_allocator.h"
#include "profiler/capture/values/value_reads.h"
#include "profiler/trace/file/trace_file.h"

#include <c10/util/Exception.h>
#include <c10/util/intrusive_ptr.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace profiler {
namespace {

/// Which call stacks of allocations are recorded.
struct StackOptions {
    /// The folder of the recorder's own Python code, whose frames are left out.
    std::string package;
    bool with_native = false;  // those of C++ below those of Python
};

std::unique_ptr<ProgramDevice> device_named(std::string_view name,
                                            const std::filesystem::path& libraries, Trace& trace) {
    const c10::Device device{std::string(name)};
    if (device.is_cpu()) return program_on_cpu();
    const CudaModule& module = open_cuda_module(libraries);
    if (module.source == nullptr) throw std::runtime_error(describe_problem(module.checks));
    return module.source->record_program(device.has_index() ? device.index() : 0, trace);
}

void require(const models::Result<void>& result) {
    if (!result) throw std::runtime_error(result.error().message);
}

bool says_nothing(std::optional<Category> category) {
    return category == Category::kTemporary || category == Category::kUnknown ||
           category == Category::kHeld;
}

/// Records a program that is not ours: its allocations from the start, and its ops while they are
/// not paused. The program says where its steps and phases begin and end, which modules run, what
/// its tensors are, and what became of a request that was refused. Rows stay in memory until there
/// is something worth a file.
class ProgramRecording {
public:
    /// Watches the allocator of the CPU from now on, so that a later recording knows its blocks.
    static void watch_allocator() {
        TrackingAllocator::instance();
        install_hook_engine();
    }
    /// Blocks of the CPU remember the call stack of their request until a recording begins, whose
    /// own choice counts from then on.
    static void gather_stacks(bool wanted) {
        TrackingAllocator::instance().gather_stacks(wanted ? [] { return true; } : WantsStack());
    }

    /// Begins to record allocations. `device` is "cpu" or "cuda:1"; `libraries` has the module.
    /// Throws std::runtime_error or c10::Error with one sentence if the device cannot be recorded.
    /// Without `stacks` no call stacks are recorded.
    ProgramRecording(std::string_view device, const std::filesystem::path& libraries,
                     const ProgramDescription& program, const std::optional<StackOptions>& stacks) {
        device_ = device_named(device, libraries, trace_);
        describe_program(program);
        RecorderOptions options = device_->recorder_options();
        if (stacks) {
            options.call_stacks =
                &call_stacks_.emplace(stacks->package, stacks->with_native, stack_rows_);
        }
        recorder_.emplace(trace_, options);
        recorder_->add_layers({});  // none until a model tells them
        device_->start();
        recorder_->start_allocations();
    }

    ~ProgramRecording() {
        if (recorder_) recorder_->stop();
    }

    /// Creates the `.partial` of `file` and commits the rows so far, also those of the step that
    /// runs. From here on each step commits its rows. Throws std::runtime_error with one sentence
    /// if the file cannot be written.
    void open(const std::filesystem::path& file) {
        if (writer_) throw std::logic_error("the recording has a file already");
        auto writer = TraceWriter::create(file);
        if (!writer) throw std::runtime_error(writer.error().message);
        writer_.emplace(std::move(*writer));
        file_ = file;
        commit();
    }

    /// Records ops and saved tensors from here on. Call both between two ops.
    void resume_ops() {
        if (records_ops_) return;
        device_->start_work(*recorder_);
        recorder_->start_ops();
        records_ops_ = true;
    }
    void pause_ops() {
        if (!records_ops_) return;
        records_ops_ = false;
        recorder_->stop_ops();
        device_->stop_work();
    }

    void describe_program(const ProgramDescription& program) {
        const auto lock = recorder_ ? recorder_->lock_rows() : std::unique_lock<std::mutex>();
        profiler::describe_program(program, device_->environment(), trace_);
    }

    std::vector<SavingCall> saving_calls() {
        const auto lock = recorder_->lock_rows();
        return profiler::saving_calls(trace_);
    }

    void add_modules(const nlohmann::json& layers, const nlohmann::json& types) {
        recorder_->add_layers(layers);
        recorder_->add_module_types(types);
    }

    /// What `tensor` is. An input keeps a category that it has from elsewhere: what one model makes
    /// may go into another one.
    void describe(const at::Tensor& tensor, std::string_view name, Category category) {
        device_->adopt(tensor);
        if (category == Category::kInput && !says_nothing(recorder_->category_of(tensor))) return;
        recorder_->describe(tensor, name, category);
    }

    void set_profiled(bool is_profiled) { device_->set_profiled(is_profiled); }

    Id<Save> save(const at::Tensor& tensor) { return recorder_->save(tensor); }
    /// `generation`: of the recording that the save is of.
    void release(Id<Save> save, uint64_t generation) {
        if (generation == recorder_->generation()) recorder_->release(save);
    }
    uint64_t generation() const { return recorder_->generation(); }

    void add_note(std::string_view code, Severity severity, std::string_view explanation) {
        recorder_->add_note(code, severity, explanation);
    }

    /// A step is known to be one when its first module runs. It begins where the last one ended.
    void begin_step() { recorder_->begin_step(next_step_); }

    /// The step may turn out to have ended here.
    void mark_end_of_step() { mark_ = recorder_->next_step_start(); }

    /// Commits the step's rows to the file, if there is one. NaN: the loss is not known. `at_mark`:
    /// the step ended there, and the next one begins there.
    void end_step(double loss, StepKind kind, bool at_mark) {
        recorder_->end_step(loss, kind, at_mark ? &mark_ : nullptr);
        device_->describe_workspaces(*recorder_);
        if (!at_mark) relabel_survivors();  // else some are of the step that runs
        // Other threads of the program go on. The device's rows share the table of texts with them.
        install_torch_hooks(nullptr);
        device_->read_step();
        write_call_stacks();
        if (writer_) commit();
        if (records_ops_) install_torch_hooks(&*recorder_);
        next_step_ = at_mark ? mark_ : recorder_->next_step_start();
    }

    int64_t make_steps_of_inferences() {
        device_->describe_workspaces(*recorder_);
        const auto lock = recorder_->lock_rows();
        return recorder_->make_steps_of_inferences();
    }

    void begin_phase(models::TrainingPhase phase) { recorder_->on_phase_begin(phase); }
    void end_phase(models::TrainingPhase phase) { recorder_->on_phase_end(phase); }

    /// The allocations so far were there before the first step: what has no name is unknown.
    void begin_steps() {
        device_->describe_workspaces(*recorder_);
        relabel_survivors();
        next_step_ = recorder_->next_step_start();
    }

    int64_t num_failures() {
        const auto lock = recorder_->lock_rows();
        return static_cast<int64_t>(trace_.failures.size());
    }

    /// JSON: [address, bytes, row, saving op] of each of profiler::unnamed_blocks.
    nlohmann::json unnamed_blocks(std::size_t count) {
        const auto lock = recorder_->lock_rows();
        const std::vector<Id<Allocation>> found = profiler::unnamed_blocks(trace_, count);
        const std::vector<Id<Op>> savers = savers_of(trace_, found);
        auto blocks = nlohmann::json::array();
        for (std::size_t i = 0; i < found.size(); ++i) {
            const Allocation block = trace_.allocations[found[i]];
            const std::string_view saver =
                savers[i].valid() ? trace_.text(trace_.ops.get<&Op::name>(savers[i])) : "";
            blocks.push_back({block.address, block.block_bytes, found[i].value, saver});
        }
        return blocks;
    }

    void add_keepers(const nlohmann::json& blocks) {
        const auto lock = recorder_->lock_rows();
        profiler::add_keepers(blocks, recorder_->num_events(), trace_);
    }

    /// The call stack of the newest failure, the outermost line first.
    void set_failure_lines(const nlohmann::json& lines) {
        const auto lock = recorder_->lock_rows();
        if (trace_.failures.empty()) throw std::logic_error("memory has not run out");
        Id<Stack> stack;
        for (const nlohmann::json& line : lines) {
            const auto text = [&](const char* key) -> const std::string& {
                return line.at(key).get_ref<const std::string&>();
            };
            stack = stack_rows_.add(stack, {.function = text("function"),
                                            .file = text("file"),
                                            .line = line.at("line").get<int64_t>(),
                                            .code = text("code")});
        }
        trace_.failures.set<&Failure::stack>(Id<Failure>(trace_.failures.size() - 1), stack);
    }

    void end_failure(const FailureEnd& end) {
        const auto lock = recorder_->lock_rows();
        profiler::end_failure(end, recorder_->failure_here(), trace_);
    }

    /// Records no more. What follows may still name what was recorded.
    void stop() {
        if (is_stopped_) return;
        is_stopped_ = true;
        records_ops_ = false;
        recorder_->stop();
        recorder_->end_so_far();
        device_->stop(*recorder_);
        write_value_reads(stack_rows_, trace_);
    }

    void set_imbalanced_peak(int64_t peak_bytes) {
        trace_.runs.set<&Run::imbalanced_peak_bytes>(Id<Run>(0), peak_bytes);
    }

    /// Ends the recording and closes the file; without it the file stays a `.partial`.
    void finish(RunState state) {
        if (!writer_) throw std::logic_error("the recording has no file");
        stop();
        write_call_stacks();
        name_compiled(trace_, stack_rows_,
                      [this](const std::string& path) { recorder_->add_module_path(path); });
        name_likes_of_kept(trace_);
        name_kept_for_backward(trace_);
        name_recomputed(trace_);
        name_weight_copies(trace_);
        correct_precision(trace_);
        require(writer_->finish(trace_, state));
        recorder_.reset();
        device_.reset();
    }

    /// Ends the recording, and leaves no file.
    void discard() {
        recorder_->stop();
        if (!writer_) return;
        writer_.reset();
        remove_partial(file_.string() + ".partial");
    }

    // Around a fork of the process, on the thread that forks. The child has only that thread, so no
    // lock may be held then, and it records nothing: the file is its parent's.
    void before_fork() {
        recorder_->stop_ops();
        held_allocator_ = TrackingAllocator::instance().hold();
        held_rows_ = recorder_->lock_rows();
    }

    void after_fork_in_parent() {
        held_rows_.unlock();
        held_allocator_.unlock();
        if (records_ops_) recorder_->start_ops();
    }

    void after_fork_in_child() {
        TrackingAllocator::instance().drop_listener();
        held_rows_.unlock();
        held_allocator_.unlock();
    }

private:
    void relabel_survivors() {
        const auto lock = recorder_->lock_rows();
        name_survivors(trace_, std::exchange(num_checked_storages_, trace_.storages.size()));
    }

    void write_call_stacks() {
        if (call_stacks_) call_stacks_->write(trace_, [this] { return recorder_->lock_rows(); });
    }

    /// In the middle of a step, that step is a broken one, up to here.
    void commit() {
        const auto lock = recorder_->lock_rows();
        recorder_->end_so_far();
        write_value_reads(stack_rows_, trace_);
        require(writer_->commit(trace_));
    }

    Trace trace_;
    StackRows stack_rows_{trace_};
    std::filesystem::path file_;
    std::optional<TraceWriter> writer_;  // none: no file is open
    std::unique_ptr<ProgramDevice> device_;
    std::optional<CallStacks> call_stacks_;
    std::optional<Recorder> recorder_;  // after the device: stops before it is gone
    Recorder::StepStart next_step_;
    Recorder::StepStart mark_;
    bool records_ops_ = false;
    bool is_stopped_ = false;
    std::size_t num_checked_storages_ = 0;
    std::unique_lock<std::mutex> held_allocator_, held_rows_;  // during a fork
};

}  // namespace
}  // namespace profiler

namespace {

using models::TrainingPhase;
using profiler::Category;
using profiler::guarded;
using profiler::guarded_text;
using profiler::ProgramRecording;

// Hooks of torch are the process's, and so there is one recording at a time.
// Never destroyed at exit: threads of the program may still run.
std::unique_ptr<ProgramRecording>& recording = *new std::unique_ptr<ProgramRecording>;
thread_local std::vector<std::unique_ptr<models::RootModuleScope>> open_modules;

ProgramRecording& active() {
    if (!recording) throw std::logic_error("nothing is recorded");
    return *recording;
}

at::Tensor tensor_at(void* address) {
    auto* const impl = static_cast<c10::TensorImpl*>(address);
    using Pointer = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
    return at::Tensor(Pointer::reclaim_copy(impl));
}

/// Python's: calls temposcope_add_inner_tensor(found, ...) for each tensor in a wrapper.
using FindInnerTensors = void (*)(PyObject* wrapper, void* found);
FindInnerTensors find_inner_tensors = nullptr;

std::vector<at::Tensor> inner_tensors_of(const at::Tensor& wrapper) {
    std::vector<at::Tensor> found;
    PyObject* const object = profiler::python_object_of(wrapper);
    if (object != nullptr) find_inner_tensors(object, &found);
    return found;
}

/// The array or object as text; empty if it is not there.
std::string text_of_entry(const nlohmann::json& json, const char* key) {
    return json.contains(key) ? json[key].dump() : "";
}

profiler::ProgramDescription description_from(const char* text) {
    const auto json = nlohmann::json::parse(text);
    profiler::ProgramDescription program{.program = json.value("program", ""),
                                         .model = json.value("model", ""),
                                         .recipe = json.value("recipe", ""),
                                         .precision = json.value("precision", ""),
                                         .batch_size = json.value("batch_size", int64_t{0}),
                                         .seq_len = json.value("seq_len", int64_t{0}),
                                         .micro_batches = json.value("micro_batches", int64_t{0}),
                                         .rank = json.value("rank", int64_t{0}),
                                         .world_size = json.value("world_size", int64_t{1}),
                                         .run_id = json.value("run_id", ""),
                                         .launch_id = json.value("launch_id", ""),
                                         .workload = {},
                                         .parallel = json.value("parallel", ""),
                                         .command = text_of_entry(json, "command"),
                                         .folder = json.value("folder", ""),
                                         .environment = text_of_entry(json, "environment")};
    if (const auto found = json.find("workload"); found != json.end()) {
        auto workload = models::workload_from_json(*found);
        if (!workload) throw std::invalid_argument(workload.error().message);
        program.workload = std::move(*workload);
    }
    return program;
}

std::optional<profiler::StackOptions> stacks_in(const char* text) {
    const auto json = nlohmann::json::parse(text);
    if (!json.contains("package")) return std::nullopt;
    return profiler::StackOptions{.package = json["package"].get<std::string>(),
                                  .with_native = json["native_stacks"].get<bool>()};
}

}  // namespace

TEMPOSCOPE_EXPORT const char* temposcope_error() { return profiler::last_error().c_str(); }

TEMPOSCOPE_EXPORT int temposcope_watch_allocator() {
    return guarded([] { ProgramRecording::watch_allocator(); });
}

TEMPOSCOPE_EXPORT void temposcope_gather_stacks(int wanted) {
    ProgramRecording::gather_stacks(wanted != 0);
}

/// Records allocations; ops are paused. `device`: "cpu" or "cuda:1". `program`: JSON with the
/// fields of ProgramDescription, and with "package" and "native_stacks" if call stacks are to be
/// recorded.
TEMPOSCOPE_EXPORT int temposcope_start(const char* device, const char* libraries,
                                       const char* program) {
    return guarded([&] {
        if (recording) throw std::logic_error("a recording runs already: end it first");
        open_modules.clear();  // of an earlier recording that Ctrl-C cut off
        recording = std::make_unique<ProgramRecording>(device, libraries, description_from(program),
                                                       stacks_in(program));
    });
}

TEMPOSCOPE_EXPORT int temposcope_open(const char* file) {
    return guarded([&] { active().open(file); });
}

TEMPOSCOPE_EXPORT int temposcope_resume_ops() {
    return guarded([] { active().resume_ops(); });
}

TEMPOSCOPE_EXPORT int temposcope_pause_ops() {
    return guarded([] { active().pause_ops(); });
}

TEMPOSCOPE_EXPORT int temposcope_stop() {
    return guarded([] { active().stop(); });
}

/// Of a step in which one expert gets more than its share, after those recorded.
TEMPOSCOPE_EXPORT int temposcope_set_imbalanced_peak(int64_t peak_bytes) {
    return guarded([&] { active().set_imbalanced_peak(peak_bytes); });
}

TEMPOSCOPE_EXPORT int temposcope_finish(int complete) {
    return guarded([&] {
        const std::unique_ptr<ProgramRecording> ended = std::move(recording);
        if (!ended) throw std::logic_error("nothing is recorded");
        ended->finish(complete != 0 ? profiler::RunState::kComplete
                                    : profiler::RunState::kIncomplete);
    });
}

TEMPOSCOPE_EXPORT int temposcope_discard() {
    return guarded([] {
        active().discard();
        recording.reset();
    });
}

TEMPOSCOPE_EXPORT int temposcope_describe_program(const char* program) {
    return guarded([&] { active().describe_program(description_from(program)); });
}

/// JSON: the paths of modules that are layers, in their order, and the class of each module by its
/// path.
TEMPOSCOPE_EXPORT int temposcope_add_modules(const char* layers, const char* types) {
    return guarded(
        [&] { active().add_modules(nlohmann::json::parse(layers), nlohmann::json::parse(types)); });
}

/// JSON: [op, path of its module, [saving ops]] of each SavingCall.
TEMPOSCOPE_EXPORT const char* temposcope_saving_calls() {
    return guarded_text([] {
        auto calls = nlohmann::json::array();
        for (const auto& [op, path, savers] : active().saving_calls()) {
            calls.push_back({op, path, savers});
        }
        return calls;
    });
}

/// After what lives already has been described.
TEMPOSCOPE_EXPORT int temposcope_begin_steps() {
    return guarded([] { active().begin_steps(); });
}

TEMPOSCOPE_EXPORT int temposcope_begin_step() {
    return guarded([] { active().begin_step(); });
}

TEMPOSCOPE_EXPORT int temposcope_set_profiled(int is_profiled) {
    return guarded([&] { active().set_profiled(is_profiled != 0); });
}

/// `number`: of the save, or -1 where the tensor's storage is not recorded. `generation`: of the
/// recording.
TEMPOSCOPE_EXPORT int temposcope_save(void* tensor, int64_t* number, uint64_t* generation) {
    return guarded([&] {
        const profiler::Id<profiler::Save> save = active().save(tensor_at(tensor));
        *number = save.valid() ? static_cast<int64_t>(save.index()) : -1;
        *generation = active().generation();
    });
}

/// Of an earlier recording: nothing happens.
TEMPOSCOPE_EXPORT int temposcope_release(int64_t number, uint64_t generation) {
    return guarded([&] {
        const profiler::Id<profiler::Save> save(static_cast<std::size_t>(number));
        active().release(save, generation);
    });
}

TEMPOSCOPE_EXPORT int temposcope_mark_end_of_step() {
    return guarded([] { active().mark_end_of_step(); });
}

TEMPOSCOPE_EXPORT int temposcope_end_step(double loss, int kind, int at_mark) {
    return guarded(
        [&] { active().end_step(loss, static_cast<profiler::StepKind>(kind), at_mark != 0); });
}

TEMPOSCOPE_EXPORT int temposcope_make_steps_of_inferences(int64_t* count) {
    return guarded([&] { *count = active().make_steps_of_inferences(); });
}

TEMPOSCOPE_EXPORT int temposcope_begin_phase(int phase) {
    return guarded([&] { active().begin_phase(static_cast<TrainingPhase>(phase)); });
}

TEMPOSCOPE_EXPORT int temposcope_end_phase(int phase) {
    return guarded([&] { active().end_phase(static_cast<TrainingPhase>(phase)); });
}

TEMPOSCOPE_EXPORT int temposcope_describe(void* tensor, const char* name, int category) {
    return guarded(
        [&] { active().describe(tensor_at(tensor), name, static_cast<Category>(category)); });
}

/// Called once, before anything is recorded.
TEMPOSCOPE_EXPORT void temposcope_set_inner_tensors(FindInnerTensors find) {
    find_inner_tensors = find;
    profiler::set_inner_tensors(&inner_tensors_of);
}

TEMPOSCOPE_EXPORT void temposcope_add_inner_tensor(void* found, void* tensor) {
    static_cast<std::vector<at::Tensor>*>(found)->push_back(tensor_at(tensor));
}

TEMPOSCOPE_EXPORT int temposcope_note(const char* code, int severity, const char* explanation) {
    return guarded(
        [&] { active().add_note(code, static_cast<profiler::Severity>(severity), explanation); });
}

/// Requests for memory that were refused so far, and errors that no request explains. -1: nothing
/// is recorded.
TEMPOSCOPE_EXPORT int temposcope_num_failures() {
    return recording ? static_cast<int>(recording->num_failures()) : -1;
}

/// JSON: [address, bytes, row of the allocation, op that saves it for backward] of the largest live
/// blocks that may be anything, the largest first. An empty op: none saves it.
TEMPOSCOPE_EXPORT const char* temposcope_unnamed_blocks(int count) {
    return guarded_text(
        [&] { return active().unnamed_blocks(static_cast<std::size_t>(std::max(0, count))); });
}

/// `blocks`: JSON as profiler::add_keepers takes it.
TEMPOSCOPE_EXPORT int temposcope_add_keepers(const char* blocks) {
    return guarded([&] { active().add_keepers(nlohmann::json::parse(blocks)); });
}

/// `lines`: JSON, [{"file", "line", "function", "code"}, ...] of the newest failure, the outermost
/// first.
TEMPOSCOPE_EXPORT int temposcope_set_failure_lines(const char* lines) {
    return guarded([&] { active().set_failure_lines(nlohmann::json::parse(lines)); });
}

TEMPOSCOPE_EXPORT int temposcope_end_failure(int outcome, const char* error, const char* message) {
    return guarded([&] {
        active().end_failure({.outcome = static_cast<profiler::FailureOutcome>(outcome),
                              .error = error,
                              .message = message});
    });
}

/// The module with this whole path begins on this thread; modules nest.
TEMPOSCOPE_EXPORT void temposcope_enter_module(const char* path) {
    open_modules.push_back(std::make_unique<models::RootModuleScope>(path));
}

TEMPOSCOPE_EXPORT void temposcope_leave_module() {
    if (!open_modules.empty()) open_modules.pop_back();
}

TEMPOSCOPE_EXPORT void temposcope_before_fork() {
    if (recording) recording->before_fork();
}

TEMPOSCOPE_EXPORT void temposcope_after_fork(int in_child) {
    if (!recording) return;
    if (in_child == 0) {
        recording->after_fork_in_parent();
        return;
    }
    recording->after_fork_in_child();
    (void)recording.release();  // its file is the parent's
}
