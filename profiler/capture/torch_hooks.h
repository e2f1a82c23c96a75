#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

/// How torch 2.11 reports ops and saved tensors. Another version of torch may need changes here.
namespace profiler {

class Recorder;

/// Has torch's autograd engine report saved tensors. Backward stays the work of the engine that is
/// there, and so do the hooks of that engine: in Python, those of checkpoints and save_on_cpu come
/// first, and what they keep is theirs. Costs an uncontended lock and a branch per saved tensor
/// while nothing is recorded.
void install_hook_engine();

/// Directs op and saved-tensor callbacks of the whole process to `recorder`. Null switches them
/// off: after that call no thread uses the former recorder. Installs the engine if need be.
void install_torch_hooks(Recorder* recorder);

/// The tensors in one of a class that is written in Python (DTensor), which has no storage of its
/// own.
using InnerTensors = std::vector<at::Tensor> (*)(const at::Tensor& wrapper);

/// What autograd saves of such a class counts as the tensors in it. Without this call it is not
/// seen. No lock is held while `of` runs.
void set_inner_tensors(InnerTensors of);

}  // namespace profiler
