#include "profiler/capture/recorder.h"

#include "profiler/capture/call_stacks.h"
#include "profiler/capture/torch_adapter/op_call.h"
#include "profiler/capture/tracking_allocator.h"
#include "profiler/trace/recomputation.h"
#include "profiler/trace/text.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>

namespace profiler {
namespace {

struct OpFrame {
    Id<Op> id;
    StringId name;
    bool may_run_python = false;
    bool runs_python = false;   // for sure, on this thread
    bool is_node = false;       // of backward
    bool wraps_itself = false;  // autocast's kernel of an op calls the op again, with cast inputs
};

/// The ops that run now on this thread, innermost last.
thread_local std::vector<OpFrame> op_stack;

/// Of the next recorder.
std::atomic<uint64_t> next_generation{1};

/// Each thread has its own sequence numbers, and a checkpoint runs forward ops on the thread of the
/// backward pass.
int64_t forward_key(uint64_t thread, int64_t sequence_number) {
    constexpr int kNumberBits = 44;  // 10^13 ops of a thread
    return static_cast<int64_t>(thread << kNumberBits) | sequence_number;
}

bool is_node(const at::RecordFunction& function) {
    return function.scope() == at::RecordScope::BACKWARD_FUNCTION;
}

/// Python may run in a torch.autograd.Function "Square", whose node is "SquareBackward", and in the
/// node of a parameter, which calls the hooks of its gradient: an optimizer may run there. Ops of
/// libraries are "aten::mul", their nodes "MulBackward0".
bool may_run_python(const at::RecordFunction& function) {
    const std::string_view name = function.name();
    if (is_node(function)) return name.ends_with("Backward") || name.ends_with("::AccumulateGrad");
    return name.find("::") == name.npos;
}

bool runs_python(const at::RecordFunction& function) {
    return may_run_python(function) &&
           !std::string_view(function.name()).ends_with("::AccumulateGrad");
}

/// An op in another op has the outer op's Python stack. A checkpoint runs forward again inside of
/// any node: ops that autograd records there have stacks of their own.
bool may_have_own_stack(const at::RecordFunction& function) {
    if (op_stack.empty() || op_stack.back().may_run_python) return true;
    return op_stack.back().is_node && function.seqNr() >= 0;
}

/// Empty unless they are recorded.
NativeStack gather_native(const CallStacks* stacks) {
    return stacks ? stacks->gather_native() : NativeStack();
}

/// An allocation in an op has the op's stack. Compiled code is Python that allocates without ops.
bool has_own_stack() { return op_stack.empty() || op_stack.back().runs_python; }

Id<Op> current_op() { return op_stack.empty() ? Id<Op>() : op_stack.back().id; }

/// Takes `op` off this thread's stack, with ops in it whose end an exception skipped. None: it is
/// not there.
std::optional<OpFrame> leave_op(Id<Op> op) {
    const auto found = std::find_if(op_stack.rbegin(), op_stack.rend(),
                                    [&](const OpFrame& frame) { return frame.id == op; });
    if (found == op_stack.rend()) return std::nullopt;
    const OpFrame frame = *found;
    op_stack.erase(std::prev(found.base()), op_stack.end());
    return frame;
}

/// Whether DDP reduces gradients in the storage: the storage is older than the running backward,
/// and nothing else has named its category.
bool is_bucket(const Trace& trace, Id<Phase> running, Id<Storage> storage) {
    if (!running.valid() || !storage.valid()) return false;
    const Id<Allocation> block = trace.storages.get<&Storage::allocation>(storage);
    if (!block.valid()) return false;
    const Phase phase = trace.phases[running];
    const Category category = trace.storages.get<&Storage::category>(storage);
    const bool is_older =
        trace.allocations.get<&Allocation::alloc_event>(block) < phase.first_event;
    const bool is_unnamed = category == Category::kTemporary || category == Category::kUnknown;
    return phase.kind == PhaseKind::kBackward && is_older && is_unnamed;
}

}  // namespace

Recorder::Recorder(Trace& trace, const RecorderOptions& options)
    : trace_(trace),
      allocations_(options.allocations ? *options.allocations : TrackingAllocator::instance()),
      time_basis_(options.time_basis),
      ops_(options.ops),
      observer_(options.observer),
      flash_refusal_(options.flash_refusal),
      call_stacks_(options.call_stacks),
      generation_(next_generation++),
      start_(std::chrono::steady_clock::now()),
      device_(options.device) {
    if (device_.valid()) return;
    device_ = trace_.devices.append({.name = trace_.strings.intern(options.device_name)});
}

Recorder::~Recorder() { stop(); }

int64_t Recorder::now_ns() const {
    if (time_basis_ == TimeBasis::kEventOrder) return next_event_;
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count();
}

void Recorder::start_allocations() {
    recording_ = true;
    allocations_.start(*this);
}

void Recorder::start_ops() {
    models::set_observer(this);
    install_torch_hooks(this);
}

void Recorder::stop_ops() {
    install_torch_hooks(nullptr);
    models::set_observer(nullptr);
}

void Recorder::stop() {
    if (!recording_) return;
    stop_ops();
    allocations_.stop();
    recording_ = false;
}

// ---- allocations -----------------------------------------------------------------------------

WantsStack Recorder::wants_stack() const { return call_stacks_ ? &has_own_stack : nullptr; }

void Recorder::add_stack(GatheredStack stack, const AllocatorMoment& moment) {
    if (call_stacks_) call_stacks_->add(moment.event, std::move(stack), trace_);
}

LockedMoment Recorder::next_action() {
    // Of frees, too: only the allocator knows which action follows.
    NativeStack native = gather_native(call_stacks_);
    std::unique_lock lock(mutex_);
    const AllocatorMoment moment{.event = next_event_++, .time_ns = now_ns(), .op = current_op()};
    if (!native.empty()) call_stacks_->add(moment.event, std::move(native));
    return {std::move(lock), moment};
}

void Recorder::on_alloc(BlockHeader& block, int64_t address) {
    NativeStack native = gather_native(call_stacks_);
    const std::lock_guard lock(mutex_);
    const Id<Storage> storage(trace_.storages.size());
    const int64_t now = now_ns();
    const int64_t event = next_event_++;
    if (!native.empty()) call_stacks_->add(event, std::move(native));
    const Id<Allocation> allocation =
        trace_.allocations.append({.device = device_,
                                   .address = address,
                                   .requested_bytes = block.size_bytes,
                                   .block_bytes = block.size_bytes,
                                   .alloc_event = event,
                                   .alloc_ns = now,
                                   .op = current_op(),
                                   .storage = storage});
    trace_.storages.append({.allocation = allocation,
                            .size_bytes = block.size_bytes,
                            .category = Category::kTemporary});
    block.allocation = allocation.value;
    if (block.stack && call_stacks_) call_stacks_->add(event, block.stack, trace_);
}

void Recorder::on_free(const BlockHeader& block) {
    if (block.allocation < 0) return;
    const std::lock_guard lock(mutex_);
    const Id<Allocation> allocation(static_cast<std::size_t>(block.allocation));
    const int64_t now = now_ns();
    auto& table = trace_.allocations;
    table.set<&Allocation::free_requested_event>(allocation, next_event_);
    table.set<&Allocation::free_completed_event>(allocation, next_event_);
    table.set<&Allocation::free_requested_ns>(allocation, now);
    table.set<&Allocation::free_completed_ns>(allocation, now);
    table.set<&Allocation::freeing_op>(allocation, current_op());
    ++next_event_;
}

void Recorder::on_out_of_memory(const Refusal& refusal) {
    const LockedMoment locked = next_action();
    trace_.allocator_events.append({.action = AllocatorAction::kOom,
                                    .event = locked.moment.event,
                                    .time_ns = locked.moment.time_ns,
                                    .device = device_,
                                    .size_bytes = refusal.requested_bytes,
                                    .free_bytes = refusal.free_bytes});
    add_failure(refusal, locked.moment);
}

void Recorder::add_failure(const Refusal& refusal, const AllocatorMoment& moment) {
    Failure failure = failure_here();
    failure.event = moment.event;
    failure.requested_bytes = refusal.requested_bytes;
    failure.allocated_bytes = refusal.allocated_bytes;
    failure.reserved_bytes = refusal.reserved_bytes;
    failure.free_bytes = refusal.free_bytes;
    failure.limit_bytes = refusal.limit_bytes;
    trace_.failures.append(failure);
}

Failure Recorder::failure_here() {
    return {.device = device_,
            .thread = current_thread(),
            .event = next_event_,
            .time_ns = now_ns(),
            .step = step_,
            .phase = phase_,
            .op = current_op(),
            .module_path = running_module_path(current_op()),
            .outcome = FailureOutcome::kAbsorbed};
}

// ---- ops -------------------------------------------------------------------------------------

Recorder::RecordedOp::~RecordedOp() { leave_op(id); }

std::unique_ptr<RunningOp> Recorder::begin_op(const at::RecordFunction& function) {
    auto running = std::make_unique<RecordedOp>();
    running->generation = generation_;
    // Before any lock is taken.
    const bool gathers = call_stacks_ && may_have_own_stack(function);
    CallStacks::Gathered stack = gathers ? CallStacks::gather() : nullptr;
    const std::optional<CollectiveCall> collective = collective_call_of(function);
    if (collective && collective->kind == CollectiveKind::kAllReduce) name_bucket(function);
    record_begin(function, collective ? &*collective : nullptr, *running);
    if (stack) call_stacks_->add(running->id, std::move(stack));
    ask_flash(function, running->id);
    if (!observer_) return running;
    if (running->node_module_path.valid())
        observer_->on_module_begin(scope_path(running->node_module_path));
    observer_->on_op_begin(running->id);
    return running;
}

void Recorder::ask_flash(const at::RecordFunction& function, Id<Op> op) {
    const bool is_asked =
        flash_refusal_ && std::strcmp(function.name(), "aten::scaled_dot_product_attention") == 0;
    const std::string reasons = is_asked ? flash_refusal_(function.inputs()) : std::string();
    if (reasons.empty()) return;
    const std::lock_guard lock(mutex_);
    trace_.slow_attentions.append({.op = op, .reasons = trace_.strings.intern(reasons)});
}

void Recorder::end_op(const at::RecordFunction& function, RunningOp& op) {
    const auto& running = static_cast<const RecordedOp&>(op);
    if (observer_) {
        observer_->on_op_end();
        if (running.node_module_path.valid()) observer_->on_module_end();
    }
    record_end(function, running);
}

std::string Recorder::scope_path(Id<ModulePath> module_path) {
    const std::lock_guard lock(mutex_);
    return std::string(trace_.text(trace_.module_paths.get<&ModulePath::path>(module_path)));
}

void Recorder::record_begin(const at::RecordFunction& function, const CollectiveCall* collective,
                            RecordedOp& running) {
    const std::lock_guard lock(mutex_);
    const Id<Op> id(trace_.ops.size());
    const OpKind& kind = kind_of(function);
    Op op{.name = kind.name, .phase = phase_, .thread = current_thread(), .parent = current_op()};
    op.module_path = running_module_path({});
    link_to_forward(op, function, id);
    if (!op_stack.empty() && op_stack.back().name == op.name) op_stack.back().wraps_itself = true;
    op.op_class = kind.op_class.value_or(OpClass::kOther);
    op.start_ns = now_ns();
    trace_.ops.append(op);
    running.id = id;
    if (is_node(function)) running.node_module_path = op.module_path;
    if (collective) running.collective = add_collective(*collective, id);
    if (kind.op_class) {
        const std::span arguments(function.inputs().data(), function.inputs().size());
        const std::vector<at::Tensor> tensors = tensors_of(arguments);
        if (tensors.size() == 2 && trace_.text(kind.name) == "aten::copy_") {
            name_copy(tensors[0], tensors[1]);
        }
        add_edges(id, tensors, Access::kRead);
        if (std::all_of(tensors.begin(), tensors.end(), has_shape))
            running.inputs = summarize_inputs(function.name(), *kind.op_class, arguments, tensors);
    }
    // Last: an exception would leave it there, as torch ends no op whose begin failed.
    op_stack.push_back({.id = id,
                        .name = op.name,
                        .may_run_python = may_run_python(function),
                        .runs_python = runs_python(function),
                        .is_node = is_node(function)});
}

const Recorder::OpKind& Recorder::kind_of(const at::RecordFunction& function) {
    const std::string_view name = function.name();
    // Most ops have one text for their name, and only its address need be looked up.
    const auto address = reinterpret_cast<uintptr_t>(name.data());
    const OpKind*& recent = recent_kinds_[address / alignof(std::max_align_t) % kNumRecentKinds];
    if (recent != nullptr && trace_.text(recent->name) == name) return *recent;
    auto known = op_kinds_.find(name);
    if (known == op_kinds_.end()) {
        const OpKind kind{.name = trace_.strings.intern(name), .op_class = op_class_of(name, ops_)};
        known = op_kinds_.emplace(name, kind).first;
    }
    recent = &known->second;
    return *recent;
}

StringId Recorder::output_name_of(Id<Op> op) {
    const std::string_view name = trace_.text(trace_.ops.get<&Op::name>(op));
    StringId& text = op_kinds_.find(name)->second.output_name;
    if (!text.valid()) {
        // "aten::_log_softmax" and "aten::mul_" -> "log_softmax_output" and "mul_output"
        std::string_view plain = name.substr(name.rfind(':') + 1);
        while (plain.starts_with('_')) plain.remove_prefix(1);
        while (plain.ends_with('_')) plain.remove_suffix(1);
        text = trace_.strings.intern(std::string(plain) + "_output");
    }
    return text;
}

/// A node of the backward pass has the sequence number of its forward op. Inside a composite
/// (aten::linear) several ops see the same number. The innermost one, which is written last, made
/// the node.
void Recorder::link_to_forward(Op& op, const at::RecordFunction& function, Id<Op> id) {
    if (is_node(function)) {
        const auto found =
            forward_ops_.find(forward_key(function.forwardThreadId(), function.seqNr()));
        if (found == forward_ops_.end()) return;
        op.forward = found->second;
        // The engine's op around the node began before the node was known.
        if (op.parent.valid()) {
            trace_.ops.set<&Op::forward>(op.parent, op.forward);
            trace_.ops.set<&Op::module_path>(op.parent,
                                             trace_.ops.get<&Op::module_path>(op.forward));
        }
    } else {
        if (op.parent.valid()) op.forward = trace_.ops.get<&Op::forward>(op.parent);
        // Also inside backward: a checkpoint runs forward ops there, which have nodes, too.
        if (function.seqNr() >= 0) {
            forward_ops_[forward_key(function.threadId(), function.seqNr())] = id;
        }
    }
    if (op.forward.valid() && !op.module_path.valid()) {
        op.module_path = trace_.ops.get<&Op::module_path>(op.forward);
    }
}

void Recorder::record_end(const at::RecordFunction& function, const RecordedOp& running) {
    const std::lock_guard lock(mutex_);
    const Id<Op> id = running.id;
    trace_.ops.set<&Op::end_ns>(id, now_ns());
    const std::optional<OpFrame> frame = leave_op(id);
    if (!running.inputs || (frame && frame->wraps_itself)) return;
    const std::vector<at::Tensor> outputs = tensors_of(function.outputs());
    const OpCounts counts =
        counts_of(function.name(), trace_.ops.get<&Op::op_class>(id), *running.inputs, outputs);
    trace_.ops.set<&Op::flop>(id, counts.flop);
    trace_.ops.set<&Op::read_words>(id, counts.read_words);
    trace_.ops.set<&Op::written_words>(id, counts.written_words);
    add_edges(id, outputs, Access::kWrite);
}

// ---- collectives -----------------------------------------------------------------------------

Id<Collective> Recorder::add_collective(const CollectiveCall& call, Id<Op> op) {
    return trace_.collectives.append({.op = op,
                                      .communicator = communicator_of(call),
                                      .kind = call.kind,
                                      .dtype = call.dtype,
                                      .in_bytes = call.in_bytes,
                                      .out_bytes = call.out_bytes,
                                      .peer = call.peer,
                                      .start_ns = trace_.ops.get<&Op::start_ns>(op)});
}

/// Torch names no two groups of a process alike.
Id<Communicator> Recorder::communicator_of(const CollectiveCall& call) {
    const StringId name = trace_.strings.intern(call.group_name);
    const auto names = trace_.communicators.column<&Communicator::name>();
    const auto known = std::find(names.begin(), names.end(), name);
    if (known != names.end()) {
        return Id<Communicator>(static_cast<std::size_t>(known - names.begin()));
    }
    Communicator row{.name = name,
                     .description = trace_.strings.intern(call.group_description),
                     .num_ranks = call.num_ranks};
    if (!call.ranks.empty()) row.ranks = list_texts_.of(call.ranks, trace_.strings);
    return trace_.communicators.append(row);
}

void Recorder::name_bucket(const at::RecordFunction& all_reduce) {
    const std::vector<at::Tensor> tensors =
        tensors_of({all_reduce.inputs().data(), all_reduce.inputs().size()});
    const std::lock_guard lock(mutex_);
    if (tensors.size() != 1) return;
    const Id<Storage> storage = storage_of(tensors.front());
    if (!is_bucket(trace_, phase_, storage)) return;
    name_storage(storage, trace_.strings.intern(fmt::format("DDP bucket {}", num_buckets_++)));
    trace_.storages.set<&Storage::category>(storage, Category::kGradient);
    tensor_of(tensors.front());
}

void Recorder::end_collective_call(Id<Collective> collective, bool goes_on) {
    if (!goes_on) return end_collective(collective);
    const std::lock_guard lock(mutex_);
    running_collectives_.push_back(collective);
}

void Recorder::end_collective(Id<Collective> collective) {
    const std::lock_guard lock(mutex_);
    trace_.collectives.set<&Collective::end_ns>(collective, now_ns());
}

void Recorder::add_edges(Id<Op> op, std::span<const at::Tensor> tensors, Access access) {
    for (const at::Tensor& tensor : tensors) {
        const Id<Tensor> row = tensor_of(tensor);
        if (!row.valid()) continue;
        if (access == Access::kWrite && !trace_.tensors.get<&Tensor::producer>(row).valid()) {
            trace_.tensors.set<&Tensor::producer>(row, op);
        }
        trace_.op_tensors.append(
            {.op = op, .tensor = row, .access = access, .words = stored_words(tensor)});
    }
}

void Recorder::add_layers(const std::vector<std::string>& paths) {
    const auto lock = lock_rows();
    if (!layers_) layers_.emplace();
    for (const std::string& path : paths) {
        layers_->try_emplace(path, static_cast<int64_t>(layers_->size()));
    }
    trace_.runs.set<&Run::num_layers>(Id<Run>(0), static_cast<int64_t>(layers_->size()));
}

void Recorder::add_module_types(const std::unordered_map<std::string, std::string>& types) {
    const auto lock = lock_rows();
    for (const auto& [path, type] : types) {
        const StringId name = module_types_[path] = trace_.strings.intern(type);
        const auto known = module_paths_.find(path);
        if (known != module_paths_.end()) {
            trace_.module_paths.set<&ModulePath::type>(known->second, name);
        }
    }
}

void Recorder::add_module_path(const std::string& path) {
    const auto lock = lock_rows();
    module_path_of(path);
}

int64_t Recorder::layer_named(const std::string& path) const {
    if (layers_) {
        const auto found = layers_->find(path);
        return found == layers_->end() ? -1 : found->second;
    }
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return -1;
    const std::string leaf = path.substr(dot + 1);
    const bool is_index =
        std::all_of(leaf.begin(), leaf.end(), [](char c) { return c >= '0' && c <= '9'; });
    return is_index ? std::stoll(leaf) : -1;
}

Id<ModulePath> Recorder::module_path_of(const std::string& path) {
    if (const auto found = module_paths_.find(path); found != module_paths_.end())
        return found->second;
    const std::size_t dot = path.rfind('.');
    const Id<ModulePath> parent =
        dot == std::string::npos ? Id<ModulePath>() : module_path_of(path.substr(0, dot));
    int64_t layer = parent.valid() ? trace_.module_paths.get<&ModulePath::layer>(parent) : -1;
    if (layer < 0) layer = layer_named(path);
    const auto type = module_types_.find(path);
    const Id<ModulePath> id = trace_.module_paths.append(
        {.path = trace_.strings.intern(path),
         .parent = parent,
         .layer = layer,
         .type = type == module_types_.end() ? StringId() : type->second});
    module_paths_.emplace(path, id);
    return id;
}

/// Of `op`, else of the model code that runs on this thread.
Id<ModulePath> Recorder::running_module_path(Id<Op> op) {
    const Id<ModulePath> of_op =
        op.valid() ? trace_.ops.get<&Op::module_path>(op) : Id<ModulePath>();
    const std::string& path = models::ModuleScope::current();
    if (of_op.valid() || path.empty()) return of_op;
    // Most ops are of the module of the op before.
    if (path != newest_path_) {
        newest_path_ = path;
        newest_module_path_ = module_path_of(path);
    }
    return newest_module_path_;
}

Id<Thread> Recorder::current_thread() {
    thread_local Id<Thread> id;
    thread_local uint64_t owner = 0;
    if (owner != generation_) {
        const int64_t system_id = ::syscall(SYS_gettid);
        const bool main = system_id == ::getpid();
        id = trace_.threads.append(
            {.name = trace_.strings.intern(main ? "main" : "worker"), .system_id = system_id});
        owner = generation_;
    }
    return id;
}

// ---- tensors and saves -----------------------------------------------------------------------

Id<Storage> Recorder::storage_of(const at::Tensor& tensor) const {
    if (!tensor.defined() || !tensor.has_storage()) return {};
    const Id<Allocation> allocation =
        allocations_.allocation_of(*tensor.storage().unsafeGetStorageImpl());
    if (!allocation.valid()) return {};
    return trace_.allocations.get<&Allocation::storage>(allocation);
}

Id<Op> Recorder::maker_of(Id<Storage> storage) const {
    return trace_.allocations.get<&Allocation::op>(
        trace_.storages.get<&Storage::allocation>(storage));
}

Recorder::StorageDetail& Recorder::detail_of(Id<Storage> storage) {
    if (storage.index() >= storage_details_.size()) storage_details_.resize(trace_.storages.size());
    return storage_details_[storage.index()];
}

Id<Tensor> Recorder::tensor_of(const at::Tensor& tensor) {
    const Id<Storage> storage = storage_of(tensor);
    if (!storage.valid()) return {};
    Tensor row{.storage = storage, .dtype = dtype_of(tensor.scalar_type())};
    if (has_shape(tensor)) {
        row.shape = list_texts_.of(tensor.sizes(), trace_.strings);
        row.strides = list_texts_.of(tensor.strides(), trace_.strings);
    } else {  // all its elements, one after the other
        row.shape = list_texts_.of({tensor.numel()}, trace_.strings);
        row.strides = list_texts_.of({1}, trace_.strings);
    }
    StorageDetail& detail = detail_of(storage);
    for (Id<Tensor> known = detail.newest; known.valid(); known = older_tensors_[known.index()]) {
        if (trace_.tensors.get<&Tensor::shape>(known) == row.shape &&
            trace_.tensors.get<&Tensor::strides>(known) == row.strides &&
            trace_.tensors.get<&Tensor::dtype>(known) == row.dtype) {
            return known;
        }
    }
    row.name = detail.name.valid() ? detail.name : detail.copy_name;
    if (!row.name.valid()) {
        if (const Id<Op> maker = maker_of(storage); maker.valid()) row.name = output_name_of(maker);
    }
    older_tensors_.push_back(detail.newest);
    return detail.newest = trace_.tensors.append(row);
}

/// The first name stays: a layer's output is also the next layer's input.
void Recorder::name_storage(Id<Storage> storage, StringId name) {
    StorageDetail& detail = detail_of(storage);
    if (detail.name.valid()) return;
    detail.name = name;
    for (Id<Tensor> own = detail.newest; own.valid(); own = older_tensors_[own.index()]) {
        trace_.tensors.set<&Tensor::name>(own, name);
    }
}

bool Recorder::is_made_by_copy(Id<Storage> storage) const {
    const Id<Op> maker = maker_of(storage);
    if (!maker.valid()) return false;
    const std::string_view name = trace_.text(trace_.ops.get<&Op::name>(maker));
    return name == "aten::_to_copy" || name == "aten::clone";
}

void Recorder::name_copy(const at::Tensor& copy, const at::Tensor& source) {
    const Id<Storage> storage = storage_of(copy);
    const Id<Tensor> row = tensor_of(source);
    if (!storage.valid() || !row.valid() || storage == storage_of(source)) return;
    StorageDetail& detail = detail_of(storage);
    if (detail.copy_name.valid() || !is_made_by_copy(storage)) return;
    const std::string_view kind = copy.scalar_type() == source.scalar_type() ? "copy" : "cast";
    std::string_view name = trace_.text(trace_.tensors.get<&Tensor::name>(row));
    if (name.ends_with(" copy") || name.ends_with(" cast")) name.remove_suffix(kind.size() + 1);
    if (name.empty()) return;
    detail.copy_name = trace_.strings.intern(fmt::format("{} {}", short_tensor_name(name), kind));
}

void Recorder::on_tensor_named(const at::Tensor& tensor, std::string_view name) {
    const std::lock_guard lock(mutex_);
    const Id<Storage> storage = storage_of(tensor);
    if (storage.valid()) name_storage(storage, trace_.strings.intern(name));
}

void Recorder::describe(const at::Tensor& tensor, std::string_view name, Category category) {
    const std::lock_guard lock(mutex_);
    const Id<Storage> storage = storage_of(tensor);
    if (!storage.valid()) return;
    name_storage(storage, trace_.strings.intern(name));
    trace_.storages.set<&Storage::category>(storage, category);
    tensor_of(tensor);
    if (category == Category::kParameter) add_module_of(name);
}

void Recorder::add_module_of(std::string_view parameter) {
    const std::size_t dot = parameter.rfind('.');
    if (dot == std::string_view::npos) return;
    const std::string path(parameter.substr(0, dot));
    if (module_types_.contains(path)) module_path_of(path);
}

std::optional<Category> Recorder::category_of(const at::Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    const Id<Storage> storage = storage_of(tensor);
    if (!storage.valid()) return std::nullopt;
    return trace_.storages.get<&Storage::category>(storage);
}

Id<Save> Recorder::save(const at::Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    const Id<Tensor> row = tensor_of(tensor);
    if (!row.valid()) return {};
    const Id<Storage> storage = trace_.tensors.get<&Tensor::storage>(row);
    if (trace_.storages.get<&Storage::category>(storage) == Category::kTemporary) {
        trace_.storages.set<&Storage::category>(storage, Category::kActivation);
    }
    return trace_.saves.append(
        {.storage = storage, .tensor = row, .op = op_of_save(), .saved_event = next_event_});
}

/// A checkpoint's save gets the op that it has in other versions of torch.
Id<Op> Recorder::op_of_save() {
    const Id<Op> op = current_op();
    if (op.valid() || !checkpoint_saves_outside_of_ops()) return op;
    const int64_t now = now_ns();
    return trace_.ops.append({.name = trace_.strings.intern(kInputsOfCheckpoint),
                              .module_path = running_module_path({}),
                              .phase = phase_,
                              .thread = current_thread(),
                              .start_ns = now,
                              .end_ns = now});
}

void Recorder::release(Id<Save> save) {
    const std::lock_guard lock(mutex_);
    trace_.saves.set<&Save::released_event>(save, next_event_);
}

void Recorder::on_module_begin(std::string_view path) noexcept {
    if (observer_) observer_->on_module_begin(path);
}

void Recorder::on_module_end() noexcept {
    if (observer_) observer_->on_module_end();
}

void Recorder::on_note(std::string_view code, std::string_view sentence) {
    add_note(code, Severity::kInfo, sentence);
}

void Recorder::add_note(std::string_view code, Severity severity, std::string_view explanation) {
    const std::lock_guard lock(mutex_);
    add_diagnostic(trace_, {.code = code, .severity = severity, .explanation = explanation});
}

}  // namespace profiler
