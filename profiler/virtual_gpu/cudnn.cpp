#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/cudnn_descriptors.h"
#include "profiler/virtual_gpu/streams.h"
#include "profiler/virtual_gpu/torch_install.h"

#include <cudnn.h>

#include <algorithm>
#include <cstring>

/// cuDNN's backend interface. Every heuristic answers with one engine, whose configuration holds
/// the workspace of its plan.
namespace profiler::virtual_gpu {
namespace {

Descriptor& of(cudnnBackendDescriptor_t handle) { return *static_cast<Descriptor*>(handle); }

struct DnnHandle {
    cudaStream_t stream = nullptr;
};

std::size_t element_bytes(cudnnBackendAttributeType_t type) {
    switch (type) {
        case CUDNN_TYPE_HANDLE:
        case CUDNN_TYPE_VOID_PTR:
        case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        case CUDNN_TYPE_INT64:
        case CUDNN_TYPE_DOUBLE:
            return 8;
        case CUDNN_TYPE_BOOLEAN:
        case CUDNN_TYPE_CHAR:
            return 1;
        case CUDNN_TYPE_FRACTION:
            return sizeof(cudnnFraction_t);
        default:
            return 4;
    }
}

/// One integer, of 4 or 8 bytes.
cudnnStatus_t answer(int64_t value, cudnnBackendAttributeType_t type, int64_t wanted,
                     int64_t* count, void* values) {
    if (count != nullptr) *count = 1;
    if (wanted > 0 && values != nullptr) std::memcpy(values, &value, element_bytes(type));
    return CUDNN_STATUS_SUCCESS;
}

/// The results are descriptors that the caller made.
void answer_with_engine(const Descriptor& heuristic, int64_t wanted, void* results) {
    const Descriptor* const graph = heuristic.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    if (graph == nullptr || wanted < 1 || results == nullptr) return;
    (*static_cast<Descriptor**>(results))->workspace_bytes = workspace_of(*graph);
}

int64_t workspace_of_plan(const Descriptor& plan) {
    const Descriptor* const engine = plan.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    return engine == nullptr ? 0 : engine->workspace_bytes;
}

}  // namespace

VIRTUAL_GPU_API std::size_t cudnnGetVersion() {
    return static_cast<std::size_t>(torch_install().cudnn);
}
VIRTUAL_GPU_API std::size_t cudnnGetCudartVersion() {
    return static_cast<std::size_t>(torch_install().cuda);
}
VIRTUAL_GPU_API const char* cudnnGetErrorString(cudnnStatus_t status) {
    return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS"
                                          : "an error of the simulated GPU's cuDNN";
}
VIRTUAL_GPU_API void cudnnGetLastErrorString(char* text, std::size_t size) {
    if (size > 0) text[0] = '\0';
}
VIRTUAL_GPU_API cudnnStatus_t cudnnGetProperty(libraryPropertyType part, int* value) {
    switch (part) {
        case MAJOR_VERSION:
            *value = torch_install().cudnn / 10'000;
            return CUDNN_STATUS_SUCCESS;
        case MINOR_VERSION:
            *value = torch_install().cudnn / 100 % 100;
            return CUDNN_STATUS_SUCCESS;
        case PATCH_LEVEL:
            *value = torch_install().cudnn % 100;
            return CUDNN_STATUS_SUCCESS;
        default:
            return CUDNN_STATUS_BAD_PARAM;
    }
}

VIRTUAL_GPU_API cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
    *handle = reinterpret_cast<cudnnHandle_t>(new DnnHandle);
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    delete reinterpret_cast<DnnHandle*>(handle);
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    reinterpret_cast<DnnHandle*>(handle)->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
    *stream = reinterpret_cast<DnnHandle*>(handle)->stream;
    return CUDNN_STATUS_SUCCESS;
}

VIRTUAL_GPU_API cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                           cudnnBackendDescriptor_t* descriptor) {
    *descriptor = new Descriptor{.type = type};
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    delete &of(descriptor);
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) {
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                       cudnnBackendAttributeName_t name,
                                                       cudnnBackendAttributeType_t type,
                                                       int64_t count, const void* values) {
    if (values == nullptr) return CUDNN_STATUS_SUCCESS;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        auto* const named = static_cast<Descriptor* const*>(values);
        of(descriptor).keep_parts(name, {named, static_cast<std::size_t>(count)});
    }
    const auto* const bytes = static_cast<const std::byte*>(values);
    of(descriptor)
        .attributes[name]
        .assign(bytes, bytes + static_cast<std::size_t>(count) * element_bytes(type));
    return CUDNN_STATUS_SUCCESS;
}
VIRTUAL_GPU_API cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                                       cudnnBackendAttributeName_t name,
                                                       cudnnBackendAttributeType_t type,
                                                       int64_t wanted, int64_t* count,
                                                       void* values) {
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
        answer_with_engine(of(descriptor), wanted, values);
        return answer(0, type, 0, count, nullptr);
    }
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE) return answer(0, type, 0, count, nullptr);
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        return answer(workspace_of_plan(of(descriptor)), type, wanted, count, values);
    }
    if (name == CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE) {
        return answer(of(descriptor).workspace_bytes, type, wanted, count, values);
    }
    if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX || name == CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED) {
        return answer(0, type, wanted, count, values);
    }
    const auto& attributes = of(descriptor).attributes;
    const auto found = attributes.find(name);
    if (found == attributes.end()) {
        if (count != nullptr) *count = 0;
        return CUDNN_STATUS_SUCCESS;
    }
    const std::size_t size = element_bytes(type);
    const auto has = static_cast<int64_t>(found->second.size() / size);
    if (count != nullptr) *count = has;
    if (values != nullptr) {
        std::memcpy(values, found->second.data(),
                    static_cast<std::size_t>(std::min(has, wanted)) * size);
    }
    return CUDNN_STATUS_SUCCESS;
}

/// cuDNN chooses its kernels itself: one stands for all of a plan.
VIRTUAL_GPU_API cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t,
                                                  cudnnBackendDescriptor_t) {
    submit(reinterpret_cast<DnnHandle*>(handle)->stream,
           {.kind = WorkKind::kKernel, .name = "a plan of cuDNN"});
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace profiler::virtual_gpu
