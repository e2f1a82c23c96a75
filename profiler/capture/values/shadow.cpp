#include "profiler/capture/values/shadow.h"

#include "profiler/capture/torch_adapter/op_call.h"
#include "profiler/capture/values/assumptions.h"
#include "profiler/capture/values/op_traits.h"
#include "profiler/capture/values/rank_messages.h"
#include "profiler/capture/values/tensor_values.h"
#include "profiler/capture/values/value_reads.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace profiler {
namespace {

using c10::IValue;
using Values = std::span<const IValue>;

// Of an op that is computed. Larger tensors are what models are made of.
constexpr int64_t kMostFloats = int64_t{1} << 22;       // elements
constexpr int64_t kMostDrawn = int64_t{1} << 18;        // floats that are drawn, as weights are
constexpr int64_t kMostBytes = int64_t{64} << 20;       // of inputs, and of outputs
constexpr int64_t kMostBytesOfCall = int64_t{1} << 30;  // of all ops in one call of a model, with
                                                        // floats and without them

ValueOptions settings;
/// Masks and indices are computed even where a program has computed with many numbers.
std::atomic<int64_t> bytes_with_floats = 0, bytes_of_whole = 0;
std::atomic<bool> is_imbalanced = false;
/// A process that was forked has other threads' locks, and does not know who held them.
std::atomic<bool> is_forked = false;

/// Ops on this thread that are computed, around the one that runs: nothing need be assumed in them.
thread_local int num_computed_around = 0;

// ---- arguments ----------------------------------------------------------------------------------

/// The value with visit(tensor) in place of each defined tensor.
template <typename Visit>
IValue map_tensors(const IValue& value, const Visit& visit) {
    if (value.isTensor()) {
        return value.toTensor().defined() ? IValue(visit(value.toTensor())) : value;
    }
    if (value.isTensorList()) {
        c10::List<at::Tensor> mapped;
        for (const at::Tensor& tensor : value.toTensorVector()) {
            mapped.push_back(tensor.defined() ? visit(tensor) : tensor);
        }
        return mapped;
    }
    if (!value.isList()) return value;
    // Of optional tensors, as the indices of index.Tensor.
    const c10::List<IValue> list = value.toList();
    if (list.elementType()->kind() != c10::TypeKind::OptionalType) return value;
    c10::impl::GenericList mapped(list.elementType());
    for (const IValue& part : list) {
        const bool is_tensor = part.isTensor() && part.toTensor().defined();
        mapped.push_back(is_tensor ? IValue(visit(part.toTensor())) : part);
    }
    return mapped;
}

template <typename Visit>
void for_each_tensor(const IValue& value, const Visit& visit) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) visit(value.toTensor());
    } else if (value.isList()) {
        for (const IValue& part : value.toListRef()) for_each_tensor(part, visit);
    }
}

bool is_on_gpu(const IValue& value) {
    if (value.isDevice()) return value.toDevice().is_cuda();
    bool is_on_gpu = false;
    for_each_tensor(value, [&](const at::Tensor& tensor) { is_on_gpu |= tensor.is_cuda(); });
    return is_on_gpu;
}

/// The bytes of all tensors; -1 where the shadow does not compute with them.
int64_t small_bytes(Values values, int64_t most_floats) {
    int64_t num_floats = 0;
    int64_t bytes = 0;
    bool are_plain = true;
    for (const IValue& value : values) {
        for_each_tensor(value, [&](const at::Tensor& tensor) {
            are_plain = are_plain && (!tensor.is_cuda() || is_plain_on_gpu(tensor));
            if (!are_plain) return;
            const bool is_whole = at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
            num_floats += is_whole ? 0 : tensor.numel();
            bytes += memory_bytes(tensor);
        });
        if (!are_plain || num_floats > most_floats || bytes > kMostBytes) return -1;
    }
    return bytes;
}

bool have_floats(Values values) {
    bool have_floats = false;
    for (const IValue& value : values) {
        for_each_tensor(value, [&](const at::Tensor& tensor) {
            have_floats |= !at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
        });
    }
    return have_floats;
}

