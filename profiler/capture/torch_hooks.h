#pragma once

/// How torch 2.11 reports ops and saved tensors. Another version of torch may need changes here.
namespace profiler {

class Recorder;

/// Directs op and saved-tensor callbacks of the whole process to `recorder`. Null switches them
/// off: after that call no thread uses the former recorder. The hook engine stays installed and
/// then costs an uncontended lock and a branch per saved tensor.
void install_torch_hooks(Recorder* recorder);

}  // namespace profiler
