#include "profiler/virtual_gpu/cudnn_descriptors.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace profiler::virtual_gpu {
namespace {

constexpr int64_t kAttentionBytes = 256;
constexpr int64_t kLayoutBytes = 16;  // beside the copies of a convolution's tensors

std::span<const int64_t> dims_of(const Descriptor* tensor) {
    return tensor == nullptr ? std::span<const int64_t>()
                             : tensor->values<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
}

int64_t bytes_of(const Descriptor* tensor) {
    if (tensor == nullptr) return 0;
    const auto dims = dims_of(tensor);
    const auto type = tensor->values<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    const int64_t count =
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    return type.empty() ? 0 : count * size_of(type.front());
}

// ---- attention ----------------------------------------------------------------------------------

/// torch asks cuDNN for no other products.
bool is_part_of_attention(cudnnBackendDescriptorType_t operation) {
    return operation == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR ||
           operation == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR ||
           operation == CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR;
}

/// Backward of attention whose queries share heads of keys and values computes dK and dV of each
/// query's head, [B, A, S, D], and then sums those of one head of keys.
int64_t unsummed_heads(const Descriptor& operation) {
    if (operation.type != CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) return 0;
    const Descriptor* const x = operation.part(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    const auto from = dims_of(x);
    const auto to = dims_of(operation.part(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
    const bool sums_heads = from.size() == 4 && to.size() == 4 && to[1] < from[1];
    return sums_heads ? bytes_of(x) : 0;
}

// ---- convolutions ------------------------------------------------------------------------------

/// The tensors of a convolution, in whichever direction.
struct Convolution {
    const Descriptor* x = nullptr;  // [B, C, ...]
    const Descriptor* w = nullptr;  // [K, C / groups, ...]
    const Descriptor* y = nullptr;  // [B, K, ...]
    const Descriptor* shape = nullptr;
};

Convolution convolution_of(const Descriptor& operation) {
    switch (operation.type) {
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
            return {operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
                    operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W),
                    operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y),
                    operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC)};
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
            return {operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX),
                    operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W),
                    operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY),
                    operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC)};
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
            return {operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X),
                    operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW),
                    operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY),
                    operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC)};
        default:
            return {};
    }
}

/// Kernels want the channels last: where they are not, all three tensors are copied. Groups take
/// other kernels, without a copy, and so do windows that do not overlap, except for the gradient of
/// their weights. Windows of one element are plain products; their weights' gradient is that of
/// each image, and then its sum.
int64_t convolution_bytes(const Descriptor& operation) {
    const auto [x, w, y, shape] = convolution_of(operation);
    if (x == nullptr || w == nullptr || y == nullptr || shape == nullptr) return 0;
    const auto strides = x->values<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    const auto steps = shape->values<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    const auto sizes = dims_of(x), window = dims_of(w);
    if (strides.size() < 3 || sizes.size() < 3 || window.size() < 3 || steps.empty()) return 0;
    const bool channels_last = strides[1] == 1;
    const bool has_groups = sizes[1] != window[1];
    if (channels_last || has_groups) return 0;
    constexpr int64_t kVector = 4;  // elements that a product's kernel reads at once
    const bool is_product = window[2] == 1 && steps[0] == 1 && strides[1] % kVector == 0;
    const bool is_weights_gradient =
        operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
    if (is_product) return is_weights_gradient ? sizes[0] * bytes_of(w) : 0;
    if (window[2] > 1 && window[2] == steps[0] && !is_weights_gradient) return 0;
    const int64_t weights = window[2] > 1 ? bytes_of(w) : 0;
    return bytes_of(x) + weights + bytes_of(y) + kLayoutBytes;
}

}  // namespace

int64_t size_of(cudnnDataType_t type) {
    switch (type) {
        case CUDNN_DATA_DOUBLE:
        case CUDNN_DATA_INT64:
            return 8;
        case CUDNN_DATA_FLOAT:
        case CUDNN_DATA_INT32:
            return 4;
        case CUDNN_DATA_HALF:
        case CUDNN_DATA_BFLOAT16:
            return 2;
        default:
            return 1;
    }
}

int64_t workspace_of(const Descriptor& graph) {
    const auto& operations = graph.parts_of(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    const bool is_attention =
        std::any_of(operations.begin(), operations.end(),
                    [](const auto& operation) { return is_part_of_attention(operation->type); });
    int64_t bytes = is_attention ? kAttentionBytes : 0;
    for (const auto& operation : operations) {
        bytes += is_attention ? unsummed_heads(*operation) : convolution_bytes(*operation);
    }
    return bytes;
}

}  // namespace profiler::virtual_gpu
