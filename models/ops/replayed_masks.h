#pragma once

/// A dropout mask is a function of its key, and the key is an argument of a kernel's launch. A CUDA
/// graph replays its launches, so it would drop the same elements in every step.
namespace models::ops {

/// Whether ops that draw a mask may run while the stream captures a CUDA graph. The program says so
/// with torch.ops.tempo.allow_replayed_masks(True), for example to measure kernels.
bool replayed_masks_allowed();

}  // namespace models::ops
