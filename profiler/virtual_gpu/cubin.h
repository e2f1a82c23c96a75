#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The kernels of a cubin, as its own ELF sections describe them. A cubin is what ptxas writes: the
/// modules of Triton and NVRTC. NVIDIA does not document the sections; tests compare them with what
/// `ptxas -v` says of the same kernels.
namespace profiler::virtual_gpu {

/// What a kernel takes of a multiprocessor. A kernel of a library registers no such figures.
struct KernelResources {
    int registers = 0;         // of a thread; 0: unknown
    int64_t shared_bytes = 0;  // static, without what CUDA keeps of each block
    int64_t local_bytes = 0;   // of a thread: stack and spilled registers
    int max_threads = 0;       // .maxntid or .reqntid; 0: no limit of its own
};

struct CubinParameter {
    uint32_t offset = 0;  // bytes
    uint32_t size = 0;    // bytes
    bool is_pointer = false;
};

struct CubinKernel {
    std::string name;  // mangled
    KernelResources resources;
    std::vector<CubinParameter> parameters;  // by ordinal
};

struct CubinVariable {
    std::string name;
    uint64_t size_bytes = 0;
};

struct Cubin {
    int capability = 0;  // 90 for 9.0
    std::vector<CubinKernel> kernels;
    std::vector<CubinVariable> variables;
};

/// How many bytes a cubin has that starts with `start`: as far as its header says, or, if `start`
/// has the section table, as far as its sections reach. None if `start` begins no cubin.
std::optional<uint64_t> cubin_bytes(std::span<const std::byte> start);

/// None if the bytes are no cubin, or a damaged one. Reads nothing outside of them.
std::optional<Cubin> read_cubin(std::span<const std::byte> bytes);

}  // namespace profiler::virtual_gpu
