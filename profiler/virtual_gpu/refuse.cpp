#include "profiler/virtual_gpu/api.h"

#include <stdexcept>
#include <string>
#include <string_view>

namespace profiler::virtual_gpu {
namespace {

/// What to do without it. Code that was compiled while the program runs is loaded as a module.
std::string_view advice(std::string_view function) {
    if (function.starts_with("cuModuleLoad") || function.starts_with("cuLibraryLoad")) {
        return "run it without torch.compile and kernels of Triton";
    }
    return "leave out the op that needs it";
}

}  // namespace

void refuse(const char* function) {
    std::string sentence = "The simulated GPU of Temposcope does not have ";
    sentence.append(function).append(", which this program calls: ").append(advice(function));
    throw std::runtime_error(sentence + ", or measure on a GPU.");
}

}  // namespace profiler::virtual_gpu

/// What the generated functions call, each with its own name.
extern "C" __attribute__((visibility("hidden"), noreturn)) void virtual_gpu_refuse(
    const char* function) {
    profiler::virtual_gpu::refuse(function);
}
