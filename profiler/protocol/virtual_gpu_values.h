#pragma once

#include <cstddef>
#include <cstdint>

/// What a process asks its virtual GPU about the values in its memory. No kernel runs, so a value
/// is known only where the host put it there, a fill wrote it, or the process computed it and says
/// so.
namespace profiler::virtual_gpu {

/// Larger copies from the host are weights and batches of data, whose values the host does not look
/// at. They are unknown.
inline constexpr std::size_t kMaxKeptCopyBytes = std::size_t{1} << 20;

/// A copy of unknown bytes to the host. True: they may be known by now, and are read again. False:
/// they read as zeros.
using OnUnknownRead = bool (*)(const void* address, std::size_t size);

/// Thread-safe functions. Addresses of the host are no device's: nothing is known there.
struct Values {
    /// Returns whether all bytes are known; those that are not read as zeros.
    bool (*read)(const void* address, void* bytes, std::size_t size);
    bool (*knows)(const void* address, std::size_t size);
    void (*write)(const void* address, const void* bytes, std::size_t size);
    /// `size` bytes in which `pattern` repeats.
    void (*fill)(const void* address, const void* pattern, std::size_t pattern_size,
                 std::size_t size);
    /// A kernel writes there; while a graph is captured: each time it runs.
    void (*forget)(const void* address, std::size_t size);
    /// How often something was written or filled, so that an op can tell whether its end differs
    /// from its beginning.
    uint64_t (*num_writes)();
    /// From now on until expect_nothing, copies of one integer or truth value to the host on this
    /// thread give `value`: an op reads a count or a verdict before it makes its result.
    void (*expect)(int64_t value);
    void (*expect_nothing)();
    /// How often bytes were copied to the host, known or not.
    uint64_t (*num_reads)();
    /// Whether contents are kept, as they are at first. From a false on all bytes are unknown.
    void (*set_keeping)(bool is_keeping);
    /// Whether some stream captures a graph: its work runs later.
    bool (*captures)();
    /// Null: nobody hears of such reads. It is called on the thread that reads, and may
    /// throw std::runtime_error, which ends the read with this error.
    void (*set_on_unknown_read)(OnUnknownRead listener);
    /// `name` tells the op that runs on the calling thread; null: none is known. What the GPU
    /// refuses is refused with that name.
    void (*set_op_name)(const char* (*name)());
    /// Whether the process gets more memory than its devices have, to see what it would need.
    void (*set_unlimited)(bool is_unlimited);
};

/// In a process with a virtual GPU dlsym finds this function, which takes nothing and returns a
/// `const Values*` that lives as long as the process.
inline constexpr const char* kValuesSymbol = "temposcope_virtual_gpu_values";

}  // namespace profiler::virtual_gpu
