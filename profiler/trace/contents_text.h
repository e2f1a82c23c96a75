#pragma once

#include "profiler/trace/trace.h"

#include <optional>
#include <string>
#include <string_view>

/// What a block contains, as the text that a PyTorch snapshot holds beside the block's frames
/// (`user_metadata`). memory_viz shows it; a reader takes category and name from it.
namespace profiler {

struct BlockContents {
    Category category = Category::kUnknown;
    std::string_view name;  // of a tensor; may be empty
    // Of a tensor that autograd saved, where torch alone recorded (_torch_alone.py):
    bool is_saved = false;
    std::string_view shape;  // "[1024, 256]"
    DType dtype = DType::kOther;
};

/// "parameter: encoder.layer.0.weight", or "temporary" for a block without a name.
std::string to_text(Category category, std::string_view name);

/// Of such a text, and of "activation: layers.0.norm1, saved [1024, 256] float32". None for a text
/// that does not begin with a category. Points into `text`.
std::optional<BlockContents> parse_contents(std::string_view text);

/// Gives the storages of a trace of a snapshot the categories, names and saves that its texts tell.
void take_contents(Trace& trace);

}  // namespace profiler
