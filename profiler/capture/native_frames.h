#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

/// C++ call stacks: return addresses that are taken fast, and the names of their functions.
namespace profiler {

/// Return addresses, the innermost first.
using NativeStack = std::vector<void*>;

/// Of this thread; O(depth), a tenth of a microsecond a frame once their code has been seen.
NativeStack native_stack();

/// A function of a library: "at::detail::empty_cpu(...)" of "libtorch_cpu.so".
struct NativeFrame {
    std::string function;  // demangled; empty: the library does not name it
    std::string library;   // the file without its folder

    friend bool operator==(const NativeFrame&, const NativeFrame&) = default;
};

class NativeFrames {
public:
    /// The calls between Python and the recorder, the outermost first; of several equal ones one.
    /// Python's frames tell what is around them.
    std::vector<NativeFrame> of(const NativeStack& stack);

private:
    enum class Kind : uint8_t { kCode, kRecorder, kPython };
    struct Known {
        Kind kind = Kind::kCode;
        NativeFrame frame;
    };
    const Known& find(void* address);

    std::unordered_map<void*, Known> known_;
};

}  // namespace profiler
