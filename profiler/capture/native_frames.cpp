#include "profiler/capture/native_frames.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <torch/csrc/profiler/unwind/unwind.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace profiler {
namespace {

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

NativeStack native_stack() { return torch::unwind::unwind(); }

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

}  // namespace profiler
