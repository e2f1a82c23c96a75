#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace torch {
struct CapturedTraceback;
}

/// Call stacks as torch gathers them.
namespace profiler {

/// The Python stack of a thread: addresses of code and instructions, no text.
using GatheredStack = std::shared_ptr<torch::CapturedTraceback>;

struct PythonLine {
    std::string function;
    std::string file;
    int64_t line = 0;
};

struct PythonStacks {
    std::vector<PythonLine> lines;              // each once
    std::vector<std::vector<uint64_t>> stacks;  // places in `lines`, the innermost call first
};

/// The stack of this thread. Waits for Python's lock. A thread without Python, as OpenMP's are, has
/// an empty one, and does not wait: who waits for that thread may hold the lock.
GatheredStack gather_python_stack();

/// The stacks as text. Waits for Python's lock.
PythonStacks text_of(const std::vector<GatheredStack>& gathered);

/// Return addresses of the C++ stack of this thread, the innermost first.
std::vector<void*> gather_native_stack();

}  // namespace profiler
