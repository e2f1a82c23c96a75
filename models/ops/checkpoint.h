#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

namespace models::ops {

/// Activation checkpointing: runs `run(x)` without recording what backward needs, keeps x alone,
/// and runs it again, recording, when backward arrives.
///
/// `run` must compute the same values twice: our dropout does (its masks are functions of a key).
/// `scope` is the module that is charged with x; `run` enters the scopes of what it runs.
/// Requires x to require grad (the limit of every re-entrant checkpoint). Autocast is restored.
/// Memory   keeps x; backward holds what `run` would have kept, for this call only.
/// Source   Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174.
at::Tensor checkpoint(const std::string& module_path,
                      std::function<at::Tensor(const at::Tensor&)> run, const at::Tensor& x);

}  // namespace models::ops