bool writes(const OpTraits& op, std::size_t argument) {
    return std::ranges::find(op.written, argument) != op.written.end();
}

/// Waits for messages that hold unknown values of the tensor.
bool is_known(const at::Tensor& tensor) {
    while (!has_known_values(tensor)) {
        if (!keep_promise(tensor.const_data_ptr(), tensor.nbytes())) return false;
    }
    return true;
}

/// Whether all values are known that the op reads.
bool are_known(const OpTraits& op, Values inputs) {
    bool are_known = true;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        for_each_tensor(inputs[i], [&](const at::Tensor& tensor) {
            if (!are_known) return;
            // A tensor of the CPU is written by the op itself.
            are_known = tensor.is_cuda() ? op.overwrites(i) || is_known(tensor) : !writes(op, i);
        });
        if (!are_known) return false;
    }
    return true;
}

at::Device device_of(Values inputs) {
    std::optional<at::Device> device;
    for (const IValue& input : inputs) {
        if (input.isDevice() && input.toDevice().is_cuda()) device = input.toDevice();
        for_each_tensor(input, [&](const at::Tensor& tensor) {
            if (tensor.is_cuda() && !device) device = tensor.device();
        });
    }
    return device.value_or(at::Device(at::kCUDA));
}

/// Seeded as the program seeded the GPU's generator, and different after each draw from it.
at::Generator generator_for(const IValue& given, const at::Device& device) {
    const at::Generator of_gpu =
        given.isGenerator() ? given.toGenerator() : at::globalContext().defaultGenerator(device);
    constexpr uint64_t kOddNumber =
        0x9E3779B97F4A7C15;  // spreads the offsets (2^64 / golden ratio)
    const uint64_t offset = of_gpu.device().is_cuda() ? of_gpu.get_offset() : 0;
    return at::detail::createCPUGenerator(of_gpu.current_seed() + offset * kOddNumber);
}

/// histc has no code for integers on the CPU.
void cast_for_cpu(const OpTraits& op, std::vector<IValue>& arguments) {
    if (op.name != "aten::histc" || !arguments.front().isTensor()) return;
    const at::Tensor& values = arguments.front().toTensor();
    if (at::isIntegralType(values.scalar_type(), true)) arguments.front() = values.to(at::kDouble);
}

/// The arguments for torch's op of the CPU. Their values are known.
std::vector<IValue> arguments_on_cpu(const OpTraits& op, Values inputs) {
    std::vector<IValue> arguments;
    arguments.reserve(inputs.size());
    const auto& formal = op.handle->schema().arguments();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const IValue& input = inputs[i];
        if (input.isDevice() && input.toDevice().is_cuda()) {
            arguments.emplace_back(at::Device(at::kCPU));
        } else if (formal[i].name() == "generator") {
            arguments.emplace_back(generator_for(input, device_of(inputs)));
        } else {
            arguments.push_back(map_tensors(input, [&](const at::Tensor& tensor) {
                if (!tensor.is_cuda()) return tensor;
                return op.overwrites(i) ? same_on_cpu(tensor) : values_on_cpu(tensor);
            }));
        }
    }
    cast_for_cpu(op, arguments);
    return arguments;
}

// ---- one op -------------------------------------------------------------------------------------

/// Torch as it is inside of an op: nothing is differentiated, cast, traced or reported.
struct InsideOfOp {
    at::NoGradGuard no_grad;
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
    c10::impl::ExcludeDispatchKeyGuard no_python{c10::DispatchKeySet(
        {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot,
         c10::DispatchKey::Functionalize, c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
         c10::DispatchKey::FuncTorchDynamicLayerBackMode})};
    at::DisableRecordFunctionGuard unreported;
};

struct RunningWork final : at::ObserverContext {
    /// Torch ends an op that throws, too.
    bool has_failed() const { return std::uncaught_exceptions() > num_exceptions; }

