#pragma once

#include "models/config/compute_capability.h"
#include "profiler/capture/meta/engine.h"
#include "profiler/capture/meta/workspaces.h"

#include <torch/library.h>

namespace profiler {

/// While it lives, ops on torch's Meta device allocate what they would allocate on CUDA.
///
/// torch has no Meta kernels in C++ for some ops that models use, and for others kernels that know
/// nothing of CUDA's scratch. These compute shapes only: outputs of CUDA's types in CUDA's order,
/// and the temporaries and workspaces of its kernels. Its end restores torch's own. One at a time.
class MetaKernels {
public:
    explicit MetaKernels(models::ComputeCapability capability);
    MetaKernels(const MetaKernels&) = delete;
    MetaKernels& operator=(const MetaKernels&) = delete;

    const BlasWorkspaces& workspaces() const { return workspaces_; }

private:
    void register_matrix_products();

    EngineFrames frames_;
    BlasWorkspaces workspaces_;
    torch::Library aten_;  // last: its kernels use the members before
};

}  // namespace profiler
