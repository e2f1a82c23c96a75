#include "profiler/capture/cuda/nvtx_scopes.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace profiler {
namespace {

/// Null when nobody collects.
nvtxDomainHandle_t domain() {
    static const nvtxDomainHandle_t handle = nvtxDomainCreateA("temposcope");
    return handle;
}

}  // namespace

void NvtxScopes::begin(std::string_view path) noexcept {
    const nvtxDomainHandle_t handle = domain();
    if (handle == nullptr) return;
    std::array<char, 256> text{};  // a longer path is cut
    std::memcpy(text.data(), path.data(), std::min(path.size(), text.size() - 1));
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = text.data();
    nvtxDomainRangePushEx(handle, &attributes);
}

void NvtxScopes::end() noexcept {
    const nvtxDomainHandle_t handle = domain();
    if (handle != nullptr) nvtxDomainRangePop(handle);
}

}  // namespace profiler
