#include "profiler/analysis/step/call_site.h"

#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace profiler {
namespace {

/// Packages whose own lines say little: what they allocate belongs to the code that calls them.
constexpr std::array<std::string_view, 4> kOpPackages{"torch", "functorch", "triton", "einops"};
/// Parts of the paths of files outside of packages: Python itself, torch built from its sources,
/// and code that torch generates.
constexpr std::array<std::string_view, 5> kOpPaths{"/lib/python3", "<frozen ", "/pytorch/torch/",
                                                   "<eval_with_key>", "/torchinductor_"};
/// The profiler writes paths from the folder of packages on.
constexpr std::array<std::string_view, 4> kOpFolders{"torch/", "functorch/", "triton/", "einops/"};

bool is_python(std::string_view file) {
    return file.ends_with(".py") || file.starts_with('<');  // "<stdin>", "<ipython-input-3-...>"
}

/// The package of an installed file: "torch" of ".../site-packages/torch/nn/functional.py".
std::string_view package_of(std::string_view file) {
    for (const std::string_view folder : {"site-packages", "dist-packages"}) {
        const std::size_t found = file.rfind(folder);
        if (found == std::string_view::npos) continue;
        std::string_view rest = file.substr(found + folder.size());
        rest.remove_prefix(std::min<std::size_t>(rest.size(), 1));
        return rest.substr(0, rest.find_first_of("/\\"));
    }
    return {};
}

bool is_op_library(std::string_view file) {
    const auto package = package_of(file);
    if (!package.empty()) {
        return std::find(kOpPackages.begin(), kOpPackages.end(), package) != kOpPackages.end();
    }
    return std::any_of(
               kOpPaths.begin(), kOpPaths.end(),
               [&](std::string_view part) { return file.find(part) != std::string_view::npos; }) ||
           std::any_of(kOpFolders.begin(), kOpFolders.end(),
                       [&](std::string_view folder) { return file.starts_with(folder); });
}

/// "MulBackward0" of "torch::autograd::generated::MulBackward0::apply(...)"; empty for others.
std::string_view autograd_node(std::string_view function) {
    if (!function.starts_with("torch::autograd::")) return {};
    const std::string_view node = function.substr(0, function.find('('));
    if (!node.ends_with("::apply") || node.find('<') != std::string_view::npos) return {};
    const std::string_view path = node.substr(0, node.size() - std::string_view("::apply").size());
    return path.substr(path.rfind(':') + 1);
}

std::string_view with_last_folder(std::string_view path) {
    const std::size_t name = path.find_last_of("/\\");
    if (name == std::string_view::npos || name == 0) return path;
    const std::size_t folder = path.find_last_of("/\\", name - 1);
    return folder == std::string_view::npos ? path : path.substr(folder + 1);
}

}  // namespace

CallSites::CallSites(const Trace& trace) : trace_(trace) {
    for (std::size_t i = 0; i < trace.frames.size(); ++i) {
        kind_of_frame_.push_back(kind_of(trace, trace.frames[Id<Frame>(i)]));
    }
    const auto frames = trace.stacks.column<&Stack::frame>();
    const auto parents = trace.stacks.column<&Stack::parent>();
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const Id<Stack> parent = parents[i];
        const bool has_parent = parent.valid() && parent.index() < i;  // never a cycle
        const Id<Frame> outer = has_parent ? site_of_stack_[parent.index()] : Id<Frame>();
        site_of_stack_.push_back(kind_of(outer) < kind_of(frames[i]) ? outer : frames[i]);
    }
}

bool CallSites::is_of_python(Id<Stack> stack) const {
    return stack.valid() && kind_of(site_of_stack_[stack.index()]) != FrameKind::kOther;
}

std::string CallSites::of(Id<Stack> stack) const {
    if (!stack.valid()) return "no stack";
    return label_of(site_of_stack_[stack.index()]);
}

std::string CallSites::label_of(Id<Frame> id) const {
    const FrameKind kind = kind_of(id);
    if (kind == FrameKind::kOther) return std::string(kOutsideOfPython);
    const Frame frame = trace_.frames[id];
    const std::string_view function = trace_.text(frame.function);
    if (kind == FrameKind::kAutograd) return fmt::format("autograd {}", autograd_node(function));
    const std::string_view file = with_last_folder(trace_.text(frame.file));
    if (frame.line == 0) return fmt::format("{} {}", file, function);  // "<user_metadata> step 3"
    return fmt::format("{}:{} {}", file, frame.line, function);
}

std::string_view CallSites::code_of(Id<Frame> id) const {
    return id.valid() ? trace_.text(trace_.frames.get<&Frame::code>(id)) : std::string_view();
}

std::string_view CallSites::code_of(Id<Stack> stack) const {
    return stack.valid() ? code_of(site_of_stack_[stack.index()]) : std::string_view();
}

CallSites::FrameKind CallSites::kind_of(const Trace& trace, const Frame& frame) {
    const std::string_view file = trace.text(frame.file);
    if (is_mark_file(file)) return FrameKind::kMark;
    if (is_python(file)) return is_op_library(file) ? FrameKind::kLibrary : FrameKind::kProgram;
    return autograd_node(trace.text(frame.function)).empty() ? FrameKind::kOther
                                                             : FrameKind::kAutograd;
}

CallSites::FrameKind CallSites::kind_of(Id<Frame> frame) const {
    return frame.valid() ? kind_of_frame_[frame.index()] : FrameKind::kOther;
}

}  // namespace profiler
