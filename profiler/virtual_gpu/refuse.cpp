#include "profiler/virtual_gpu/api.h"

#include <stdexcept>
#include <string>

namespace profiler::virtual_gpu {

void refuse(const char* function) {
    throw std::runtime_error(
        "The virtual GPU of Temposcope does not have " + std::string(function) +
        ", which this program calls: leave out the op that needs it, or measure on a GPU.");
}

}  // namespace profiler::virtual_gpu

/// What the generated functions call, each with its own name.
extern "C" __attribute__((visibility("hidden"), noreturn)) void virtual_gpu_refuse(
    const char* function) {
    profiler::virtual_gpu::refuse(function);
}
