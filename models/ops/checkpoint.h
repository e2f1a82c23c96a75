#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

namespace models::ops {

/// What a checkpoint runs: from its inputs to its output.
using CheckpointedRun = std::function<at::Tensor(at::TensorList)>;

/// Activation checkpointing: runs `run(inputs)` without autograd, saves the inputs alone, and runs
/// it again with autograd in backward.
///
/// `run` must compute the same values twice. Our dropout does: its masks are functions of a key.
/// torch's dropout and fused attention draw from torch's generator of the device. Its state before
/// the first run is kept, and set for the second one, as torch.utils.checkpoint does; so is
/// autocast.
/// `module_path` is the module that the saved inputs count for; `run` enters its own modules.
/// Requires inputs that require grad (the limit of every re-entrant checkpoint).
/// Memory   saves the inputs; backward holds what `run` would have saved, for this call only. The
///          generator's state takes 5056 bytes of the CPU, or 16 for a GPU's.
/// Source   Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174.
at::Tensor checkpoint(const std::string& module_path, CheckpointedRun run, at::TensorList inputs);

}  // namespace models::ops
