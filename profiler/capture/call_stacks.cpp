#include "profiler/capture/call_stacks.h"

#include "profiler/trace/text.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace profiler {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxBytes = 4 << 20;  // of a file: longer ones are data

/// A trace holds UTF-8 only, and a source file may have another encoding.
std::string shown(const std::string& line) {
    constexpr const char* kSpace = " \t\r";
    const std::size_t first = line.find_first_not_of(kSpace);
    if (first == std::string::npos || !is_utf8(line)) return {};
    std::string text = line.substr(first, line.find_last_not_of(kSpace) - first + 1);
    if (text.size() > SourceLines::kMaxLength) text.resize(SourceLines::kMaxLength);
    while (!is_utf8(text)) text.pop_back();  // a character that was cut
    return text;
}

std::vector<std::string> read_lines(const std::string& file) {
    std::error_code missing;
    if (!file.ends_with(".py") || !fs::is_regular_file(file, missing)) return {};
    if (fs::file_size(file, missing) > kMaxBytes) return {};
    std::vector<std::string> lines;
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) lines.push_back(shown(line));
    return lines;
}

std::string demangled(const char* name) {
    if (name == nullptr) return {};
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
    return status == 0 ? text.get() : name;
}

/// Where the code of Python is loaded; null in a program without Python.
const void* base_of_python() {
    static const void* const base = [] {
        Dl_info info{};
        const void* const function = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
        return function != nullptr && dladdr(function, &info) != 0 ? info.dli_fbase : nullptr;
    }();
    return base;
}

}  // namespace

// ---- lines of Python files -------------------------------------------------------------------

std::string_view SourceLines::of(std::string_view file, int64_t line) {
    const auto [found, is_new] = lines_.try_emplace(std::string(file));
    if (is_new) found->second = read_lines(found->first);
    const std::vector<std::string>& lines = found->second;
    if (line < 1 || static_cast<std::size_t>(line) > lines.size()) return {};
    return lines[static_cast<std::size_t>(line) - 1];
}

// ---- rows -------------------------------------------------------------------------------------

Id<Stack> StackRows::add(Id<Stack> parent, const StackLine& line) {
    const Id<Frame> frame = frame_of(line);
    const auto [known, is_new] = stacks_.try_emplace({parent, frame});
    if (is_new) known->second = trace_.stacks.append({.parent = parent, .frame = frame});
    return known->second;
}

Id<Frame> StackRows::frame_of(const StackLine& line) {
    StringTable& strings = trace_.strings;
    const auto key =
        std::tuple(strings.intern(line.function), strings.intern(line.file), line.line);
    const auto [known, is_new] = frames_.try_emplace(key);
    if (is_new) {
        const std::string_view code =
            line.code.empty() ? lines_.of(line.file, line.line) : line.code;
        known->second =
            trace_.frames.append({.function = std::get<0>(key),
                                  .file = std::get<1>(key),
                                  .line = line.line,
                                  .code = code.empty() ? StringId() : strings.intern(code)});
    }
    return known->second;
}

// ---- C++ frames ------------------------------------------------------------------------------

const NativeFrames::Known& NativeFrames::find(void* address) {
    const auto [place, is_new] = known_.try_emplace(address);
    if (!is_new) return place->second;
    Known& known = place->second;
    Dl_info info{};
    // A return address is behind the call, which may be the last instruction of its function.
    if (dladdr(static_cast<const char*>(address) - 1, &info) == 0) return known;
    const std::string_view path = info.dli_fname != nullptr ? info.dli_fname : "";
    known.frame = {demangled(info.dli_sname), std::string(path.substr(path.rfind('/') + 1))};
    const bool is_ours = known.frame.library.starts_with("libtemposcope") ||
                         known.frame.library.starts_with("temposcope");
    if (is_ours) known.kind = Kind::kRecorder;
    if (info.dli_fbase == base_of_python()) known.kind = Kind::kPython;
    return known;
}

std::vector<NativeFrame> NativeFrames::of(const NativeStack& stack) {
    std::vector<NativeFrame> frames;
    for (void* const address : stack) {
        const Known& known = find(address);
        if (known.kind == Kind::kPython) break;
        // Frames inside of the recorder's are its own work.
        if (known.kind == Kind::kRecorder) frames.clear();
        if (known.kind != Kind::kCode || known.frame.library.empty()) continue;
        if (frames.empty() || frames.back() != known.frame) frames.push_back(known.frame);
    }
    std::reverse(frames.begin(), frames.end());
    return frames;
}

// ---- stacks ----------------------------------------------------------------------------------

NativeStack CallStacks::gather_native() const {
    return with_native_ ? gather_native_stack() : NativeStack();
}

void CallStacks::add(Id<Op> op, Gathered stack) {
    const std::lock_guard lock(mutex_);
    gathered_.emplace(op.value, std::move(stack));
}

