#include "profiler/capture/python/program_recording.h"

#include "profiler/capture/cuda_source.h"
#include "profiler/capture/torch_adapter/torch_hooks.h"
#include "profiler/capture/tracking_allocator.h"

#include <ATen/Parallel.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <map>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

/// The blocks of the tracking allocator, and storages that it did not make: of NumPy, of a mapped
/// file, from before it was installed. Those become known when a recording names them (`adopt`),
/// with the bytes of the storage.
class ForeignStorages final : public AllocationSource {
public:
    void start(AllocationListener& listener) override {
        listener_ = &listener;
        allocator_.start(listener);
    }
    void stop() override {
        allocator_.stop();
        adopted_.clear();
        listener_ = nullptr;
    }
    Id<Allocation> allocation_of(const c10::StorageImpl& storage) const override {
        if (const auto own = allocator_.allocation_of(storage); own.valid()) return own;
        const auto found = adopted_.find(&storage);
        if (found == adopted_.end()) return {};
        return Id<Allocation>(static_cast<std::size_t>(found->second.block->allocation));
    }

    /// Records the storage of `tensor`, if nobody has. Not under the recorder's lock.
    void adopt(const at::Tensor& tensor) {
        if (listener_ == nullptr || !tensor.defined() || !tensor.has_storage()) return;
        const at::Storage& handle = tensor.storage();
        c10::StorageImpl* const storage = handle.unsafeGetStorageImpl();
        // The storage of a wrapper class without memory has a size and no data.
        if (storage->nbytes() == 0 || storage->data() == nullptr) return;
        if (storage->device_type() != c10::kCPU) return;
        if (allocator_.block_of(*storage) != nullptr || adopted_.contains(storage)) return;
        auto block = std::make_unique<BlockHeader>(
            BlockHeader{.size_bytes = static_cast<int64_t>(storage->nbytes())});
        listener_->on_alloc(*block,
                            static_cast<int64_t>(reinterpret_cast<uintptr_t>(storage->data())));
        const auto lock = listener_->lock_rows();
        adopted_.emplace(storage, Adopted{handle.getWeakStorageImpl(), std::move(block)});
        ++num_adopted_;
    }
    /// Records the frees of adopted storages that are gone. Torch does not tell when that happens.
    void release_freed() {
        for (auto entry = adopted_.begin(); entry != adopted_.end();) {
            if (!entry->second.storage.expired()) {
                ++entry;
                continue;
            }
            listener_->on_free(*entry->second.block);
            const auto lock = listener_->lock_rows();
            entry = adopted_.erase(entry);
        }
    }

    std::size_t num_adopted() const { return num_adopted_; }

private:
    struct Adopted {
        c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps its address from being reused
        std::unique_ptr<BlockHeader> block;
    };

    TrackingAllocator& allocator_ = TrackingAllocator::instance();
    AllocationListener* listener_ = nullptr;
    std::unordered_map<const c10::StorageImpl*, Adopted> adopted_;
    std::size_t num_adopted_ = 0;
};

class ProgramOnCpu final : public ProgramDevice {
public:
    RunEnvironment environment() const override {
        return {.source = Source::kMeasuredCpu,
                .time_basis = TimeBasis::kMeasured,
                .device_name = processor_name(),
                .num_threads = at::get_num_threads()};
    }
    RecorderOptions recorder_options() override { return {.allocations = &storages_}; }
    void adopt(const at::Tensor& tensor) override { storages_.adopt(tensor); }
    void read_step() override { storages_.release_freed(); }
    void stop(Recorder& recorder) override {
        if (storages_.num_adopted() == 0) return;
        recorder.add_note(
            "adopted_storages", Severity::kInfo,
            fmt::format("{} named storages were not made by torch's allocator while Temposcope "
                        "watched it: they are of NumPy, of a mapped file, or older than the import "
                        "of temposcope. They are recorded from when they were named.",
                        storages_.num_adopted()));
    }

private:
    ForeignStorages storages_;
};

std::unique_ptr<ProgramDevice> device_named(std::string_view name,
                                            const std::filesystem::path& libraries, Trace& trace) {
    const c10::Device device{std::string(name)};
    if (device.is_cpu()) return std::make_unique<ProgramOnCpu>();
    const CudaModule& module = open_cuda_module(libraries);
    if (module.source == nullptr) throw std::runtime_error(describe_problem(module.checks));
    return module.source->record_program(device.has_index() ? device.index() : 0, trace);
}

void require(const models::Result<void>& result) {
    if (!result) throw std::runtime_error(result.error().message);
}

bool says_nothing(std::optional<Category> category) {
    return category == Category::kTemporary || category == Category::kUnknown;
}

}  // namespace

void ProgramRecording::watch_allocator() {
    TrackingAllocator::instance();
    install_hook_engine();
}

