#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The line of code that asked for an allocation, found in its call stack.
///
/// The site is the innermost of the best frames that the stack has:
///
///     1. Python code of the program: "cs336_basics/model.py:54 forward"
///     2. a node of autograd, whose thread runs no Python: "autograd MulBackward0"
///     3. Python code of a library that only runs ops: "modules/linear.py:125 forward"
///     4. a mark, which stands beside the frames (is_mark_file): "<user_metadata> step 3"
///     5. "outside of Python"
///
/// Such libraries are Python's own, and the packages torch, functorch, triton and einops, by the
/// path of the file. Code of other packages, such as a model of transformers, counts as the
/// program's. File names keep their last folder.
namespace profiler {

inline constexpr std::string_view kOutsideOfPython = "outside of Python";

class CallSites {
public:
    /// The trace must outlive this.
    explicit CallSites(const Trace& trace);

    /// Whether a line of Python, or a node of autograd, stands for it.
    bool is_of_python(Id<Stack> stack) const;
    /// "no stack" for none.
    std::string of(Id<Stack> stack) const;

    /// The best first.
    enum class FrameKind : uint8_t { kProgram, kAutograd, kLibrary, kMark, kOther };
    /// kOther for none.
    FrameKind kind_of(Id<Frame> frame) const;
    /// One frame, as `of` writes it: "cs336_basics/model.py:54 forward".
    std::string label_of(Id<Frame> frame) const;
    /// The text of that line; empty where it was not recorded.
    std::string_view code_of(Id<Frame> frame) const;
    std::string_view code_of(Id<Stack> stack) const;

private:
    static FrameKind kind_of(const Trace& trace, const Frame& frame);

    const Trace& trace_;
    std::vector<FrameKind> kind_of_frame_;
    std::vector<Id<Frame>> site_of_stack_;
};

}  // namespace profiler