    const int num_exceptions = std::uncaught_exceptions();
    const OpTraits* op = nullptr;                // null: only a call
    std::optional<CollectiveCall> call;          // of torch.distributed
    std::vector<IValue> inputs;                  // of the call, or those that the op changes
    std::optional<std::vector<IValue>> on_cpu;   // arguments to compute with; none: it is unknown
    std::optional<std::vector<IValue>> results;  // of an op that reads its own result
    std::optional<Assumed> assumed;              // if it is not computed
    uint64_t num_writes = 0;                     // before it began
    bool fills = false;                          // it gives a whole tensor one value
    bool expects = false;                        // the virtual GPU was told what the op will read
};

/// Computes with the CPU's op. None: it failed, as the GPU's would, or it takes no such arguments.
std::optional<std::vector<IValue>> results_on_cpu(const OpTraits& op,
                                                  const std::vector<IValue>& arguments) try {
    std::vector<IValue> stack = arguments;
    op.handle->callBoxed(stack);
    return stack;
} catch (const std::exception&) {
    return std::nullopt;
}

/// Nobody knows what a kernel has written there.
void forget(const IValue& value) {
    for_each_tensor(value, [](const at::Tensor& tensor) {
        if (!has_memory_on_gpu(tensor)) return;
        forget_values(tensor);
        drop_promises(tensor.const_data_ptr(), tensor.nbytes());
    });
}

void forget_inputs(const OpTraits& op, Values inputs) {
    for (const std::size_t i : op.written) {
        if (i < inputs.size()) forget(inputs[i]);
    }
}

/// False: a view.
bool is_written(const OpTraits& op, std::size_t output) {
    const auto& returns = op.handle->schema().returns();
    const c10::AliasInfo* const alias = returns[output].alias_info();
    return alias == nullptr || alias->isWrite();
}

void forget_outputs(const OpTraits& op, Values outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (is_written(op, i)) forget(outputs[i]);
    }
}

/// The tensors of `target`, which are on the GPU, have the values of those of `source`.
void set_values_of(const IValue& target, const IValue& source) {
    std::vector<at::Tensor> values;
    for_each_tensor(source, [&](const at::Tensor& one) { values.push_back(one); });
    auto value = values.begin();
    for_each_tensor(target, [&](const at::Tensor& tensor) {
        if (value == values.end()) return;
        const at::Tensor& own = *value++;
        if (!is_plain_on_gpu(tensor)) return;
        own.sizes() == tensor.sizes() ? set_values(tensor, own) : forget_values(tensor);
    });
}

/// An op without a result may change its arguments all the same.
void write_results(const RunningWork& work, const std::vector<IValue>& results, Values outputs) {
    const OpTraits& op = *work.op;
    for (std::size_t i = 0; i < outputs.size() && i < results.size(); ++i) {
        if (is_written(op, i)) set_values_of(outputs[i], results[i]);
    }
    if (!outputs.empty()) return;
    for (std::size_t i = 0; i < op.written.size(); ++i) {
        set_values_of(work.inputs[i], (*work.on_cpu)[op.written[i]]);
    }
}

/// Whether the virtual GPU itself copies the values: they lie in one piece, and are those of a
/// tensor that the shadow would not keep.
bool is_copied_by_gpu(const at::Tensor& to, const at::Tensor& from) {
    const bool are_plain =
        is_plain_on_gpu(to) && (is_plain_on_gpu(from) || (from.is_cpu() && !from.is_nested()));
    if (!are_plain || from.is_conj() || from.is_neg()) return false;
    const bool is_one_piece = to.scalar_type() == from.scalar_type() &&
                              to.sizes() == from.sizes() && to.strides() == from.strides() &&
                              to.is_non_overlapping_and_dense();
    const bool is_large_list = !from.is_cuda() && from.nbytes() > virtual_gpu::kMaxKeptCopyBytes &&
                               at::isIntegralType(from.scalar_type(), /*includeBool=*/true);
    return is_one_piece && !is_large_list;
}

/// Whether zero_ or fill_ sets all of a range, which has no cost at any size.
bool is_whole_fill(const OpTraits& op, Values inputs) {
    if (op.work != ValueWork::kFilled) return false;
    const at::Tensor& tensor = inputs[0].toTensor();
    return is_plain_on_gpu(tensor) && tensor.is_non_overlapping_and_dense();
}

