#pragma once

#include "profiler/capture/torch_adapter/torch_stacks.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

/// The Python call stacks of ops, and so of the allocations that they make, with the text of their
/// lines: the files may change later. Below them, if asked for, the C++ frames of each allocation.
///
///     an op that no other op calls begins ► gather: addresses of code and instructions, no text
///     an allocation outside of ops, or in one that runs Python
///                                         ► gathered by the allocator, before it takes its lock
///     an allocation, where C++ frames are recorded ► gather_native: addresses of code
///     a step ends                         ► write: the stacks of those that allocated, as text
///
/// Ops inside an op have the outer op's stack. If the outer op may run Python, like an
/// autograd.Function of the program, each inner op has a stack of its own. Allocations of backward
/// have the stack of the forward op: on a GPU backward runs on a thread without Python, and on the
/// CPU all of backward runs below one line.
namespace profiler {

/// The text of lines of Python files on this machine.
class SourceLines {
public:
    /// Without white space around it, and cut after kMaxLength; empty for a file that is not here,
    /// is no Python file or has no such line. `line` counts from 1. Each file is read once.
    std::string_view of(std::string_view file, int64_t line);

    static constexpr std::size_t kMaxLength = 200;  // bytes

private:
    std::unordered_map<std::string, std::vector<std::string>> lines_;
};

/// A line of a program, as a call stack names it.
struct StackLine {
    std::string_view function;
    std::string_view file;
    int64_t line = 0;
    std::string_view code;  // its text; empty: it is read from the file
};

/// The rows of frames and stacks of a trace, each of them once.
class StackRows {
public:
    explicit StackRows(Trace& trace) : trace_(trace) {}

    /// The stack that `line` continues `parent` to; without a parent it begins there. Under the
    /// lock on the rows.
    Id<Stack> add(Id<Stack> parent, const StackLine& line);

private:
    Id<Frame> frame_of(const StackLine& line);

    Trace& trace_;
    SourceLines lines_;
    std::map<std::tuple<StringId, StringId, int64_t>, Id<Frame>> frames_;
    std::map<std::pair<Id<Stack>, Id<Frame>>, Id<Stack>> stacks_;
};

/// Return addresses of a C++ call stack, the innermost first.
using NativeStack = std::vector<void*>;

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

class CallStacks {
public:
    using Gathered = GatheredStack;

    /// Frames of files in the folder `hidden` are left out: they are those of the recorder.
    CallStacks(std::string hidden, bool with_native, StackRows& rows)
        : hidden_(std::move(hidden)), with_native_(with_native), rows_(rows) {}

    /// The stack of this thread. Waits for Python's lock: the caller must hold none that a thread
    /// with Python's lock may want. A thread without Python has an empty one.
    static Gathered gather() { return gather_python_stack(); }
    void add(Id<Op> op, Gathered stack);
    /// Of the allocation with this event number, which has a stack of its own. Under the lock on
    /// the rows.
    void add(int64_t alloc_event, Gathered stack, const Trace& trace);

    /// The C++ stack of this thread; empty if they are not asked for. Needs no lock. O(depth), a
    /// tenth of a microsecond a frame once its code has been seen.
    NativeStack gather_native() const;
    /// Of the allocation with this event number.
    void add(int64_t alloc_event, NativeStack stack);

    /// Writes the stacks of the allocations since the last call. Without a lock, as for `gather`;
    /// `lock_rows` guards the trace.
    template <typename LockRows>
    void write(Trace& trace, LockRows lock_rows) {
        Taken taken;
        {
            const auto lock = lock_rows();
            taken = take(trace);
        }
        const PythonStacks text = symbolize(taken.allocated);
        const std::vector<Named> natives = name(taken.natives);
        const auto lock = lock_rows();
        append(taken.allocated, text, trace);
        append(natives, trace);
    }

private:
    /// Allocations by the stack that is theirs.
    using Allocated = std::vector<std::pair<Gathered, std::vector<Id<Allocation>>>>;

    using GatheredOps = std::unordered_map<int64_t, Gathered>;
    using GatheredEvents = std::unordered_map<int64_t, Gathered>;
    /// Of the allocations since the last call.
    struct Taken {
        Allocated allocated;
        std::vector<std::pair<Id<Allocation>, NativeStack>> natives;
    };
    using Named = std::pair<Id<Allocation>, std::vector<NativeFrame>>;

    static Id<Op> owner_of(const Trace& trace, Id<Op> op, const GatheredOps& gathered);
    void forget_freed(const Trace& trace);
    Taken take(const Trace& trace);
    static PythonStacks symbolize(const Allocated& allocated);
    void append(const Allocated& allocated, const PythonStacks& text, Trace& trace);
    std::vector<Named> name(const std::vector<std::pair<Id<Allocation>, NativeStack>>& natives);
    void append(const std::vector<Named>& natives, Trace& trace);

    /// Between two calls of `write` a program may make any number of allocations. With more, those
    /// of freed blocks are forgotten: about 1 KB each.
    static constexpr std::size_t kMostFreed = 1 << 14;

    const std::string hidden_;
    const bool with_native_;
    StackRows& rows_;
    std::mutex mutex_;
    GatheredOps gathered_;                              // by op
    GatheredEvents gathered_events_;                    // by event
    std::size_t most_events_ = kMostFreed;              // beside which freed blocks keep theirs
    std::unordered_map<int64_t, NativeStack> natives_;  // by event
    std::size_t num_written_ = 0;                       // allocations
    NativeFrames native_frames_;
};

}  // namespace profiler
