#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/blas_call.h"
#include "profiler/virtual_gpu/streams.h"

#include <cuComplex.h>
#include <type_traits>

/// cuBLAS as far as training calls it: handles, and products whose results lie in device memory.
namespace profiler::virtual_gpu {
namespace {

struct BlasHandle {
    cudaStream_t stream = nullptr;
    cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
    cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
};

BlasHandle& of(cublasHandle_t handle) { return *reinterpret_cast<BlasHandle*>(handle); }

constexpr std::pair<cudaDataType_t, std::string_view> kTypeNames[]{
    {CUDA_R_16F, "f16"},      {CUDA_R_16BF, "bf16"},    {CUDA_R_32F, "f32"}, {CUDA_R_64F, "f64"},
    {CUDA_C_32F, "c32"},      {CUDA_C_64F, "c64"},      {CUDA_R_8I, "i8"},   {CUDA_R_32I, "i32"},
    {CUDA_R_8F_E4M3, "e4m3"}, {CUDA_R_8F_E5M2, "e5m2"},
};

constexpr std::pair<cublasComputeType_t, std::string_view> kComputeNames[]{
    {CUBLAS_COMPUTE_16F, "f16"},
    {CUBLAS_COMPUTE_16F_PEDANTIC, "f16"},
    {CUBLAS_COMPUTE_32F, "f32"},
    {CUBLAS_COMPUTE_32F_PEDANTIC, "f32"},
    {CUBLAS_COMPUTE_32F_FAST_16F, "f32_by_f16"},
    {CUBLAS_COMPUTE_32F_FAST_16BF, "f32_by_bf16"},
    {CUBLAS_COMPUTE_32F_FAST_TF32, "tf32"},
    {CUBLAS_COMPUTE_64F, "f64"},
    {CUBLAS_COMPUTE_64F_PEDANTIC, "f64"},
    {CUBLAS_COMPUTE_32I, "i32"},
    {CUBLAS_COMPUTE_32I_PEDANTIC, "i32"},
};

char letter(cublasOperation_t operation) {
    if (operation == CUBLAS_OP_N) return 'n';
    return operation == CUBLAS_OP_T ? 't' : 'c';
}

template <typename T>
constexpr cudaDataType_t data_type() {
    if constexpr (std::is_same_v<T, float>) return CUDA_R_32F;
    if constexpr (std::is_same_v<T, double>) return CUDA_R_64F;
    if constexpr (std::is_same_v<T, cuComplex>) return CUDA_C_32F;
    if constexpr (std::is_same_v<T, cuDoubleComplex>) return CUDA_C_64F;
}

/// What fp32 products are computed in under this handle's math mode.
std::string_view compute_of(cublasHandle_t handle, cudaDataType_t type) {
    if (type != CUDA_R_32F) return name_of(type);
    constexpr int kModes = 3;  // the other bits are flags
    const bool is_tf32 = (of(handle).math_mode & kModes) == CUBLAS_TF32_TENSOR_OP_MATH;
    return is_tf32 ? "tf32" : "f32";
}

struct Sizes {
    cublasOperation_t transpose_a, transpose_b;
    int64_t m, n, k;
    int64_t batch = 1;
};

struct Types {
    cudaDataType_t a, b, c;
    std::string_view compute;
};

cublasStatus_t multiply(cublasHandle_t handle, const Sizes& sizes, const Types& types) {
    submit_gemm({.a = types.a,
                 .b = types.b,
                 .d = types.c,
                 .transpose_a = sizes.transpose_a,
                 .transpose_b = sizes.transpose_b,
                 .m = sizes.m,
                 .n = sizes.n,
                 .k = sizes.k,
                 .batch = sizes.batch,
                 .compute = types.compute},
                of(handle).stream);
    return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t multiply(cublasHandle_t handle, const Sizes& sizes) {
    constexpr cudaDataType_t kType = data_type<T>();
    return multiply(handle, sizes,
                    {.a = kType, .b = kType, .c = kType, .compute = compute_of(handle, kType)});
}

std::string_view compute_of(cublasHandle_t handle, cublasComputeType_t type) {
    return type == CUBLAS_COMPUTE_32F ? compute_of(handle, CUDA_R_32F) : name_of(type);
}

cublasStatus_t run(cublasHandle_t handle, const char* function) {
    submit_blas(function, of(handle).stream);
    return CUBLAS_STATUS_SUCCESS;
}

/// A dot product goes to device memory, or to the host, which reads zero.
template <typename T>
cublasStatus_t dot(cublasHandle_t handle, const char* function, T* result) {
    if (of(handle).pointer_mode == CUBLAS_POINTER_MODE_HOST) *result = {};
    return run(handle, function);
}

}  // namespace

std::string_view name_of(cudaDataType_t type) {
    const auto* const name = find_value(kTypeNames, type);
    if (name == nullptr) refuse("a matrix product of this data type");
    return *name;
}

std::string_view name_of(cublasComputeType_t type) {
    const auto* const name = find_value(kComputeNames, type);
    if (name == nullptr) refuse("a matrix product of this compute type");
    return *name;
}

cudaStream_t stream_of(cublasHandle_t handle) { return of(handle).stream; }

std::string to_text(const Gemm& gemm) {
    std::string text = "gemm ";
    text.append(name_of(gemm.a)).append("*").append(name_of(gemm.b));
    text.append("->").append(name_of(gemm.d)).append(" ");
    text += letter(gemm.transpose_a);
    text += letter(gemm.transpose_b);
    text +=
        " " + std::to_string(gemm.m) + "x" + std::to_string(gemm.n) + "x" + std::to_string(gemm.k);
    if (gemm.batch != 1) text += " batch " + std::to_string(gemm.batch);
    text.append(" compute ").append(gemm.compute);
    if (!gemm.epilogue.empty()) text.append(" epilogue ").append(gemm.epilogue);
    return text;
}

void submit_gemm(const Gemm& gemm, cudaStream_t stream) {
    submit(stream, {.kind = WorkKind::kKernel, .name = intern(to_text(gemm))});
}

void submit_blas(const char* function, cudaStream_t stream) {
    submit(stream, {.kind = WorkKind::kKernel, .name = function});
}

// ---- handles ------------------------------------------------------------------------------------

VIRTUAL_GPU_API cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
    *handle = reinterpret_cast<cublasHandle_t>(new BlasHandle);
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    delete &of(handle);
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    of(handle).stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
    *stream = of(handle).stream;
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle,
                                                       cublasPointerMode_t mode) {
    of(handle).pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle,
                                                       cublasPointerMode_t* mode) {
    *mode = of(handle).pointer_mode;
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    of(handle).math_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
    *mode = of(handle).math_mode;
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, std::size_t) {
    return CUBLAS_STATUS_SUCCESS;  // torch's caching allocator made it
}

// ---- matrix products ----------------------------------------------------------------------------

// A family in its four types: S, D, C, Z.
#define VIRTUAL_GPU_GEMM(letter, T)                                                                \
    VIRTUAL_GPU_API cublasStatus_t cublas##letter##gemm_v2(                                        \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,    \
        const T*, const T*, int, const T*, int, const T*, T*, int) {                               \
        return multiply<T>(handle, {ta, tb, m, n, k});                                             \
    }                                                                                              \
    VIRTUAL_GPU_API cublasStatus_t cublas##letter##gemmStridedBatched(                             \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,    \
        const T*, const T*, int, long long, const T*, int, long long, const T*, T*, int,           \
        long long, int batch) {                                                                    \
        return multiply<T>(handle, {ta, tb, m, n, k, batch});                                      \
    }                                                                                              \
    VIRTUAL_GPU_API cublasStatus_t cublas##letter##gemmBatched(                                    \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,    \
        const T*, const T* const*, int, const T* const*, int, const T*, T* const*, int,            \
        int batch) {                                                                               \
        return multiply<T>(handle, {ta, tb, m, n, k, batch});                                      \
    }                                                                                              \
    VIRTUAL_GPU_API cublasStatus_t cublas##letter##gemv_v2(                                        \
        cublasHandle_t handle, cublasOperation_t transpose, int m, int n, const T*, const T*, int, \
        const T*, int, const T*, T*, int) {                                                        \
        const bool plain = transpose == CUBLAS_OP_N;                                               \
        return multiply<T>(handle, {transpose, CUBLAS_OP_N, plain ? m : n, 1, plain ? n : m});     \
    }                                                                                              \
    VIRTUAL_GPU_API cublasStatus_t cublas##letter##trsm_v2(                                        \
        cublasHandle_t handle, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,              \
        cublasDiagType_t, int, int, const T*, const T*, int, T*, int) {                            \
        return run(handle, "cublas" #letter "trsm");                                               \
    }                                                                                              \
    VIRTUAL_GPU_API cublasStatus_t cublas##letter##trsmBatched(                                    \
        cublasHandle_t handle, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,              \
        cublasDiagType_t, int, int, const T*, const T* const*, int, T* const*, int, int) {         \
        return run(handle, "cublas" #letter "trsmBatched");                                        \
    }

VIRTUAL_GPU_GEMM(S, float)
VIRTUAL_GPU_GEMM(D, double)
VIRTUAL_GPU_GEMM(C, cuComplex)
VIRTUAL_GPU_GEMM(Z, cuDoubleComplex)
#undef VIRTUAL_GPU_GEMM

VIRTUAL_GPU_API cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta,
                                            cublasOperation_t tb, int m, int n, int k, const void*,
                                            const void*, cudaDataType a, int, const void*,
                                            cudaDataType b, int, const void*, void*, cudaDataType c,
                                            int, cublasComputeType_t compute, cublasGemmAlgo_t) {
    return multiply(handle, {ta, tb, m, n, k}, {a, b, c, compute_of(handle, compute)});
}

