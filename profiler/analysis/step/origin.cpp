#include "profiler/analysis/step/origin.h"

#include "profiler/trace/contents_text.h"
#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace profiler {

std::vector<StringId> names_of_storages(const Trace& trace) {
    std::vector<StringId> names(trace.storages.size());
    const auto storage = trace.tensors.column<&Tensor::storage>();
    const auto name = trace.tensors.column<&Tensor::name>();
    for (std::size_t i = 0; i < storage.size(); ++i) {
        if (!storage[i].valid()) continue;
        StringId& known = names[storage[i].index()];
        if (trace.text(known).empty()) known = name[i];
    }
    return names;
}

std::string_view name_of_call(const Trace& trace, Id<Op> op) {
    return trace.text(trace.ops.get<&Op::name>(op));
}

std::string_view path_of_module(const Trace& trace, Id<ModulePath> module) {
    return trace.text(trace.module_paths.get<&ModulePath::path>(module));
}

Id<ModulePath> module_of(const Trace& trace, Id<Op> op) {
    while (op.valid()) {
        const Id<ModulePath> module = trace.ops.get<&Op::module_path>(op);
        if (module.valid()) return module;
        const Id<Op> forward = trace.ops.get<&Op::forward>(op);
        if (forward.valid() && forward < op) {
            op = forward;
            continue;
        }
        const Id<Op> parent = trace.ops.get<&Op::parent>(op);
        op = parent < op ? parent : Id<Op>();  // damaged files may have cycles
    }
    return {};
}

bool is_within(const Trace& trace, Id<Op> op, Id<Op> around) {
    // Calls stand after the call that makes them.
    while (op.valid() && around.valid() && op > around && op.index() < trace.ops.size()) {
        const Id<Op> parent = trace.ops.get<&Op::parent>(op);
        if (!(parent < op)) return false;
        op = parent;
    }
    return op.valid() && op == around;
}

BlockOrigin origin_of(const Trace& trace, const std::vector<StringId>& storage_names,
                      Id<Storage> storage, Id<Allocation> allocation) {
    BlockOrigin origin;
    if (allocation.valid()) {
        origin.maker = trace.allocations.get<&Allocation::op>(allocation);
        origin.size_bytes = trace.allocations.get<&Allocation::requested_bytes>(allocation);
        if (!storage.valid()) storage = trace.allocations.get<&Allocation::storage>(allocation);
    }
    if (storage.valid()) {
        origin.size_bytes = trace.storages.get<&Storage::size_bytes>(storage);
        origin.category = trace.storages.get<&Storage::category>(storage);
        origin.name = trace.text(storage_names[storage.index()]);
    }
    if (origin.name.empty() && origin.maker.valid()) {
        origin.name = name_of_call(trace, origin.maker);
    }
    const Id<ModulePath> module = module_of(trace, origin.maker);
    if (module.valid()) {
        origin.module_path = path_of_module(trace, module);
    }
    return origin;
}

std::string_view layer_path_of(const Trace& trace, Id<ModulePath> module) {
    if (!module.valid()) return {};
    ModulePath row = trace.module_paths[module];
    if (row.layer < 0) return {};
    while (row.parent.valid() && row.parent < module) {  // damaged files may have cycles
        const ModulePath around = trace.module_paths[row.parent];
        if (around.layer != row.layer) break;
        module = row.parent;
        row = around;
    }
    return trace.text(row.path);
}

LayerPath split_layer_path(std::string_view path, std::string_view layer_path) {
    if (!layer_path.empty()) {
        const std::string_view inside = path_below(path, layer_path);
        if (inside.size() == path.size()) return {path, {}};
        return {layer_path, inside};
    }
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos) return {path, {}};
    return {path.substr(0, dot), path.substr(dot + 1)};
}

std::string any_layer_path(std::string_view path, std::string_view layer_path) {
    if (layer_path.empty()) return std::string(path);
    const auto [layer, inside] = split_layer_path(path, layer_path);
    const std::size_t dot = layer.rfind('.');
    std::string any =
        dot == std::string_view::npos ? "*" : fmt::format("{}.*", layer.substr(0, dot));
    if (!inside.empty()) any += fmt::format(".{}", inside);
    return any;
}

std::string_view path_below(std::string_view path, std::string_view around) {
    const bool lies_in = !around.empty() && path.size() > around.size() + 1 &&
                         path.starts_with(around) && path[around.size()] == '.';
    return lies_in ? path.substr(around.size() + 1) : path;
}

namespace {

/// Packages whose own lines say little: what they allocate belongs to the code that calls them.
constexpr std::array<std::string_view, 4> kOpPackages{"torch", "functorch", "triton", "einops"};
/// Parts of the paths of files outside of packages: Python itself, torch built from its sources,
/// and code that torch generates.
constexpr std::array<std::string_view, 6> kOpPaths{"/lib/python3",    "/Lib/",  // of Windows
                                                   "<frozen ",        "/pytorch/torch/",
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
        return rest.substr(0, rest.find('/'));
    }
    return {};
}

