#include "profiler/virtual_gpu/api.h"
#include "profiler/virtual_gpu/card.h"
#include "profiler/virtual_gpu/device_memory.h"
#include "profiler/virtual_gpu/streams.h"
#include "profiler/virtual_gpu/torch_install.h"

#include <nccl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <utility>

/// NCCL for one rank of a world whose other ranks are not here.
///
/// A communicator is a rank and a number of ranks. A collective is a kernel on its stream, as NCCL
/// launches it. No byte goes to another rank: each absent rank counts as holding the same data. So
/// a gathered tensor repeats the own part, and a reduced tensor is the own values.
namespace profiler::virtual_gpu {
namespace {

/// Gathered tensors up to this size repeat the own part: numbers and objects that the host reads.
constexpr std::size_t kMaxRepeatedBytes = std::size_t{64} << 10;
constexpr unsigned kThreadsOfKernel = 512;  // NCCL_MAX_NTHREADS with the protocol Simple: 640
constexpr unsigned kMaxChannels = 32;

struct Communicator {
    int rank = 0;
    int num_ranks = 1;
    int device = 0;
};

Communicator& communicator_of(ncclComm_t handle) {
    return *reinterpret_cast<Communicator*>(handle);
}

std::size_t bytes_of(ncclDataType_t type) {
    switch (type) {
        case ncclInt8:
        case ncclUint8:
        case ncclFloat8e4m3:
        case ncclFloat8e5m2:
            return 1;
        case ncclFloat16:
        case ncclBfloat16:
            return 2;
        case ncclInt32:
        case ncclUint32:
        case ncclFloat32:
            return 4;
        default:
            return 8;
    }
}

/// As NCCL's kernels are called: "f32".
const char* name_of(ncclDataType_t type) {
    constexpr const char* kNames[ncclNumTypes] = {"i8",  "u8",  "i32", "u32",  "i64",    "u64",
                                                  "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};
    return static_cast<unsigned>(type) < std::size(kNames) ? kNames[type] : "u8";
}

const char* name_of(ncclRedOp_t reduction) {
    switch (reduction) {
        case ncclSum:
            return "Sum";
        case ncclProd:
            return "Prod";
        case ncclMax:
        case ncclMin:
            return "MinMax";
        default:
            return "PreMulSum";  // an average of floating point numbers, too
    }
}

// ---- groups -------------------------------------------------------------------------------------

/// The calls between ncclGroupStart and ncclGroupEnd: one kernel for each communicator and stream.
struct Group {
    int depth = 0;
    std::set<std::pair<ncclComm_t, cudaStream_t>> launched;
};
thread_local Group group;

/// Whether a kernel starts with this call: inside of a group, only the first one starts it.
bool starts_kernel(ncclComm_t communicator, cudaStream_t stream) {
    return group.depth == 0 || group.launched.emplace(communicator, stream).second;
}

/// What a collective launches. The sizes that NCCL tunes by topology are not known here.
ncclResult_t launch(ncclComm_t handle, cudaStream_t stream, const std::string& function,
                    std::size_t size_bytes) {
    if (handle == nullptr) return ncclInvalidArgument;
    if (size_bytes == 0 || !starts_kernel(handle, stream)) return ncclSuccess;
    submit(stream, {.kind = WorkKind::kKernel,
                    .name = intern("ncclDevKernel_" + function),
                    .grid = {.x = kMaxChannels},
                    .block = {.x = kThreadsOfKernel}});
    return ncclSuccess;
}

// ---- values -------------------------------------------------------------------------------------

/// Memory of the host is left alone: NCCL's buffers are the device's.
void copy_values(const void* source, void* target, std::size_t size, cudaStream_t stream) {
    const int device = Memories::instance().device_of(target);
    if (source == target || device < 0 || device != Memories::instance().device_of(source) ||
        stream_of(stream).capture) {
        return;
    }
    DeviceMemory& memory = Memories::instance()[device];
    const auto lock = memory.lock();
    memory.contents().copy(memory.contents(), number_of(source), number_of(target), size);
}

void forget_values(void* target, std::size_t size, cudaStream_t stream) {
    const int device = Memories::instance().device_of(target);
    if (device < 0 || stream_of(stream).capture) return;
    DeviceMemory& memory = Memories::instance()[device];
    const auto lock = memory.lock();
    memory.contents().forget(number_of(target), size);
}

/// `num_parts` parts of `part_bytes` each, all equal to the own one.
void repeat_values(const void* own, void* target, std::size_t part_bytes, int num_parts,
                   cudaStream_t stream) {
    const std::size_t size = part_bytes * static_cast<std::size_t>(num_parts);
    if (size > kMaxRepeatedBytes) return forget_values(target, size, stream);
    for (int part = 0; part < num_parts; ++part) {
        copy_values(own, static_cast<char*>(target) + static_cast<std::size_t>(part) * part_bytes,
                    part_bytes, stream);
    }
}

// ---- communicators ------------------------------------------------------------------------------

/// What NCCL has taken beside torch's allocator, by device.
std::array<std::atomic<int64_t>, kMaxDevices> own_bytes;

/// With the first communicator of a device. A real card's CUPTI tells of this memory; a recorder
/// that comes later asks temposcope_virtual_nccl_bytes.
void take_own_memory(int device) {
    const auto index = static_cast<std::size_t>(device);
    const int64_t bytes = machine().cards[index].nccl_bytes;
    int64_t none = 0;
    if (bytes == 0 || !own_bytes[index].compare_exchange_strong(none, bytes)) return;
    const auto address = Memories::instance()[device].allocate(static_cast<uint64_t>(bytes));
    if (!address) own_bytes[index] = 0;
}

ncclResult_t make(ncclComm_t* handle, int rank, int num_ranks, int device) {
    if (rank < 0 || rank >= num_ranks) return ncclInvalidArgument;
    take_own_memory(device);
    *handle = reinterpret_cast<ncclComm_t>(
        new Communicator{.rank = rank, .num_ranks = num_ranks, .device = device});
    return ncclSuccess;
}

ncclResult_t end(ncclComm_t handle) {
    delete reinterpret_cast<Communicator*>(handle);
    return ncclSuccess;
}

}  // namespace

VIRTUAL_GPU_API int64_t temposcope_virtual_nccl_bytes(int device) {
    return own_bytes[static_cast<std::size_t>(device)];
}

VIRTUAL_GPU_API ncclResult_t ncclGetVersion(int* version) {
    *version = torch_install().nccl;
    return ncclSuccess;
}

VIRTUAL_GPU_API const char* ncclGetErrorString(ncclResult_t result) {
    return result == ncclSuccess ? "no error" : "invalid argument";
}

VIRTUAL_GPU_API const char* ncclGetLastError(ncclComm_t) { return ""; }

VIRTUAL_GPU_API ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    static std::atomic<int> last = 0;
    *id = {};
    std::snprintf(id->internal, sizeof id->internal, "virtual %d %d", getpid(), ++last);
    return ncclSuccess;
}

VIRTUAL_GPU_API ncclResult_t ncclCommInitRank(ncclComm_t* handle, int num_ranks, ncclUniqueId,
                                              int rank) {
    return make(handle, rank, num_ranks, current_device());
}

VIRTUAL_GPU_API ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int num_ranks, ncclUniqueId,
                                                    int rank, ncclConfig_t*) {
    return make(handle, rank, num_ranks, current_device());
}