void fill(const std::vector<IValue>& inputs) {
    const at::Tensor& tensor = inputs[0].toTensor();
    set_all(tensor, inputs.size() > 1 ? inputs[1].toScalar() : at::Scalar(0));
    drop_promises(tensor.const_data_ptr(), tensor.nbytes());
}

/// Whether the shadow need not follow the op.
bool is_done_by_gpu(const OpTraits& op, Values inputs) {
    if (op.work != ValueWork::kCopied) return false;
    const at::Tensor& from = inputs[1].toTensor();
    if (!is_copied_by_gpu(inputs[0].toTensor(), from)) return false;
    if (from.is_cuda()) is_known(from);  // a message that has come is copied, too
    return true;
}

/// Tells the virtual GPU what an op is going to read of its own result: its verdict, or how many
/// places it has found.
void expect(RunningWork& work) {
    const InsideOfOp inside;
    work.results = results_on_cpu(*work.op, *work.on_cpu);
    if (!work.results) return;
    const IValue& result = work.results->front();
    int64_t value = 0;
    if (result.isBool()) {
        value = result.toBool() ? 1 : 0;
    } else {
        const at::Tensor& places = result.toTensor();
        const int64_t dim = dim_argument(*work.op, *work.on_cpu).value_or(0);
        value = places.dim() == 0 ? 1 : places.size(dim);
    }
    device_values()->expect(value);
    work.expects = true;
}

/// Prepares the arguments, as the op may change its inputs before it ends.
void prepare(RunningWork& work, Values inputs) {
    const OpTraits& op = *work.op;
    if (op.work == ValueWork::kUnknown || device_values()->captures()) return;
    const int64_t bytes = small_bytes(inputs, op.draws ? kMostDrawn : kMostFloats);
    if (bytes < 0) return;
    std::atomic<int64_t>& bytes_of_call = have_floats(inputs) ? bytes_with_floats : bytes_of_whole;
    if (bytes_of_call + bytes > kMostBytesOfCall || !are_known(op, inputs)) return;
    bytes_of_call += bytes;
    const InsideOfOp inside;
    work.on_cpu = arguments_on_cpu(op, inputs);
}

std::unique_ptr<RunningWork> begin_work(const OpTraits& op, Values inputs) {
    const bool is_captured = device_values()->captures();
    const bool is_read = op.work == ValueWork::kCopied && !inputs[0].toTensor().is_cuda();
    if (is_read || (!is_captured && is_done_by_gpu(op, inputs))) return nullptr;
    auto work = std::make_unique<RunningWork>();
    work->op = &op;
    work->num_writes = device_values()->num_writes();
    if (!is_captured && is_whole_fill(op, inputs)) {
        work->inputs.assign(inputs.begin(), inputs.end());
        work->fills = true;
        return work;
    }
    for (const std::size_t i : op.written) work->inputs.push_back(inputs[i]);
    try {
        prepare(*work, inputs);
        if (work->on_cpu && op.reads_its_result) expect(*work);
    } catch (const std::exception&) {
        work->on_cpu.reset();
    }
    if (work->on_cpu) {
        ++num_computed_around;
        return work;
    }
    if (!is_captured && num_computed_around == 0) work->assumed = assumption_for(op, inputs);
    if (work->assumed && are_known(op, inputs)) work->assumed.reset();  // known, and too large
    forget_inputs(op, inputs);
    return work;
}

void end_work(const RunningWork& work, Values outputs) {
    const OpTraits& op = *work.op;
    if (work.expects) device_values()->expect_nothing();
    if (work.on_cpu) --num_computed_around;
    if ((work.on_cpu || work.fills) && work.has_failed()) return;  // all is as it was
    if (work.fills) return fill(work.inputs);
    if (work.on_cpu) {
        const InsideOfOp inside;
        std::optional<std::vector<IValue>> results = work.results;
        if (!results && small_bytes(outputs, kMostFloats) >= 0) {
            results = results_on_cpu(op, *work.on_cpu);
        }
        if (results) return write_results(work, *results, outputs);
        for (const IValue& input : work.inputs) forget(input);
    }
    // Memory of new tensors is unknown, unless the op has filled it before its kernel wrote there.
    const bool has_filled = device_values()->num_writes() != work.num_writes;
    if (has_filled) forget_outputs(op, outputs);
    if (!work.assumed) return;
    const InsideOfOp inside;
    assume(*work.assumed, outputs, is_imbalanced ? models::kImbalanced : settings.routing);
}

