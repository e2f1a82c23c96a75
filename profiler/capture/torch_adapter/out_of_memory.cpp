#include "profiler/capture/torch_adapter/out_of_memory.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace profiler {

bool is_out_of_memory(const std::exception& error) {
    if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
    const auto* const torch = dynamic_cast<const c10::Error*>(&error);
    const std::string_view text = torch ? torch->what_without_backtrace() : error.what();
    // cudaGetErrorString of cudaErrorMemoryAllocation; CUBLAS_STATUS_ALLOC_FAILED and cuDNN's; what
    // cublasCreate says on a full device.
    constexpr std::string_view kTexts[] = {"out of memory", "ALLOC_FAILED",
                                           "CUBLAS_STATUS_NOT_INITIALIZED"};
    return std::any_of(std::begin(kTexts), std::end(kTexts),
                       [&](std::string_view part) { return text.find(part) != text.npos; });
}

}  // namespace profiler
