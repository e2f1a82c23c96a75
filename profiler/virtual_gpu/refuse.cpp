#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/work.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace profiler::virtual_gpu {
namespace {

std::atomic<const char* (*)()> name_of_op = nullptr;
thread_local const char* refusal_of_thread = nullptr;

std::string sentence_about(const char* function) {
    const char* (*const name)() = name_of_op;
    const char* const op = name == nullptr ? nullptr : name();
    const bool is_known = op != nullptr && *op != '\0';
    std::string sentence = "The simulated GPU of Temposcope does not have ";
    sentence.append(function).append(", which ").append(is_known ? op : "this program");
    return sentence + " calls: leave out the op that needs it, or measure on a GPU.";
}

}  // namespace

void name_refusals(const char* (*name)()) { name_of_op = name; }

void refuse(const char* function) { throw std::runtime_error(sentence_about(function)); }

cudaError_t refuse_by_error(const char* function) {
    refusal_of_thread = intern(sentence_about(function));
    return report(cudaErrorNotSupported);
}

CUresult refuse_by_driver_error(const char* function) {
    refusal_of_thread = intern(sentence_about(function));
    return CUDA_ERROR_NOT_SUPPORTED;
}

const char* last_refusal() { return refusal_of_thread; }

}  // namespace profiler::virtual_gpu

// ---- what the generated functions call, each with its own name ----------------------------------

extern "C" {

__attribute__((visibility("hidden"), noreturn)) void virtual_gpu_refuse(const char* function) {
    profiler::virtual_gpu::refuse(function);
}

__attribute__((visibility("hidden"))) int virtual_gpu_refuse_by_error(const char* function) {
    return profiler::virtual_gpu::refuse_by_error(function);
}

/// Of functions that torch does not call. Other libraries' code need not pass an exception on, and
/// their status has no text of its own: the sentence goes to standard error, once.
__attribute__((visibility("hidden"))) int virtual_gpu_refuse_by_status(const char* function,
                                                                       int status) {
    static std::mutex mutex;
    static auto* const told = new std::set<std::string, std::less<>>;
    const std::lock_guard lock(mutex);
    if (told->insert(function).second) {
        const std::string sentence = profiler::virtual_gpu::sentence_about(function);
        std::fprintf(stderr, "%s\n", sentence.c_str());
    }
    return status;
}
}
