#include "models/config/cuda_memory.h"

namespace models {
namespace {

constexpr int64_t kDefaultWorkspaceBytes = (4096 * 2 + 16 * 8) * int64_t{1024};
constexpr int64_t kHopperWorkspaceBytes = int64_t{32} << 20;

}  // namespace

int64_t cublas_workspace_bytes(ComputeCapability capability) {
    return capability == ComputeCapability{9, 0} ? kHopperWorkspaceBytes : kDefaultWorkspaceBytes;
}

bool is_cublas_workspace_bytes(int64_t bytes) {
    return bytes == kDefaultWorkspaceBytes || bytes == kHopperWorkspaceBytes;
}

}  // namespace models
