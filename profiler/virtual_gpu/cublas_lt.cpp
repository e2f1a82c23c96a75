#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/blas_call.h"

#include <cublasLt.h>
#include <cstring>

/// cuBLASLt: products with an epilogue. It takes the caller's workspace, and asks for none.
namespace profiler::virtual_gpu {
namespace {

struct MatmulDescription {
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    cublasOperation_t transpose_a = CUBLAS_OP_N;
    cublasOperation_t transpose_b = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
};

struct MatrixLayout {
    cudaDataType_t type = CUDA_R_32F;
    uint64_t rows = 0;
    uint64_t columns = 0;
    int32_t batch = 1;
};

MatmulDescription& of(cublasLtMatmulDesc_t handle) {
    return *reinterpret_cast<MatmulDescription*>(handle);
}
MatrixLayout& of(cublasLtMatrixLayout_t handle) { return *reinterpret_cast<MatrixLayout*>(handle); }

template <typename T>
cublasStatus_t take(T& field, const void* value, std::size_t size) {
    if (size != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&field, value, sizeof field);
    return CUBLAS_STATUS_SUCCESS;
}

constexpr std::pair<cublasLtEpilogue_t, std::string_view> kEpilogueNames[]{
    {CUBLASLT_EPILOGUE_DEFAULT, ""},
    {CUBLASLT_EPILOGUE_RELU, "relu"},
    {CUBLASLT_EPILOGUE_RELU_AUX, "relu_aux"},
    {CUBLASLT_EPILOGUE_BIAS, "bias"},
    {CUBLASLT_EPILOGUE_RELU_BIAS, "relu_bias"},
    {CUBLASLT_EPILOGUE_RELU_AUX_BIAS, "relu_aux_bias"},
    {CUBLASLT_EPILOGUE_GELU, "gelu"},
    {CUBLASLT_EPILOGUE_GELU_AUX, "gelu_aux"},
    {CUBLASLT_EPILOGUE_GELU_BIAS, "gelu_bias"},
    {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, "gelu_aux_bias"},
    {CUBLASLT_EPILOGUE_DGELU_BGRAD, "dgelu_bgrad"},
    {CUBLASLT_EPILOGUE_DRELU_BGRAD, "drelu_bgrad"},
    {CUBLASLT_EPILOGUE_BGRADA, "bgrad_a"},
    {CUBLASLT_EPILOGUE_BGRADB, "bgrad_b"},
};

std::string_view name_of(cublasLtEpilogue_t epilogue) {
    const auto* const name = find_value(kEpilogueNames, epilogue);
    if (name == nullptr) refuse("a cuBLASLt product with this epilogue");
    return *name;
}

}  // namespace

VIRTUAL_GPU_API std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

VIRTUAL_GPU_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                                        cublasComputeType_t compute,
                                                        cudaDataType_t) {
    *description =
        reinterpret_cast<cublasLtMatmulDesc_t>(new MatmulDescription{.compute = compute});
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
    delete &of(description);
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                                              cublasLtMatmulDescAttributes_t name,
                                                              const void* value, std::size_t size) {
    MatmulDescription& description = of(handle);
    switch (name) {
        case CUBLASLT_MATMUL_DESC_TRANSA:
            return take(description.transpose_a, value, size);
        case CUBLASLT_MATMUL_DESC_TRANSB:
            return take(description.transpose_b, value, size);
        case CUBLASLT_MATMUL_DESC_EPILOGUE:
            return take(description.epilogue, value, size);
        default:
            return CUBLAS_STATUS_SUCCESS;  // pointers and scales, which change no memory
    }
}

VIRTUAL_GPU_API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout,
                                                          cudaDataType type, uint64_t rows,
                                                          uint64_t columns, int64_t) {
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
        new MatrixLayout{.type = type, .rows = rows, .columns = columns});
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete &of(layout);
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, const void* value,
    std::size_t size) {
    if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return take(of(layout).batch, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

VIRTUAL_GPU_API cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    static int any = 0;  // nothing is remembered of it
    *preference = reinterpret_cast<cublasLtMatmulPreference_t>(&any);
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
    return CUBLAS_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*, std::size_t) {
    return CUBLAS_STATUS_SUCCESS;
}

VIRTUAL_GPU_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int wanted,
    cublasLtMatmulHeuristicResult_t* results, int* count) {
    if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    results[0] = {};
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].wavesCount = 1;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

VIRTUAL_GPU_API cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              const void*, const void*, cublasLtMatrixLayout_t a,
                                              const void*, cublasLtMatrixLayout_t b, const void*,
                                              const void*, cublasLtMatrixLayout_t, void*,
                                              cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t*,
                                              void*, std::size_t, cudaStream_t stream) {
    const MatmulDescription& matmul = of(description);
    const MatrixLayout& left = of(a);
    const bool plain = matmul.transpose_a == CUBLAS_OP_N;
    submit_gemm({.a = left.type,
                 .b = of(b).type,
                 .d = of(d).type,
                 .transpose_a = matmul.transpose_a,
                 .transpose_b = matmul.transpose_b,
                 .m = static_cast<int64_t>(of(d).rows),
                 .n = static_cast<int64_t>(of(d).columns),
                 .k = static_cast<int64_t>(plain ? left.columns : left.rows),
                 .batch = of(d).batch,
                 .compute = profiler::virtual_gpu::name_of(matmul.compute),
                 .epilogue = name_of(matmul.epilogue)},
                stream);
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace profiler::virtual_gpu
