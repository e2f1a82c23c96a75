#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

namespace models::ops {

/// Activation checkpointing: runs `run(x)` without autograd, saves x alone, and runs it again with
/// autograd in backward.
///
/// `run` must compute the same values twice. Our dropout does: its masks are functions of a key.
/// `scope` is the module that the saved x counts for; `run` enters its own modules.
/// Requires x to require grad (the limit of every re-entrant checkpoint). Autocast is restored.
/// Memory   saves x; backward holds what `run` would have saved, for this call only.
/// Source   Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174.
at::Tensor checkpoint(const std::string& module_path,
                      std::function<at::Tensor(const at::Tensor&)> run, const at::Tensor& x);

}  // namespace models::ops
