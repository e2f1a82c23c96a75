#include "profiler/capture/python/program_recording.h"
#include "profiler/capture/torch_adapter/op_call.h"
#include "profiler/capture/torch_adapter/torch_hooks.h"

#include "models/observer/observer.h"

#include <c10/util/Exception.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

/// The recorder as plain C functions, for Python's ctypes: one library serves every Python. A
/// tensor is passed as `tensor._cdata`, which is the address of its TensorImpl. A function that may
/// fail returns 0, or 1 and leaves one sentence in temposcope_error().
/// app/python/temposcope/_recorder.py declares them for Python.
namespace {

using models::TrainingPhase;
using profiler::Category;
using profiler::ProgramRecording;

// Hooks of torch are the process's, and so there is one recording at a time.
// Never destroyed at exit: threads of the program may still run.
std::unique_ptr<ProgramRecording>& recording = *new std::unique_ptr<ProgramRecording>;
thread_local std::string last_error;
thread_local std::vector<std::unique_ptr<models::RootModuleScope>> open_modules;

int guarded(const std::function<void()>& body) try {
    body();
    return 0;
} catch (const c10::Error& error) {
    last_error = error.what_without_backtrace();
    return 1;
} catch (const std::exception& error) {
    last_error = error.what();
    return 1;
}

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
                                         .parallel = json.value("parallel", "")};
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

#define TEMPOSCOPE_EXPORT extern "C" __attribute__((visibility("default")))

TEMPOSCOPE_EXPORT const char* temposcope_error() { return last_error.c_str(); }

TEMPOSCOPE_EXPORT int temposcope_watch_allocator() {
    return guarded([] { ProgramRecording::watch_allocator(); });
}

/// `device`: "cpu" or "cuda:1". `program`: JSON with the fields of ProgramDescription, and with
/// "package" and "native_stacks" if call stacks are recorded.
TEMPOSCOPE_EXPORT int temposcope_start(const char* file, const char* device, const char* libraries,
                                       const char* program) {
    return guarded([&] {
        if (recording) throw std::logic_error("a recording runs already: end it first");
        open_modules.clear();  // of an earlier recording that Ctrl-C cut off
        recording = std::make_unique<ProgramRecording>(
            file, device, libraries, description_from(program), stacks_in(program));
    });
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

/// `paths`: JSON, the paths of modules that are layers, in their order.
TEMPOSCOPE_EXPORT int temposcope_add_layers(const char* paths) {
    return guarded(
        [&] { active().add_layers(nlohmann::json::parse(paths).get<std::vector<std::string>>()); });
}

/// JSON: [op, path of its module, [saving ops]] of each ProgramRecording::SavingCall. Null: it
/// failed, as temposcope_error() says.
TEMPOSCOPE_EXPORT const char* temposcope_saving_calls() {
    thread_local std::string text;
    const int status = guarded([] {
        auto calls = nlohmann::json::array();
        for (const auto& [op, path, savers] : active().saving_calls()) {
            calls.push_back({op, path, savers});
        }
        text = calls.dump();
    });
    return status == 0 ? text.c_str() : nullptr;
}

/// After what lives already has been described.
TEMPOSCOPE_EXPORT int temposcope_begin_steps() {
    return guarded([] { active().begin_steps(); });
}

TEMPOSCOPE_EXPORT int temposcope_begin_step() {
    return guarded([] { active().begin_step(); });
}

TEMPOSCOPE_EXPORT int temposcope_end_step(double loss) {
    return guarded([&] { active().end_step(loss); });
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
