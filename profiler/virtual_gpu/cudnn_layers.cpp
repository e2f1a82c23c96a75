#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/cudnn_descriptors.h"
#include "profiler/virtual_gpu/streams.h"

#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// cuDNN's older interface, as far as torch uses it for batch norm and for recurrent layers.
namespace profiler::virtual_gpu {
namespace {

struct TensorShape {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    std::vector<int> sizes;
    std::vector<int> strides;
};
TensorShape& of(cudnnTensorDescriptor_t handle) { return *reinterpret_cast<TensorShape*>(handle); }

struct Sequences {
    int64_t num_steps = 0;  // of all sequences
    int64_t batch_size = 0;
};
const Sequences& of(cudnnRNNDataDescriptor_t handle) {
    return *reinterpret_cast<Sequences*>(handle);
}

/// A stack of recurrent layers. Each direction of a layer is a "pseudo layer" with `num_gates`
/// matrices for its input and as many for its hidden state, and with a projection one more.
struct Recurrent {
    cudnnRNNMode_t cell = CUDNN_LSTM;
    int64_t input_size = 0;
    int64_t hidden_size = 0;
    int64_t projected_size = 0;  // of what a layer passes on
    int64_t num_pseudo_layers = 0;
    int64_t directions = 1;
    bool has_bias = true;
    int64_t word_bytes = 4;
    float dropout_p = 0;  // between layers

    int64_t num_gates() const {
        switch (cell) {
            case CUDNN_LSTM:
                return 4;
            case CUDNN_GRU:
                return 3;
            default:
                return 1;
        }
    }
    /// Rows of B S H that a layer keeps for backward.
    int64_t num_kept() const {
        switch (cell) {
            case CUDNN_LSTM:
                return 5;
            case CUDNN_GRU:
                return 6;
            default:
                return 1;
        }
    }
    bool has_projection() const { return projected_size != hidden_size; }
    int64_t num_matrices() const { return 2 * num_gates() + (has_projection() ? 1 : 0); }

    /// [rows, columns] of a matrix.
    std::array<int64_t, 2> matrix(int64_t pseudo_layer, int64_t index) const {
        if (index == 2 * num_gates()) return {projected_size, hidden_size};
        if (index >= num_gates()) return {hidden_size, projected_size};
        const bool is_first = pseudo_layer < directions;
        return {hidden_size, is_first ? input_size : directions * projected_size};
    }
    int64_t matrix_words(int64_t pseudo_layer, int64_t index) const {
        const auto [rows, columns] = matrix(pseudo_layer, index);
        return rows * columns;
    }
    /// The matrices of all pseudo layers come first, then their biases.
    int64_t words_before_matrix(int64_t pseudo_layer, int64_t index) const {
        int64_t words = 0;
        for (int64_t layer = 0; layer <= pseudo_layer && layer < num_pseudo_layers; ++layer) {
            const int64_t end = layer == pseudo_layer ? index : num_matrices();
            for (int64_t i = 0; i < end; ++i) words += matrix_words(layer, i);
        }
        return words;
    }
    int64_t words_before_bias(int64_t pseudo_layer, int64_t index) const {
        return words_before_matrix(num_pseudo_layers, 0) +
               (pseudo_layer * 2 * num_gates() + index) * hidden_size;
    }
    std::size_t weight_bytes() const {
        const int64_t words = has_bias ? words_before_bias(num_pseudo_layers, 0)
                                       : words_before_matrix(num_pseudo_layers, 0);
        return static_cast<std::size_t>(words * word_bytes);
    }