VIRTUAL_GPU_API ncclResult_t ncclCommInitRankScalable(ncclComm_t* handle, int num_ranks, int rank,
                                                      int, ncclUniqueId*, ncclConfig_t*) {
    return make(handle, rank, num_ranks, current_device());
}

VIRTUAL_GPU_API ncclResult_t ncclCommInitAll(ncclComm_t* handles, int num_devices,
                                             const int* devices) {
    for (int rank = 0; rank < num_devices; ++rank) {
        const int device = devices != nullptr ? devices[rank] : rank;
        if (const ncclResult_t result = make(&handles[rank], rank, num_devices, device);
            result != ncclSuccess) {
            return result;
        }
    }
    return ncclSuccess;
}

VIRTUAL_GPU_API ncclResult_t ncclCommShrink(ncclComm_t parent, int* excluded, int num_excluded,
                                            ncclComm_t* handle, ncclConfig_t*, int) {
    const Communicator& from = communicator_of(parent);
    int rank = from.rank;
    for (int i = 0; i < num_excluded; ++i) rank -= excluded[i] < from.rank ? 1 : 0;
    return make(handle, rank, from.num_ranks - num_excluded, from.device);
}

/// How many ranks have the same color, only they know.
VIRTUAL_GPU_API ncclResult_t ncclCommSplit(ncclComm_t, int color, int, ncclComm_t* handle,
                                           ncclConfig_t*) {
    *handle = nullptr;
    if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
    refuse("ncclCommSplit");
}