void CallStacks::add(int64_t alloc_event, Gathered stack, const Trace& trace) {
    const std::lock_guard lock(mutex_);
    gathered_events_.emplace(alloc_event, std::move(stack));
    if (gathered_events_.size() > most_events_) forget_freed(trace);
}

void CallStacks::forget_freed(const Trace& trace) {
    for (std::size_t i = num_written_; i < trace.allocations.size(); ++i) {
        const Id<Allocation> id(i);
        if (trace.allocations.get<&Allocation::free_requested_event>(id) < 0) continue;
        gathered_events_.erase(trace.allocations.get<&Allocation::alloc_event>(id));
    }
    most_events_ = 2 * gathered_events_.size() + kMostFreed;
}

void CallStacks::add(int64_t alloc_event, NativeStack stack) {
    const std::lock_guard lock(mutex_);
    natives_.emplace(alloc_event, std::move(stack));
}

/// The op that gives `op` its stack: an op around `op`, or around its forward op. An op with a
/// stack inside another one runs in a backward in Python, and its lines are its own.
Id<Op> CallStacks::owner_of(const Trace& trace, Id<Op> op, const GatheredOps& gathered) {
    while (op.valid()) {
        const Id<Op> forward = trace.ops.get<&Op::forward>(op);
        const Id<Op> parent = trace.ops.get<&Op::parent>(op);
        const bool has_own = gathered.contains(op.value);
        if (has_own && (parent.valid() || !forward.valid())) return op;
        op = forward.valid() ? forward : parent;
    }
    return op;
}

CallStacks::Taken CallStacks::take(const Trace& trace) {
    GatheredOps gathered;
    GatheredEvents events;
    std::unordered_map<int64_t, NativeStack> natives;
    {
        const std::lock_guard lock(mutex_);
        gathered.swap(gathered_);
        events.swap(gathered_events_);
        natives.swap(natives_);
        most_events_ = kMostFreed;
    }
    Taken taken;
    std::unordered_map<int64_t, std::size_t> place_of_op;
    for (; num_written_ < trace.allocations.size(); ++num_written_) {
        const Id<Allocation> id(num_written_);
        const int64_t event = trace.allocations.get<&Allocation::alloc_event>(id);
        const auto native = natives.find(event);
        if (native != natives.end()) taken.natives.emplace_back(id, std::move(native->second));
        if (const auto own = events.find(event); own != events.end()) {
            taken.allocated.emplace_back(own->second, std::vector{id});
            continue;
        }
        const Id<Op> op = owner_of(trace, trace.allocations.get<&Allocation::op>(id), gathered);
        if (!op.valid()) continue;
        const auto [place, is_new] = place_of_op.try_emplace(op.value, taken.allocated.size());
        if (is_new) {
            taken.allocated.emplace_back(gathered.at(op.value), std::vector<Id<Allocation>>());
        }
        taken.allocated[place->second].second.push_back(id);
    }
    return taken;
}

PythonStacks CallStacks::symbolize(const Allocated& allocated) {
    std::vector<Gathered> stacks;
    for (const auto& [stack, allocations] : allocated) stacks.push_back(stack);
    return text_of(stacks);
}

void CallStacks::append(const Allocated& allocated, const PythonStacks& text, Trace& trace) {
    for (std::size_t i = 0; i < allocated.size(); ++i) {
        Id<Stack> stack;
        const std::vector<uint64_t>& frames = text.stacks[i];  // the innermost first
        for (auto index = frames.rbegin(); index != frames.rend(); ++index) {
            const PythonLine& line = text.lines[*index];
            if (line.file.starts_with(hidden_)) continue;
            stack =
                rows_.add(stack, {.function = line.function, .file = line.file, .line = line.line});
        }
        for (const Id<Allocation> allocation : allocated[i].second) {
            trace.allocations.set<&Allocation::stack>(allocation, stack);
        }
    }
}

/// Without the lock on the rows: the loader of libraries has one of its own, under which code of
/// libraries may allocate.
std::vector<CallStacks::Named> CallStacks::name(
    const std::vector<std::pair<Id<Allocation>, NativeStack>>& natives) {
    std::vector<Named> named;
    for (const auto& [id, stack] : natives) named.emplace_back(id, native_frames_.of(stack));
    return named;
}

/// Continues the stacks of Python.
void CallStacks::append(const std::vector<Named>& natives, Trace& trace) {
    for (const auto& [id, frames] : natives) {
        Id<Stack> stack = trace.allocations.get<&Allocation::stack>(id);
        for (const NativeFrame& frame : frames) {
            stack = rows_.add(stack, {.function = frame.function, .file = frame.library});
        }
        trace.allocations.set<&Allocation::stack>(id, stack);
    }
}

}  // namespace profiler
