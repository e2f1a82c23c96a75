#include "profiler/virtual_gpu/api.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>

namespace profiler::virtual_gpu {
namespace {

std::atomic<const char* (*)()> name_of_op = nullptr;

/// What to do without it. Code that was compiled while the program runs is loaded as a module.
std::string_view advice(std::string_view function) {
    if (function.starts_with("cuModuleLoad") || function.starts_with("cuLibraryLoad")) {
        return "run it without kernels of Triton (TORCHDYNAMO_DISABLE=1 turns torch.compile off)";
    }
    if (function.starts_with("device attribute")) {  // Triton asks for more of them than torch does
        return "run it without kernels of Triton, or leave out the op that needs it";
    }
    return "leave out the op that needs it";
}

}  // namespace

void name_refusals(const char* (*name)()) { name_of_op = name; }

void refuse(const char* function) {
    const char* (*const name)() = name_of_op;
    const char* const op = name == nullptr ? nullptr : name();
    const bool is_known = op != nullptr && *op != '\0';
    std::string sentence = "The simulated GPU of Temposcope does not have ";
    sentence.append(function).append(", which ").append(is_known ? op : "this program");
    sentence.append(" calls: ").append(advice(function));
    throw std::runtime_error(sentence + ", or measure on a GPU.");
}

}  // namespace profiler::virtual_gpu

/// What the generated functions call, each with its own name.
extern "C" __attribute__((visibility("hidden"), noreturn)) void virtual_gpu_refuse(
    const char* function) {
    profiler::virtual_gpu::refuse(function);
}
