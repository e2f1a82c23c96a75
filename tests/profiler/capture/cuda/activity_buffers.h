#pragma once

#include "profiler/capture/torch_adapter/cupti.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

/// Buffers as CUPTI fills them, made by hand: the records of the pinned toolkit's headers, one
/// after another. The function that reads them is CUPTI's own, of the library that libtorch maps.
namespace tests {

inline profiler::NextActivityRecord next_activity_record() {
    static void* const library = dlopen(TEMPOSCOPE_CUPTI, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<profiler::NextActivityRecord>(
        dlsym(library, "cuptiActivityGetNextRecord"));
}

class ActivityBuffer {
public:
    template <typename Record>
    ActivityBuffer& add(const Record& record) {
        static_assert(sizeof(Record) % 8 == 0, "CUPTI keeps records at multiples of 8 bytes");
        const std::size_t begin = words_.size();
        words_.resize(begin + sizeof(Record) / 8);
        std::memcpy(&words_[begin], &record, sizeof(Record));
        return *this;
    }
    std::span<uint8_t> bytes() {
        return {reinterpret_cast<uint8_t*>(words_.data()), words_.size() * 8};
    }

private:
    std::vector<uint64_t> words_;
};

inline CUpti_ActivityKernel10 kernel(uint64_t start_ns, uint64_t end_ns, uint32_t correlation,
                                     const char* name = "_Z4gelumPf") {
    CUpti_ActivityKernel10 record{};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.start = start_ns;
    record.end = end_ns;
    record.correlationId = correlation;
    record.contextId = 1;
    record.streamId = 7;
    record.name = name;
    record.gridX = 96;
    record.gridY = record.gridZ = 1;
    record.blockX = 256;
    record.blockY = record.blockZ = 1;
    record.registersPerThread = 40;
    record.staticSharedMemory = 1024;
    record.dynamicSharedMemory = 49152;
    return record;
}

inline CUpti_ActivityAPI api(CUpti_ActivityKind kind, uint64_t start_ns, uint64_t end_ns,
                             uint32_t correlation, uint32_t thread) {
    CUpti_ActivityAPI record{};
    record.kind = kind;
    record.cbid = 211;
    record.start = start_ns;
    record.end = end_ns;
    record.correlationId = correlation;
    record.threadId = thread;
    return record;
}

inline CUpti_ActivityExternalCorrelation op_correlation(uint32_t correlation, uint64_t id) {
    CUpti_ActivityExternalCorrelation record{};
    record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    record.externalKind = profiler::kOpCorrelationKind;
    record.externalId = id;
    record.correlationId = correlation;
    return record;
}

inline CUpti_ActivityMemcpy6 memcpy_record(uint8_t kind, uint64_t start_ns, uint64_t size_bytes) {
    CUpti_ActivityMemcpy6 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    record.copyKind = kind;
    record.bytes = size_bytes;
    record.start = start_ns;
    record.end = start_ns + 10;
    record.contextId = 1;
    record.streamId = 7;
    return record;
}

inline CUpti_ActivityMemory4 memory(CUpti_ActivityMemoryOperationType operation, uint64_t address,
                                    uint64_t size_bytes, uint64_t time_ns) {
    CUpti_ActivityMemory4 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    record.memoryOperationType = operation;
    record.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    record.address = address;
    record.bytes = size_bytes;
    record.timestamp = time_ns;
    record.source = "libcublasLt.so.13";
    return record;
}

}  // namespace tests