VIRTUAL_GPU_API ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
VIRTUAL_GPU_API ncclResult_t ncclCommDestroy(ncclComm_t handle) { return end(handle); }
VIRTUAL_GPU_API ncclResult_t ncclCommAbort(ncclComm_t handle) { return end(handle); }

VIRTUAL_GPU_API ncclResult_t ncclCommCount(const ncclComm_t handle, int* count) {
    *count = communicator_of(handle).num_ranks;
    return ncclSuccess;
}
VIRTUAL_GPU_API ncclResult_t ncclCommUserRank(const ncclComm_t handle, int* rank) {
    *rank = communicator_of(handle).rank;
    return ncclSuccess;
}
VIRTUAL_GPU_API ncclResult_t ncclCommCuDevice(const ncclComm_t handle, int* device) {
    *device = communicator_of(handle).device;
    return ncclSuccess;
}
VIRTUAL_GPU_API ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
    *error = ncclSuccess;
    return ncclSuccess;
}

VIRTUAL_GPU_API ncclResult_t ncclCommRegister(const ncclComm_t, void* buffer, std::size_t,
                                              void** handle) {
    *handle = buffer;
    return ncclSuccess;
}
VIRTUAL_GPU_API ncclResult_t ncclCommDeregister(const ncclComm_t, void*) { return ncclSuccess; }
VIRTUAL_GPU_API ncclResult_t ncclCommWindowRegister(ncclComm_t, void* buffer, std::size_t,
                                                    ncclWindow_t* window, int) {
    *window = static_cast<ncclWindow_t>(buffer);
    return ncclSuccess;
}
VIRTUAL_GPU_API ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t) {
    return ncclSuccess;
}

VIRTUAL_GPU_API ncclResult_t ncclMemAlloc(void** address, std::size_t size) {
    return cudaMalloc(address, size) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
VIRTUAL_GPU_API ncclResult_t ncclMemFree(void* address) {
    return cudaFree(address) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

VIRTUAL_GPU_API ncclResult_t ncclGroupStart() {
    ++group.depth;
    return ncclSuccess;
}
VIRTUAL_GPU_API ncclResult_t ncclGroupEnd() {
    if (group.depth == 0) return ncclInvalidUsage;
    if (--group.depth == 0) group.launched.clear();
    return ncclSuccess;
}

VIRTUAL_GPU_API ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* reduction, void*, ncclDataType_t,
                                                      ncclScalarResidence_t, ncclComm_t) {
    *reduction = ncclNumOps;
    return ncclSuccess;
}
VIRTUAL_GPU_API ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t) { return ncclSuccess; }

// ---- collectives --------------------------------------------------------------------------------