    /// Each layer keeps its gates and states, and passes its output on: num_steps is B S.
    int64_t reserve_bytes(int64_t num_steps) const {
        const int64_t layers = num_pseudo_layers / directions;
        const int64_t words = num_steps * hidden_size * directions;
        const int64_t masks = dropout_p > 0 ? (layers - 1) * ((words / 8 + 31) / 32 * 32) : 0;
        const int64_t rows = (num_kept() + 1) * layers - 1;
        return rows * words * word_bytes + masks + 256;
    }
    int64_t workspace_bytes(int64_t num_steps) const {
        const int64_t rows = num_steps * (input_size + 5 * hidden_size) * directions;
        return (rows + 16 * hidden_size * hidden_size * num_pseudo_layers) * word_bytes;
    }
};
struct Dropout {
    float p = 0;
};
Dropout& of(cudnnDropoutDescriptor_t handle) { return *reinterpret_cast<Dropout*>(handle); }

Recurrent& of(cudnnRNNDescriptor_t handle) { return *reinterpret_cast<Recurrent*>(handle); }

void describe(cudnnTensorDescriptor_t handle, cudnnDataType_t type, std::array<int64_t, 2> matrix) {
    const int rows = static_cast<int>(matrix[0]);
    const int columns = static_cast<int>(matrix[1]);
    of(handle) = {type, {1, rows, columns}, {rows * columns, columns, 1}};
}

cudnnStatus_t launch(cudnnHandle_t handle, const char* name) {
    cudaStream_t stream = nullptr;
    cudnnGetStream(handle, &stream);
    submit(stream, {.kind = WorkKind::kKernel, .name = name});
    return CUDNN_STATUS_SUCCESS;
}

template <typename T, typename Handle>
cudnnStatus_t make(Handle* handle) {
    *handle = reinterpret_cast<Handle>(new T);
    return CUDNN_STATUS_SUCCESS;
}
template <typename T, typename Handle>
cudnnStatus_t destroy(Handle handle) {
    delete reinterpret_cast<T*>(handle);
    return CUDNN_STATUS_SUCCESS;
}

struct Nothing {};  // a descriptor that nothing is read from

}  // namespace

// ---- descriptors -----------------------------------------------------------------------------

VIRTUAL_GPU_API cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
    return make<TensorShape>(tensor);
}
VIRTUAL_GPU_API cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
    return destroy<TensorShape>(tensor);
}
VIRTUAL_GPU_API cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor,
                                                         cudnnDataType_t type, int num_dims,
                                                         const int sizes[], const int strides[]) {
    of(tensor) = {type, {sizes, sizes + num_dims}, {strides, strides + num_dims}};
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor,
                                                         int wanted, cudnnDataType_t* type,
                                                         int* num_dims, int sizes[],
                                                         int strides[]) {
    const TensorShape& shape = of(tensor);
    *type = shape.type;
    *num_dims = static_cast<int>(shape.sizes.size());
    const auto count = static_cast<std::ptrdiff_t>(std::min(wanted, *num_dims));
    std::copy(shape.sizes.begin(), shape.sizes.begin() + count, sizes);
    std::copy(shape.strides.begin(), shape.strides.begin() + count, strides);
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t
cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* activation) {
    return make<Nothing>(activation);
}
VIRTUAL_GPU_API cudnnStatus_t
cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activation) {
    return destroy<Nothing>(activation);
}
VIRTUAL_GPU_API cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t,
                                                           cudnnActivationMode_t,
                                                           cudnnNanPropagation_t, double) {
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* dropout) {
    return make<Dropout>(dropout);
}
VIRTUAL_GPU_API cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropout) {
    return destroy<Dropout>(dropout);
}
VIRTUAL_GPU_API cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout,
                                                        cudnnHandle_t handle, float p, void* states,
                                                        std::size_t, unsigned long long) {
    of(dropout).p = p;
    return states == nullptr ? CUDNN_STATUS_SUCCESS : launch(handle, "cuDNN's states of a dropout");
}
VIRTUAL_GPU_API cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropout,
                                                            cudnnHandle_t, float p, void*,
                                                            std::size_t, unsigned long long) {
    of(dropout).p = p;
    return CUDNN_STATUS_SUCCESS;
}
/// A state of curand (48 B) for each of 1024 threads of an H200's multiprocessors.
VIRTUAL_GPU_API cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t, std::size_t* size_bytes) {
    constexpr std::size_t kStateBytes = 48, kThreads = 1024, kMultiprocessors = 132;
    *size_bytes = kStateBytes * kThreads * kMultiprocessors;
    return CUDNN_STATUS_SUCCESS;
}

// ---- batch norm ------------------------------------------------------------------------------

VIRTUAL_GPU_API cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnActivationDescriptor_t, std::size_t* size_bytes) {
    *size_bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnActivationDescriptor_t,
    std::size_t* size_bytes) {
    *size_bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}
/// The mask of a fused activation; torch fuses none.
VIRTUAL_GPU_API cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnActivationDescriptor_t,
    const cudnnTensorDescriptor_t, std::size_t* size_bytes) {
    *size_bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void*, const void*,
    const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t, const void*,
    const cudnnTensorDescriptor_t, void*, const cudnnTensorDescriptor_t, const void*, const void*,
    double, void*, void*, double, void*, void*, cudnnActivationDescriptor_t, void*, std::size_t,
    void*, std::size_t) {
    return launch(handle, "cuDNN's batch norm");
}
VIRTUAL_GPU_API cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t, const void*, const void*,
    const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t, void*,
    const cudnnTensorDescriptor_t, const void*, const void*, const void*, const void*, double) {
    return launch(handle, "cuDNN's batch norm, inference");
}
VIRTUAL_GPU_API cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void*, const void*,
    const void*, const void*, const cudnnTensorDescriptor_t, const void*,
    const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t, const void*,
    const cudnnTensorDescriptor_t, void*, const cudnnTensorDescriptor_t, void*,
    const cudnnTensorDescriptor_t, const void*, const void*, void*, void*, double, const void*,
    const void*, cudnnActivationDescriptor_t, void*, std::size_t, void*, std::size_t) {
    return launch(handle, "cuDNN's batch norm, backward");
}

// ---- recurrent layers ------------------------------------------------------------------------

