#pragma once

/// The version-sensitive part of the capture: how torch 2.11 tells about ops and saved tensors.
namespace profiler {

class Recorder;

/// Directs op and saved-tensor callbacks of the whole process to `recorder`; null switches them
/// off, and then none uses the former recorder any more, on no thread. The engine stays installed,
/// at the cost of a lock that nobody waits for and a branch.
void install_torch_hooks(Recorder* recorder);

}  // namespace profiler