ProgramRecording::ProgramRecording(const std::filesystem::path& file, std::string_view device,
                                   const std::filesystem::path& libraries,
                                   const ProgramDescription& program,
                                   const std::optional<StackOptions>& stacks)
    : file_(file) {
    auto writer = TraceWriter::create(file);
    if (!writer) throw std::runtime_error(writer.error().message);
    writer_.emplace(std::move(*writer));
    device_ = device_named(device, libraries, trace_);
    describe_program(program);
    RecorderOptions options = device_->recorder_options();
    if (stacks) {
        options.call_stacks = &call_stacks_.emplace(stacks->package, stacks->with_native);
    }
    recorder_.emplace(trace_, options);
    recorder_->add_layers({});  // none until a model tells them
    device_->start(*recorder_);
    recorder_->start();
}

ProgramRecording::~ProgramRecording() {
    if (recorder_) recorder_->stop();
}

void ProgramRecording::describe_program(const ProgramDescription& program) {
    const auto lock = recorder_ ? recorder_->lock_rows() : std::unique_lock<std::mutex>();
    profiler::describe_program(program, device_->environment(), trace_);
}

void ProgramRecording::describe(const at::Tensor& tensor, std::string_view name,
                                Category category) {
    device_->adopt(tensor);
    if (category == Category::kInput && !says_nothing(recorder_->category_of(tensor))) return;
    recorder_->describe(tensor, name, category);
}

std::vector<ProgramRecording::SavingCall> ProgramRecording::saving_calls() {
    const auto lock = recorder_->lock_rows();
    const auto name_of_op = [&](Id<Op> op) {
        return std::string(trace_.text(trace_.ops.get<&Op::name>(op)));
    };
    std::map<Id<Op>, std::set<std::string>> savers;  // by the outermost op
    for (const Id<Op> saver : trace_.saves.column<&Save::op>()) {
        if (!saver.valid()) continue;
        Id<Op> outermost = saver;
        for (Id<Op> op = saver; op.valid(); op = trace_.ops.get<&Op::parent>(op)) outermost = op;
        savers[outermost].insert(name_of_op(saver));
    }
    std::vector<SavingCall> calls;
    for (auto& [op, names] : savers) {
        const Id<ModulePath> module = trace_.ops.get<&Op::module_path>(op);
        const StringId path =
            module.valid() ? trace_.module_paths.get<&ModulePath::path>(module) : StringId();
        calls.push_back({.op = name_of_op(op),
                         .module_path = std::string(trace_.text(path)),
                         .savers = std::move(names)});
    }
    return calls;
}

void ProgramRecording::add_note(std::string_view code, Severity severity,
                                std::string_view explanation) {
    recorder_->add_note(code, severity, explanation);
}

void ProgramRecording::begin_steps() {
    device_->describe_workspaces(*recorder_);
    relabel_survivors();
    next_step_ = recorder_->next_step_start();
}

void ProgramRecording::end_step(double loss) {
    recorder_->end_step(loss);
    device_->describe_workspaces(*recorder_);
    relabel_survivors();
    // Other threads of the program go on. The device's rows and theirs share the table of texts.
    install_torch_hooks(nullptr);
    device_->read_step();
    write_call_stacks();
    commit();
    install_torch_hooks(&*recorder_);
    next_step_ = recorder_->next_step_start();
}

void ProgramRecording::relabel_survivors() {
    const auto lock = recorder_->lock_rows();
    for (; num_checked_storages_ < trace_.storages.size(); ++num_checked_storages_) {
        const Id<Storage> id(num_checked_storages_);
        const Storage storage = trace_.storages[id];
        if (storage.category != Category::kTemporary || !storage.allocation.valid()) continue;
        if (trace_.allocations.get<&Allocation::free_requested_event>(storage.allocation) >= 0) {
            continue;
        }
        trace_.storages.set<&Storage::category>(id, Category::kUnknown);
    }
}

void ProgramRecording::write_call_stacks() {
    if (call_stacks_) call_stacks_->write(trace_, [this] { return recorder_->lock_rows(); });
}

void ProgramRecording::commit() {
    const auto lock = recorder_->lock_rows();
    require(writer_->commit(trace_));
}

void ProgramRecording::before_fork() {
    install_torch_hooks(nullptr);
    models::set_observer(nullptr);
    held_allocator_ = TrackingAllocator::instance().hold();
    held_rows_ = recorder_->lock_rows();
}

void ProgramRecording::after_fork_in_parent() {
    held_rows_.unlock();
    held_allocator_.unlock();
    recorder_->start_ops();
}

void ProgramRecording::after_fork_in_child() {
    TrackingAllocator::instance().drop_listener();
    held_rows_.unlock();
    held_allocator_.unlock();
}

void ProgramRecording::finish(RunState state) {
    recorder_->stop();
    device_->stop(*recorder_);
    write_call_stacks();
    require(writer_->finish(trace_, state));
    recorder_.reset();
    device_.reset();
}

void ProgramRecording::discard() {
    recorder_->stop();
    writer_.reset();
    remove_partial(file_.string() + ".partial");
}

}  // namespace profiler
