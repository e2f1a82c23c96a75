#pragma once

#include "profiler/trace/trace.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <vector>

/// How torch reports ops and saved tensors.
namespace profiler {

/// What a listener keeps of an op while it runs.
struct RunningOp : at::ObserverContext {
    uint64_t generation = 0;    // of the listener
    Id<Collective> collective;  // that the op calls; invalid: none
};

/// Is told what torch runs and what autograd saves, on the thread that does it.
class TorchListener {
public:
    virtual ~TorchListener() = default;
    /// Different for every listener of the process. An address would not tell them apart, since a
    /// later one may reuse it.
    virtual uint64_t generation() const = 0;
    virtual std::unique_ptr<RunningOp> begin_op(const at::RecordFunction& function) = 0;
    virtual void end_op(const at::RecordFunction& function, RunningOp& op) = 0;
    /// The call of a collective ends. If the backend goes on, end_collective follows.
    virtual void end_collective_call(Id<Collective> collective, bool goes_on) = 0;
    virtual void end_collective(Id<Collective> collective) = 0;
    /// Invalid: the tensor's storage is not recorded.
    virtual Id<Save> save(const at::Tensor& tensor) = 0;
    virtual void release(Id<Save> save) = 0;
};

/// Has torch's autograd engine report saved tensors. The previous engine still runs backward and
/// its own hooks: in Python, the hooks of checkpoints and save_on_cpu come first and own what they
/// keep. Costs an uncontended lock and a branch per saved tensor while nothing is recorded.
void install_hook_engine();

/// Directs op and saved-tensor callbacks of the whole process to `listener`. Null switches them
/// off: after that call no thread uses the former listener. Installs the engine if need be.
void install_torch_hooks(TorchListener* listener);

/// The tensors in one of a class that is written in Python (DTensor), which has no storage of its
/// own.
using InnerTensors = std::vector<at::Tensor> (*)(const at::Tensor& wrapper);

/// A saved tensor of such a class counts as the tensors in it. Without this call it is not seen. No
/// lock is held while `of` runs.
void set_inner_tensors(InnerTensors of);

}  // namespace profiler
