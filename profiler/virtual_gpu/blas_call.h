#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <string>
#include <string_view>

/// Matrix products as records of work name them. cuBLAS chooses its kernels itself; a virtual GPU
/// knows what was asked, and says that instead of a kernel's name:
///
///     gemm f16*f16->f16 tn 4096x1024x1024 batch 16 compute f32 epilogue gelu_aux_bias
///
/// (types of A, B and D; transposes of A and B; m x n x k, column-major as BLAS counts).
namespace profiler::virtual_gpu {

struct Gemm {
    cudaDataType_t a = CUDA_R_32F, b = CUDA_R_32F, d = CUDA_R_32F;
    cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
    int64_t m = 0, n = 0, k = 0;
    int64_t batch = 1;
    std::string_view compute = "f32";  // the type of the sums, or tf32
    std::string_view epilogue;         // empty: none
};

std::string to_text(const Gemm& gemm);

/// "f16"
std::string_view name_of(cudaDataType_t type);
/// "f32", "tf32"; of a cuBLAS compute type.
std::string_view name_of(cublasComputeType_t type);

/// That cublasSetStream gave the handle.
cudaStream_t stream_of(cublasHandle_t handle);

/// Gives the product to the stream as one kernel.
void submit_gemm(const Gemm& gemm, cudaStream_t stream);
/// Any other BLAS call, as one kernel of its name.
void submit_blas(const char* function, cudaStream_t stream);

}  // namespace profiler::virtual_gpu