/// Of a file outside of packages.
bool is_op_library(std::string_view file) {
    return std::ranges::any_of(
               kOpPaths,
               [&](std::string_view part) { return file.find(part) != std::string_view::npos; }) ||
           std::ranges::any_of(kOpFolders,
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

/// As Windows does not write it: "C:/me/bert/model.py".
std::string with_slashes(std::string_view path) {
    std::string text(path);
    std::ranges::replace(text, '\\', '/');
    return text;
}

std::string with_last_folder(std::string_view path) {
    const std::string text = with_slashes(path);
    const std::size_t name = text.rfind('/');
    if (name == std::string::npos || name == 0) return text;
    const std::size_t folder = text.rfind('/', name - 1);
    return folder == std::string::npos ? text : text.substr(folder + 1);
}

}  // namespace

std::string_view without_folder(std::string_view site) {
    const std::size_t folder = site.rfind('/');
    return folder == std::string_view::npos ? site : site.substr(folder + 1);
}

std::string without_line(std::string_view site) {
    std::string text;
    for (std::size_t i = 0; i < site.size(); ++i) {
        const std::size_t end = site.find_first_not_of("0123456789", i + 1);
        const bool is_line =
            site[i] == ':' && end != i + 1 && (end == std::string_view::npos || site[end] == ' ');
        if (!is_line) {
            text += site[i];
        } else {
            i = std::min(end, site.size()) - 1;
        }
    }
    return text;
}

CallSites::CallSites(const Trace& trace) : trace_(trace) {
    for (const Id<Frame> id : trace.frames.ids()) {
        kind_of_frame_.push_back(kind_of(trace, trace.frames[id]));
    }
    find_sites();
    prefer_lines_of_packages();
}

void CallSites::find_sites() {
    const auto frames = trace_.stacks.column<&Stack::frame>();
    const auto parents = trace_.stacks.column<&Stack::parent>();
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const Id<Stack> parent = parents[i];
        const bool has_parent = parent.valid() && parent.index() < i;  // never a cycle
        const Id<Frame> outer = has_parent ? site_of_stack_[parent.index()] : Id<Frame>();
        const FrameKind kind = kind_of(frames[i]);
        site_of_stack_.push_back(kind_of(outer) < kind ? outer : frames[i]);
        Lines lines = has_parent ? lines_of_stack_[parent.index()] : Lines();
        if (kind == FrameKind::kProgram) lines = {.program = frames[i], .package = {}};
        if (kind == FrameKind::kPackage) lines.package = frames[i];
        lines_of_stack_.push_back(lines);
    }
}

void CallSites::prefer_lines_of_packages() {
    const auto parents = trace_.stacks.column<&Stack::parent>();
    std::vector<bool> is_around(parents.size(), false);  // of another stack: it asks for nothing
    for (const Id<Stack> parent : parents) {
        if (parent.valid() && parent.index() < is_around.size()) is_around[parent.index()] = true;
    }
    std::vector<std::pair<Id<Frame>, Id<Frame>>> below;  // a line of the program, of a package
    for (std::size_t i = 0; i < lines_of_stack_.size(); ++i) {
        const auto [program, package] = lines_of_stack_[i];
        if (!is_around[i] && program.valid() && package.valid())
            below.emplace_back(program, package);
    }
    std::ranges::sort(below);
    below.erase(std::unique(below.begin(), below.end()), below.end());
    std::vector<std::size_t> num_lines(kind_of_frame_.size(), 0);
    for (const auto& [program, package] : below) ++num_lines[program.index()];
    for (std::size_t i = 0; i < lines_of_stack_.size(); ++i) {
        const auto [program, package] = lines_of_stack_[i];
        const bool runs_package = program.valid() && num_lines[program.index()] > kMostPackageLines;
        if (runs_package && package.valid()) site_of_stack_[i] = package;
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
    const std::string file = with_last_folder(trace_.text(frame.file));
    if (frame.line == 0) return fmt::format("{} {}", file, function);  // "<user_metadata> step 3"
    return fmt::format("{}:{} {}", file, frame.line, function);
}

std::string_view CallSites::code_of(Id<Frame> id) const {
    return id.valid() ? trace_.text(trace_.frames.get<&Frame::code>(id)) : std::string_view();
}

std::string_view CallSites::code_of(Id<Stack> stack) const {
    return stack.valid() ? code_of(site_of_stack_[stack.index()]) : std::string_view();
}

Id<Frame> CallSites::program_frame_of(const Trace& trace, Id<Stack> stack) {
    while (stack.valid()) {
        const Stack row = trace.stacks[stack];
        const bool has_frame = row.frame.valid();
        if (has_frame && kind_of(trace, trace.frames[row.frame]) <= FrameKind::kPackage) {
            return row.frame;
        }
        stack = row.parent < stack ? row.parent : Id<Stack>();  // damaged files may have cycles
    }
    return {};
}

CallSites::FrameKind CallSites::kind_of(const Trace& trace, const Frame& frame) {
    const std::string file = with_slashes(trace.text(frame.file));
    if (is_mark_file(file)) {  // what the block contains is no place
        const bool is_place = !parse_contents(trace.text(frame.function));
        return is_place ? FrameKind::kMark : FrameKind::kOther;
    }
    if (is_python(file)) {
        const std::string_view package = package_of(file);
        const bool is_of_ops =
            package.empty() ? is_op_library(file) : std::ranges::count(kOpPackages, package) > 0;
        if (is_of_ops) return FrameKind::kLibrary;
        return package.empty() ? FrameKind::kProgram : FrameKind::kPackage;
    }
    return autograd_node(trace.text(frame.function)).empty() ? FrameKind::kOther
                                                             : FrameKind::kAutograd;
}

CallSites::FrameKind CallSites::kind_of(Id<Frame> frame) const {
    return frame.valid() ? kind_of_frame_[frame.index()] : FrameKind::kOther;
}

}  // namespace profiler