VIRTUAL_GPU_API cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* rnn) {
    return make<Recurrent>(rnn);
}
VIRTUAL_GPU_API cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t rnn) {
    return destroy<Recurrent>(rnn);
}
VIRTUAL_GPU_API cudnnStatus_t cudnnSetRNNDescriptor_v8(
    cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t, cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias,
    cudnnDirectionMode_t direction, cudnnRNNInputMode_t, cudnnDataType_t type, cudnnDataType_t,
    cudnnMathType_t, int32_t input_size, int32_t hidden_size, int32_t projected_size,
    int32_t num_layers, cudnnDropoutDescriptor_t dropout, uint32_t) {
    const int64_t directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1;
    of(rnn) = {.cell = cell,
               .input_size = input_size,
               .hidden_size = hidden_size,
               .projected_size = projected_size > 0 ? projected_size : hidden_size,
               .num_pseudo_layers = directions * num_layers,
               .directions = directions,
               .has_bias = bias != CUDNN_RNN_NO_BIAS,
               .word_bytes = size_of(type),
               .dropout_p = dropout == nullptr ? 0 : of(dropout).p};
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, cudnnRNNDescriptor_t rnn,
                                                         std::size_t* size_bytes) {
    *size_bytes = of(rnn).weight_bytes();
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t
cudnnGetRNNWeightParams(cudnnHandle_t, cudnnRNNDescriptor_t rnn, int32_t pseudo_layer, std::size_t,
                        const void* weights, int32_t index, cudnnTensorDescriptor_t matrix,
                        void** matrix_address, cudnnTensorDescriptor_t bias, void** bias_address) {
    const Recurrent& layers = of(rnn);
    const cudnnDataType_t type = layers.word_bytes == 8   ? CUDNN_DATA_DOUBLE
                                 : layers.word_bytes == 2 ? CUDNN_DATA_HALF
                                                          : CUDNN_DATA_FLOAT;
    const auto address = [&](int64_t words) {
        auto* const first = static_cast<std::byte*>(const_cast<void*>(weights));
        return first + words * layers.word_bytes;
    };
    if (matrix_address != nullptr) {
        describe(matrix, type, layers.matrix(pseudo_layer, index));
        *matrix_address = address(layers.words_before_matrix(pseudo_layer, index));
    }
    if (bias_address == nullptr) return CUDNN_STATUS_SUCCESS;
    const bool has_bias = layers.has_bias && index < 2 * layers.num_gates();
    if (has_bias) describe(bias, type, {layers.hidden_size, 1});
    *bias_address = has_bias ? address(layers.words_before_bias(pseudo_layer, index)) : nullptr;
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* data) {
    return make<Sequences>(data);
}
VIRTUAL_GPU_API cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t data) {
    return destroy<Sequences>(data);
}
VIRTUAL_GPU_API cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data,
                                                        cudnnDataType_t, cudnnRNNDataLayout_t,
                                                        int max_length, int batch_size, int,
                                                        const int[], void*) {
    *reinterpret_cast<Sequences*>(data) = {.num_steps = int64_t{max_length} * batch_size,
                                           .batch_size = batch_size};
    return CUDNN_STATUS_SUCCESS;
}
/// The reserve space, which training keeps for backward, is as recorded on an H200 (cuDNN 9.19).
/// The workspace depends on the kernels that cuDNN chooses; this is within 60 % of most recordings.
VIRTUAL_GPU_API cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t rnn,
                                                        cudnnForwardMode_t mode,
                                                        cudnnRNNDataDescriptor_t data,
                                                        std::size_t* workspace_bytes,
                                                        std::size_t* reserve_bytes) {
    const Recurrent& layers = of(rnn);
    const int64_t steps = of(data).num_steps;
    *workspace_bytes = static_cast<std::size_t>(layers.workspace_bytes(steps));
    if (reserve_bytes == nullptr) return CUDNN_STATUS_SUCCESS;
    const bool trains = mode == CUDNN_FWD_MODE_TRAINING;
    *reserve_bytes = trains ? static_cast<std::size_t>(layers.reserve_bytes(steps)) : 0;
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t
cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t, cudnnForwardMode_t, const int32_t[],
                cudnnRNNDataDescriptor_t, const void*, cudnnRNNDataDescriptor_t, void*,
                cudnnTensorDescriptor_t, const void*, void*, cudnnTensorDescriptor_t, const void*,
                void*, std::size_t, const void*, std::size_t, void*, std::size_t, void*) {
    return launch(handle, "cuDNN's recurrent layers");
}
VIRTUAL_GPU_API cudnnStatus_t cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t, const int32_t[], cudnnRNNDataDescriptor_t,
    const void*, const void*, cudnnRNNDataDescriptor_t, void*, cudnnTensorDescriptor_t, const void*,
    const void*, void*, cudnnTensorDescriptor_t, const void*, const void*, void*, std::size_t,
    const void*, std::size_t, void*, std::size_t, void*) {
    return launch(handle, "cuDNN's recurrent layers, backward of the data");
}
VIRTUAL_GPU_API cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t,
                                                         cudnnWgradMode_t, const int32_t[],
                                                         cudnnRNNDataDescriptor_t, const void*,
                                                         cudnnTensorDescriptor_t, const void*,
                                                         cudnnRNNDataDescriptor_t, const void*,
                                                         std::size_t, void*, std::size_t, void*,
                                                         std::size_t, void*) {
    return launch(handle, "cuDNN's recurrent layers, backward of the weights");
}

}  // namespace profiler::virtual_gpu