// ---- torch's callbacks --------------------------------------------------------------------------

/// Its message is carried when it ends, as NCCL itself has written to the tensors by then.
std::unique_ptr<RunningWork> begin_collective(const at::RecordFunction& function, Values inputs) {
    auto work = std::make_unique<RunningWork>();
    work->call = collective_call_of(function);
    work->inputs.assign(inputs.begin(), inputs.end());
    return work;
}

/// Those of the op itself: a boxed call reports its whole stack.
template <typename Stack>
Values last_of(const Stack& stack, std::size_t count) {
    const Values all(stack.data(), stack.size());
    return all.size() > count ? all.last(count) : all;
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
    if (is_forked) return nullptr;
    const OpTraits& op = traits_of(function);
    const std::size_t num_arguments = op.handle ? op.handle->schema().arguments().size() : SIZE_MAX;
    const Values inputs = last_of(function.inputs(), num_arguments);
    enter_op(op, inputs);
    if (op.is_collective) return begin_collective(function, inputs);
    if (settings.mode == ValueMode::kZeros || op.work == ValueWork::kNone) return nullptr;
    if (inputs.empty() || std::ranges::none_of(inputs, is_on_gpu)) return nullptr;
    try {
        return begin_work(op, inputs);
    } catch (const c10::Error&) {
        return nullptr;  // of tensors that a transform wraps: they are not of the program's memory
    }
}

struct LeaveOp {
    ~LeaveOp() { leave_op(); }
};

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
    if (is_forked) return;
    const LeaveOp leave;
    if (context == nullptr) return;
    const auto& work = *static_cast<RunningWork*>(context);
    if (work.call) carry_message(*work.call, work.inputs);
    if (work.op == nullptr) return;
    const Values outputs = last_of(function.outputs(), work.op->handle->schema().returns().size());
    try {
        end_work(work, outputs);
    } catch (const c10::Error&) {
        for (const IValue& input : work.inputs) forget(input);
    }
}

at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;

void follow_ops() {
    callback = at::addGlobalCallback(at::RecordFunctionCallback(on_begin, on_end)
                                         .needsInputs(true)
                                         .needsOutputs(settings.mode == ValueMode::kComputed)
                                         .scopes({at::RecordScope::FUNCTION}));
}

void follow_again() {
    device_values()->set_keeping(true);
    at::reenableCallback(callback);
}

}  // namespace

void follow_values(const ValueOptions& options) {
    static bool follows = false;
    if (follows || device_values() == nullptr) return;
    follows = true;
    settings = options;
    pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
    count_value_reads(options.hidden, options.torch);
    if (!options.folder.empty()) join_ranks(options.folder, options.rank, options.world_size);
    // Where nothing is computed and no rank is told anything, nothing is followed either before
    // something is read.
    const bool follows_at_once = options.mode == ValueMode::kComputed || !options.folder.empty();
    follows_at_once ? follow_ops() : call_on_first_read(&follow_ops);
}

void renew_value_budget() { bytes_with_floats = bytes_of_whole = 0; }

void rest_unless_read() {
    // What a rank sends may be read by another one.
    const bool may_rest = callback != at::INVALID_CALLBACK_HANDLE && settings.folder.empty();
    if (!may_rest || device_values()->num_reads() > 0) return;
    at::disableCallback(callback);
    device_values()->set_keeping(false);
    call_on_first_read(&follow_again);
}

bool has_balanced_experts() {
    return settings.routing.kind == models::Routing::Kind::kBalanced && has_assumed_routing();
}

void set_imbalanced(bool wanted) {
    is_imbalanced = wanted;
    device_values()->set_unlimited(wanted);
}

}  // namespace profiler
