#include "profiler/capture/torch_adapter/out_of_memory.h"

#include <c10/util/Exception.h>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace profiler {
namespace {

/// What TORCH_CHECK throws for `message`.
bool torch_error_is_out_of_memory(const std::string& message) {
    try {
        TORCH_CHECK(false, message);
    } catch (const c10::Error& error) {
        return is_out_of_memory(error);
    }
    return false;
}

TEST(OutOfMemory, IsKnownByItsType) {
    try {
        TORCH_CHECK_WITH(OutOfMemoryError, false, "no more");
    } catch (const std::exception& error) {
        EXPECT_TRUE(is_out_of_memory(error));
    }
}

TEST(OutOfMemory, OfCudasLibrariesAndKernelsIsKnownByItsWords) {
    EXPECT_TRUE(torch_error_is_out_of_memory(
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"));
    EXPECT_TRUE(torch_error_is_out_of_memory("CUDA error: out of memory"));
    EXPECT_TRUE(is_out_of_memory(
        std::runtime_error("CUDA kernel gelu_forward could not be launched: out of memory")));
}

TEST(OutOfMemory, IsNotWhateverElseFails) {
    EXPECT_FALSE(torch_error_is_out_of_memory("CUDA error: an illegal memory access"));
    EXPECT_FALSE(is_out_of_memory(std::runtime_error("tensor too large for one CUDA launch")));
}

}  // namespace
}  // namespace profiler