VIRTUAL_GPU_API ncclResult_t ncclAllReduce(const void* source, void* target, std::size_t count,
                                           ncclDataType_t type, ncclRedOp_t reduction,
                                           ncclComm_t communicator, cudaStream_t stream) {
    copy_values(source, target, count * bytes_of(type), stream);
    return launch(communicator, stream,
                  std::string("AllReduce_") + name_of(reduction) + "_" + name_of(type) + "_RING_LL",
                  count * bytes_of(type));
}

VIRTUAL_GPU_API ncclResult_t ncclReduce(const void* source, void* target, std::size_t count,
                                        ncclDataType_t type, ncclRedOp_t reduction, int root,
                                        ncclComm_t communicator, cudaStream_t stream) {
    if (communicator != nullptr && communicator_of(communicator).rank == root) {
        copy_values(source, target, count * bytes_of(type), stream);
    }
    return launch(communicator, stream,
                  std::string("Reduce_") + name_of(reduction) + "_" + name_of(type) + "_RING_LL",
                  count * bytes_of(type));
}

VIRTUAL_GPU_API ncclResult_t ncclBroadcast(const void* source, void* target, std::size_t count,
                                           ncclDataType_t type, int, ncclComm_t communicator,
                                           cudaStream_t stream) {
    copy_values(source, target, count * bytes_of(type), stream);
    return launch(communicator, stream, "Broadcast_RING_LL", count * bytes_of(type));
}

VIRTUAL_GPU_API ncclResult_t ncclBcast(void* buffer, std::size_t count, ncclDataType_t type,
                                       int root, ncclComm_t communicator, cudaStream_t stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}

/// `count` elements from each rank.
VIRTUAL_GPU_API ncclResult_t ncclAllGather(const void* source, void* target, std::size_t count,
                                           ncclDataType_t type, ncclComm_t communicator,
                                           cudaStream_t stream) {
    if (communicator == nullptr) return ncclInvalidArgument;
    const std::size_t size = count * bytes_of(type);
    repeat_values(source, target, size, communicator_of(communicator).num_ranks, stream);
    return launch(communicator, stream, "AllGather_RING_LL", size);
}

/// `count` elements to each rank.
VIRTUAL_GPU_API ncclResult_t ncclReduceScatter(const void* source, void* target, std::size_t count,
                                               ncclDataType_t type, ncclRedOp_t reduction,
                                               ncclComm_t communicator, cudaStream_t stream) {
    if (communicator == nullptr) return ncclInvalidArgument;
    const std::size_t size = count * bytes_of(type);
    const auto rank = static_cast<std::size_t>(communicator_of(communicator).rank);
    copy_values(static_cast<const char*>(source) + rank * size, target, size, stream);
    return launch(
        communicator, stream,
        std::string("ReduceScatter_") + name_of(reduction) + "_" + name_of(type) + "_RING_LL",
        size);
}

/// `count` elements to each rank, and from each.
VIRTUAL_GPU_API ncclResult_t ncclAlltoAll(const void* source, void* target, std::size_t count,
                                          ncclDataType_t type, ncclComm_t communicator,
                                          cudaStream_t stream) {
    if (communicator == nullptr) return ncclInvalidArgument;
    const auto num_ranks = static_cast<std::size_t>(communicator_of(communicator).num_ranks);
    copy_values(source, target, num_ranks * count * bytes_of(type), stream);
    return launch(communicator, stream, "SendRecv", count * bytes_of(type));
}

VIRTUAL_GPU_API ncclResult_t ncclSend(const void*, std::size_t count, ncclDataType_t type, int,
                                      ncclComm_t communicator, cudaStream_t stream) {
    return launch(communicator, stream, "SendRecv", count * bytes_of(type));
}

VIRTUAL_GPU_API ncclResult_t ncclRecv(void* target, std::size_t count, ncclDataType_t type, int,
                                      ncclComm_t communicator, cudaStream_t stream) {
    forget_values(target, count * bytes_of(type), stream);
    return launch(communicator, stream, "SendRecv", count * bytes_of(type));
}

}  // namespace profiler::virtual_gpu
