#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Where blocks and calls come from, as far as the trace knows: their tensor, module and layer, and
/// the checkpoint that runs them again.
namespace profiler {

/// The name of each storage: that of its first tensor with a name, or none.
std::vector<StringId> names_of_storages(const Trace& trace);

/// Texts belong to the trace.
struct BlockOrigin {
    std::string_view name;         // of the tensor; without a name, of the op that made the block
    std::string_view module_path;  // of that op, or of the forward op that it belongs to
    int64_t size_bytes = 0;        // of the storage, else as requested
    Category category = Category::kUnknown;
    Id<Op> maker;  // invalid if not known
};

/// One of `storage` and `allocation` may be invalid. `storage_names` is names_of_storages(trace).
BlockOrigin origin_of(const Trace& trace, const std::vector<StringId>& storage_names,
                      Id<Storage> storage, Id<Allocation> allocation);

/// "aten::addmm" and "encoder.layer.3.output". Texts belong to the trace.
std::string_view name_of_call(const Trace& trace, Id<Op> op);
std::string_view path_of_module(const Trace& trace, Id<ModulePath> module);

/// The module in which an op runs: its own, that of a call around it, or of its forward op.
Id<ModulePath> module_of(const Trace& trace, Id<Op> op);

/// Whether `op` is `around` or a call in it. Ends also in the cycles of a damaged file.
bool is_within(const Trace& trace, Id<Op> op, Id<Op> around);

// ---- module paths and the layer in them -------------------------------------------------------

/// The module that is the layer around a module: "encoder.layer.3". Empty outside of layers.
std::string_view layer_path_of(const Trace& trace, Id<ModulePath> module);

/// A path around its layer: "encoder.layer.3" and "attention.self". Outside of layers (`layer_path`
/// empty): its first name and the rest. A path that does not lie in that layer stands whole in
/// `layer`.
struct LayerPath {
    std::string_view layer;
    std::string_view inside;
};
LayerPath split_layer_path(std::string_view path, std::string_view layer_path);

/// The same for all layers of a stack: "encoder.layer.*.attention.self". Outside of layers the path
/// itself.
std::string any_layer_path(std::string_view path, std::string_view layer_path);

/// "layer.3" of "encoder.layer.3" in "encoder"; the whole path if it does not lie in `around`.
std::string_view path_below(std::string_view path, std::string_view around);

// The line of code that asked for an allocation, found in its call stack.
//
// The site is the innermost of the best frames that the stack has:
//
//     1. Python code of the program: "cs336_basics/model.py:54 forward"
//     2. Python code of an installed package: "llama/modeling_llama.py:120 forward"
//     3. a node of autograd, whose thread runs no Python: "autograd MulBackward0"
//     4. Python code of a library that only runs ops: "modules/linear.py:125 forward"
//     5. a mark, which stands beside the frames (is_mark_file): "<user_metadata> step 3"
//     6. "outside of Python"
//
// Libraries that only run ops are Python's own, and the packages torch, functorch, triton and
// einops, by the path of the file. A line of the program that runs a whole package, as that which
// calls a model of transformers, says less than the package's lines: where more than
// kMostPackageLines of these ask for memory below it, they are the sites. File names keep their
// last folder.

/// "bert/model.py:54 forward" without ":54", and without "bert/".
std::string without_line(std::string_view site);
std::string_view without_folder(std::string_view site);

inline constexpr std::string_view kOutsideOfPython = "outside of Python";
inline constexpr std::size_t kMostPackageLines = 8;

class CallSites {
public:
    /// The trace must outlive this.
    explicit CallSites(const Trace& trace);

    /// Whether a line of Python, or a node of autograd, stands for it.
    bool is_of_python(Id<Stack> stack) const;
    /// "no stack" for none.
    std::string of(Id<Stack> stack) const;

    /// The best first.
    enum class FrameKind : uint8_t { kProgram, kPackage, kAutograd, kLibrary, kMark, kOther };
    /// kOther for none.
    FrameKind kind_of(Id<Frame> frame) const;
    /// One frame, as `of` writes it: "cs336_basics/model.py:54 forward".
    std::string label_of(Id<Frame> frame) const;
    /// The text of that line; empty where it was not recorded.
    std::string_view code_of(Id<Frame> frame) const;
    std::string_view code_of(Id<Stack> stack) const;

    /// The innermost line of the program or a package in one stack, without a search through all
    /// others. None: the stack has no such line.
    static Id<Frame> program_frame_of(const Trace& trace, Id<Stack> stack);

private:
    /// By stack: its innermost line of the program, and that of a package inside of it.
    struct Lines {
        Id<Frame> program;
        Id<Frame> package;
    };
    void find_sites();
    void prefer_lines_of_packages();
    static FrameKind kind_of(const Trace& trace, const Frame& frame);

    const Trace& trace_;
    std::vector<FrameKind> kind_of_frame_;
    std::vector<Lines> lines_of_stack_;
    std::vector<Id<Frame>> site_of_stack_;
};

}  // namespace profiler
