#pragma once

#include "profiler/analysis/step_index.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/trace.h"
#include "profiler/view/time_map.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the Flame graph draws: the bytes that are allocated at one moment, as a tree from the whole
/// memory over modules to tensors.
///
///     | all memory                                          |
///     | encoder                                | cls        |
///     | layer.0     | layer.1     | layer.2    | decoder    |
///     | self | out  | self | out  | self | out | logits     |
///
/// A trace without modules gives the tree of its call stacks, as one with both does when asked to;
/// then that of its ops, then its categories. Without a chosen moment each trace is read at its own
/// peak; else the second one at the counterpart of the moment on its own clock.
namespace profiler {

enum class FlameMode : uint8_t { kA, kB, kDifference };

/// What the inner nodes are.
enum class FlameTree : uint8_t { kModules, kStacks, kOps, kCategories };

/// Deeper levels of a path (of a damaged file, or of a deep recursion) are left out.
inline constexpr std::size_t kMaxFlameDepth = 64;

struct FlameRequest {
    Steps steps;
    std::shared_ptr<const Alignment> alignment;  // of the second trace; null: the same clock
    std::optional<double> moment_ns;  // on the first trace's clock; empty: the peak of each
    FlameMode mode = FlameMode::kA;   // without a second trace: always the first
    bool combine_layers = false;      // the same module and tensor of all layers as one
    bool by_stack = false;            // the tree of call stacks, where the trace has both
    std::string search;               // nodes whose path contains every word, in any case

    friend bool operator==(const FlameRequest&, const FlameRequest&) = default;
};

struct FlameNode {
    StringId text;  // in FlameView::texts
    StringId code;  // of a line of code: its text, where it was recorded
    int32_t parent = -1;
    int32_t first_child = 0;  // the children of a node are adjacent
    int32_t child_count = 0;
    std::array<int64_t, 2> bytes{};  // of A and of B; 0 for a trace that is not shown
    std::array<int64_t, 2> count{};  // number of allocations
    /// What the width of the node shows. Of a tensor the larger of both; of an inner node the sum
    /// of its children, so that a level never is wider than the one above.
    int64_t width_bytes = 0;
    int32_t layer = -1;                      // of a layer's own node
    int32_t mix = -1;                        // in FlameView::mixes; -1: all bytes are of `category`
    Category category = Category::kUnknown;  // of most bytes
    bool is_tensor = false;                  // a leaf: one allocation, or several of one name
    bool in_b = false;                       // where `allocation` is
    bool matches = false;                    // the search; also inside of a node that matches
    Id<Allocation> allocation;               // of a leaf: the largest one
};

struct FlameView {
    FlameMode mode = FlameMode::kA;
    FlameTree tree = FlameTree::kModules;
    std::vector<FlameNode> nodes;  // [0] is the root; parents come before their children
    StringTable texts;
    std::vector<CategoryBytes> mixes;
    std::vector<Category> categories;  // that occur, in kCategoryStackOrder
    std::string moment_text;           // "at the peak of A: 12.3 GiB, backward of step 1, 412 ms"
    std::string tree_text;             // "by module"
    std::string search_text;           // "48 tensors match: 1.50 GiB, 12.1 %"; empty: no search
    bool has_second = false;
    bool has_choice = false;  // both modules and call stacks

    const FlameNode& root() const { return nodes.front(); }
    std::string_view text_of(const FlameNode& node) const { return texts[node.text]; }
};

FlameView build_flame_view(const FlameRequest& request);

/// Whether the trace says nothing of categories, as a memory snapshot of PyTorch does. Colours then
/// tell files apart.
inline bool has_no_categories(const FlameView& view) {
    return view.categories.size() == 1 && view.categories[0] == Category::kUnknown;
}

/// "dropped_probs ×24"
std::string label_of(const FlameView& view, const FlameNode& node);
/// "encoder.layer.3.attention.self.dropped_probs"; frames of a stack are joined by " > ".
std::string path_of(const FlameView& view, std::size_t node);
/// The texts of the nodes from below the root to `node`. They find the node in another view.
std::vector<std::string> names_of(const FlameView& view, std::size_t node);
/// The deepest node on that path that the view has.
std::size_t find_node(const FlameView& view, const std::vector<std::string>& names);

// ---- layout ---------------------------------------------------------------------------------

/// A rectangle of the picture. Its left and right are pixels from the left edge.
struct FlameBox {
    int32_t node = -1;  // -1: neighbours that are narrower than a pixel, as one box
    int32_t parent = -1;
    int32_t row = 0;
    float left = 0;
    float right = 0;
    int64_t merged_count = 0;  // of the nodes in the box
    int64_t merged_bytes = 0;  // their width
};

struct FlameLayout {
    std::vector<FlameBox> boxes;  // row by row, each from left to right
    int32_t row_count = 0;
};

/// Places the node `focus` and all below it in a picture of this width. The cost depends on the
/// number of boxes and not on the number of nodes: siblings are sorted by size, so a row ends where
/// the first node is narrower than a pixel.
FlameLayout lay_out_flame(const FlameView& view, std::size_t focus, float width_px);

// ---- texts ----------------------------------------------------------------------------------

/// Everything about one node, for a tooltip.
struct FlameReadout {
    struct Part {
        Category category = Category::kUnknown;
        std::string bytes;  // "1.50 GiB"
        std::string share;  // of the node: "12.1 %"
    };
    std::string title;  // path_of; "all memory" for the root
    std::vector<std::pair<std::string, std::string>> rows;
    std::vector<Part> categories;  // largest first
};
FlameReadout read_flame(const FlameView& view, std::size_t node);

/// "+1.50 GiB", "-512 MiB"; "±0 B" where nothing changes.
std::string change_text(const FlameNode& node);

/// The tree below `node` for the clipboard: indented text, or CSV with a row per node. After
/// kMaxCopiedNodes nodes a last line says how many are left out.
inline constexpr std::size_t kMaxCopiedNodes = 100'000;
std::string flame_as_text(const FlameView& view, std::size_t node);
std::string flame_as_csv(const FlameView& view, std::size_t node);

// ---- tables for other programs ------------------------------------------------------------------

/// A row for each node from the root down, with its path.
DataTable flame_data(const FlameView& view);

}  // namespace profiler
