#pragma once

/// How torch 2.11 reports ops and saved tensors. Another version of torch may need changes here.
namespace profiler {

class Recorder;

/// Makes the engine that reports saved tensors torch's autograd engine. Call it before the first
/// backward pass on CUDA: torch starts the threads of its devices once in a process, for the engine
/// that it then has, and another one finds none. The engine costs an uncontended lock and a branch
/// per saved tensor while nothing is recorded.
void install_hook_engine();

/// Directs op and saved-tensor callbacks of the whole process to `recorder`. Null switches them
/// off: after that call no thread uses the former recorder. Installs the engine if need be.
void install_torch_hooks(Recorder* recorder);

}  // namespace profiler