VIRTUAL_GPU_API cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t ta,
                                             cublasOperation_t tb, int m, int n, int k,
                                             const float*, const void*, cudaDataType a, int,
                                             const void*, cudaDataType b, int, const float*, void*,
                                             cudaDataType c, int) {
    return multiply(handle, {ta, tb, m, n, k}, {a, b, c, compute_of(handle, CUDA_R_32F)});
}

VIRTUAL_GPU_API cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const void*, const void*, cudaDataType a, int, long long, const void*, cudaDataType b, int,
    long long, const void*, void*, cudaDataType c, int, long long, int batch,
    cublasComputeType_t compute, cublasGemmAlgo_t) {
    return multiply(handle, {ta, tb, m, n, k, batch}, {a, b, c, compute_of(handle, compute)});
}

// ---- dot products -------------------------------------------------------------------------------

#define VIRTUAL_GPU_DOT(Name, Type)                                                                \
    VIRTUAL_GPU_API cublasStatus_t cublas##Name##_v2(cublasHandle_t handle, int, const Type*, int, \
                                                     const Type*, int, Type* result) {             \
        return dot(handle, "cublas" #Name, result);                                                \
    }
VIRTUAL_GPU_DOT(Sdot, float)
VIRTUAL_GPU_DOT(Ddot, double)
VIRTUAL_GPU_DOT(Cdotu, cuComplex)
VIRTUAL_GPU_DOT(Cdotc, cuComplex)
VIRTUAL_GPU_DOT(Zdotu, cuDoubleComplex)
VIRTUAL_GPU_DOT(Zdotc, cuDoubleComplex)
#undef VIRTUAL_GPU_DOT
VIRTUAL_GPU_API cublasStatus_t cublasDotEx(cublasHandle_t handle, int, const void*, cudaDataType,
                                           int, const void*, cudaDataType, int, void*, cudaDataType,
                                           cudaDataType) {
    if (of(handle).pointer_mode == CUBLAS_POINTER_MODE_HOST) {
        refuse("cublasDotEx with its result on the host");
    }
    return run(handle, "cublasDotEx");
}

}  // namespace profiler::virtual_gpu
