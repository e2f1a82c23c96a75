#include "profiler/capture/torch_adapter/torch_stacks.h"

#include <torch/csrc/profiler/combined_traceback.h>
#include <torch/csrc/profiler/unwind/unwind.h>

#include <utility>

namespace profiler {

GatheredStack gather_python_stack() {
    return torch::CapturedTraceback::gather(/*python=*/true, /*script=*/false, /*cpp=*/false);
}

PythonStacks text_of(const std::vector<GatheredStack>& gathered) {
    std::vector<torch::CapturedTraceback*> stacks;
    for (const GatheredStack& stack : gathered) stacks.push_back(stack.get());
    torch::SymbolizedTracebacks text = torch::symbolize(stacks);
    PythonStacks result{.lines = {}, .stacks = std::move(text.tracebacks)};
    for (torch::unwind::Frame& frame : text.all_frames) {
        result.lines.push_back({std::move(frame.funcname), std::move(frame.filename),
                                static_cast<int64_t>(frame.lineno)});
    }
    return result;
}

std::vector<void*> gather_native_stack() { return torch::unwind::unwind(); }

}  // namespace profiler
