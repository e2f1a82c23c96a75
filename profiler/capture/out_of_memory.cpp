#include "profiler/capture/out_of_memory.h"

#include <c10/util/Exception.h>

#include <string_view>

namespace profiler {

bool is_out_of_memory(const std::exception& error) {
    if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
    const auto* const torch = dynamic_cast<const c10::Error*>(&error);
    const std::string_view text = torch ? torch->what_without_backtrace() : error.what();
    // cudaGetErrorString of cudaErrorMemoryAllocation; CUBLAS_STATUS_ALLOC_FAILED and cuDNN's.
    return text.find("out of memory") != text.npos || text.find("ALLOC_FAILED") != text.npos;
}

}  // namespace profiler
