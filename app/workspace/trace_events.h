#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace app {

struct Document;

/// Which traces are open, and which of them are A and B. A null document means "none".
struct TraceEvents {
    std::vector<std::filesystem::path> open;
    std::shared_ptr<const Document> close;
    bool ask_for_files = false;  // show the file dialog
    bool open_examples = false;
    bool cancel_loading = false;
    std::optional<std::shared_ptr<const Document>> set_a;
    std::optional<std::shared_ptr<const Document>> set_b;
    std::optional<std::size_t> column;  // of the comparison: its trace becomes B, unless it is A
    bool keep_trial = false;
};

}  // namespace app
