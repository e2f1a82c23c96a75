#include "profiler/tables/columns.h"
#include "profiler/trace/printable.h"
#include "profiler/trace/units.h"
#include "profiler/view/peak/flame_view.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>

#include <algorithm>

namespace profiler {
namespace {

std::size_t shown_trace(const FlameView& view) { return view.mode == FlameMode::kB ? 1 : 0; }

std::string share_of(int64_t part, int64_t whole) {
    return format_percent(whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0);
}

std::string bytes_text(int64_t bytes) {
    return fmt::format("{}  ({})", format_bytes(bytes), format_exact_bytes(bytes));
}

/// The bytes of each category in a node, largest first.
std::vector<std::pair<Category, int64_t>> parts_of(const FlameView& view, const FlameNode& node) {
    std::vector<std::pair<Category, int64_t>> parts;
    if (node.mix < 0) return {{node.category, node.bytes[0] + node.bytes[1]}};
    const CategoryBytes& mix = view.mixes[static_cast<std::size_t>(node.mix)];
    for (const Category category : kCategoryStackOrder) {
        const int64_t bytes = mix[static_cast<std::size_t>(category)];
        if (bytes > 0) parts.emplace_back(category, bytes);
    }
    std::ranges::stable_sort(parts,
                             [](const auto& a, const auto& b) { return a.second > b.second; });
    return parts;
}

/// Calls `visit(node, depth)` from `top` downwards, depth first and in the order of the picture.
/// Returns the number of nodes that it left out.
template <typename Visit>
std::size_t visit_some(const FlameView& view, std::size_t top, Visit&& visit) {
    struct Open {
        std::size_t node;
        std::size_t depth;
    };
    std::vector<Open> open{{top, 0}};
    std::size_t visited = 0;
    std::size_t left_out = 0;
    while (!open.empty()) {
        const Open at = open.back();
        open.pop_back();
        const FlameNode& node = view.nodes[at.node];
        if (visited < kMaxCopiedNodes) {
            visit(node, at.node, at.depth);
            ++visited;
        } else {
            ++left_out;
        }
        for (int32_t c = node.child_count; c-- > 0;) {
            open.push_back({static_cast<std::size_t>(node.first_child + c), at.depth + 1});
        }
    }
    return left_out;
}

}  // namespace

std::string label_of(const FlameView& view, const FlameNode& node) {
    const int64_t count = std::max(node.count[0], node.count[1]);
    if (!node.is_tensor || count <= 1) return std::string(view.text_of(node));
    return fmt::format("{} ×{}", view.text_of(node), format_count(count));
}

std::vector<std::string> names_of(const FlameView& view, std::size_t node) {
    std::vector<std::string> names;
    for (; view.nodes[node].parent >= 0; node = static_cast<std::size_t>(view.nodes[node].parent)) {
        names.emplace_back(view.text_of(view.nodes[node]));
    }
    std::ranges::reverse(names);
    return names;
}

std::string path_of(const FlameView& view, std::size_t node) {
    const std::string_view joint = view.tree == FlameTree::kModules ? "." : " > ";
    std::string path;
    for (const std::string& name : names_of(view, node)) {
        if (!path.empty()) path += joint;
        path += name;
    }
    return path;
}

std::size_t find_node(const FlameView& view, const std::vector<std::string>& names) {
    std::size_t node = 0;
    for (const std::string& name : names) {
        const FlameNode& at = view.nodes[node];
        const auto first = view.nodes.begin() + at.first_child;
        const auto last = first + at.child_count;
        const auto found = std::find_if(first, last, [&](const FlameNode& child) {
            return !child.is_tensor && view.text_of(child) == name;
        });
        if (at.child_count == 0 || found == last) break;
        node = static_cast<std::size_t>(found - view.nodes.begin());
    }
    return node;
}

std::string change_text(const FlameNode& node) {
    const int64_t change = node.bytes[1] - node.bytes[0];
    return change == 0 ? "±0 B" : change_in_bytes(change);
}

FlameReadout read_flame(const FlameView& view, std::size_t index) {
    const FlameNode& node = view.nodes[index];
    const FlameNode& root = view.root();
    FlameReadout readout;
    readout.title = index == 0 ? std::string(view.text_of(root)) : path_of(view, index);
    const auto add = [&](std::string label, std::string value) {
        readout.rows.emplace_back(std::move(label), std::move(value));
    };
    if (node.code.valid()) add("code", std::string(view.texts[node.code]));
    const std::size_t t = shown_trace(view);
    if (view.mode == FlameMode::kDifference) {
        add("A", bytes_text(node.bytes[0]));
        add("B", bytes_text(node.bytes[1]));
        add("B - A", change_text(node));
        add("tensors", fmt::format("{} in A, {} in B", format_count(node.count[0]),
                                   format_count(node.count[1])));
    } else {
        add("bytes", bytes_text(node.bytes[t]));
        add("share", share_of(node.bytes[t], root.bytes[t]));
        if (node.parent > 0) {
            const FlameNode& around = view.nodes[static_cast<std::size_t>(node.parent)];
            add("", fmt::format("{} of {}", share_of(node.bytes[t], around.bytes[t]),
                                view.text_of(around)));
        }
        if (!node.is_tensor || node.count[t] != 1) add("tensors", format_count(node.count[t]));
    }
    int64_t whole = 0;
    const auto parts = parts_of(view, node);
    for (const auto& part : parts) whole += part.second;
    for (const auto& [category, bytes] : parts) {
        readout.categories.push_back({category, format_bytes(bytes), share_of(bytes, whole)});
    }
    return readout;
}

std::string flame_as_text(const FlameView& view, std::size_t top) {
    std::string text = view.moment_text + "\n";
    const std::size_t t = shown_trace(view);
    const std::size_t left_out =
        visit_some(view, top, [&](const FlameNode& node, std::size_t, std::size_t depth) {
            const std::string bytes =
                view.mode == FlameMode::kDifference
                    ? fmt::format("A {}  B {}  {}", format_bytes(node.bytes[0]),
                                  format_bytes(node.bytes[1]), change_text(node))
                    : fmt::format("{}  {}", format_bytes(node.bytes[t]),
                                  share_of(node.bytes[t], view.root().bytes[t]));
            text +=
                fmt::format("{:{}}{}  {}\n", "", 2 * depth, printable(label_of(view, node)), bytes);
        });
    if (left_out > 0)
        text += fmt::format("… {} more\n", format_count(static_cast<int64_t>(left_out)));
    return text;
}

std::string flame_as_csv(const FlameView& view, std::size_t top) {
    const bool both = view.mode == FlameMode::kDifference;
    const std::size_t t = shown_trace(view);
    std::string text = both ? "path,kind,category,tensors,size_bytes,other_size_bytes\n"
                            : "path,kind,category,tensors,size_bytes\n";
    const std::size_t left_out =
        visit_some(view, top, [&](const FlameNode& node, std::size_t index, std::size_t) {
            text += fmt::format("{},{},{},{},{}", csv_cell(path_of(view, index)),
                                node.is_tensor ? "tensor" : "group", name_of(node.category),
                                std::max(node.count[0], node.count[1]), node.bytes[both ? 0 : t]);
            text += both ? fmt::format(",{}\n", node.bytes[1]) : "\n";
        });
    if (left_out > 0) text += fmt::format("{} more,,,,\n", left_out);
    return text;
}

namespace {

/// Places the children of one box from left to right.
class RowFiller {
public:
    RowFiller(const FlameView& view, FlameLayout& layout, FlameBox parent, double bytes_per_px)
        : view_(view), layout_(layout), parent_(parent), bytes_per_px_(bytes_per_px) {}

    void fill() {
        const FlameNode& node = view_.nodes[static_cast<std::size_t>(parent_.node)];
        int64_t left_bytes = node.width_bytes;
        for (int32_t c = 0; c < node.child_count; ++c) {
            const int32_t child = node.first_child + c;
            const FlameNode& at = view_.nodes[static_cast<std::size_t>(child)];
            const bool is_narrow = static_cast<double>(at.width_bytes) < bytes_per_px_;
            if (is_narrow && at.layer < 0) {
                // From here on all are narrower still.
                merged_count_ += node.child_count - c;
                merged_bytes_ += left_bytes;
                break;
            }
            left_bytes -= at.width_bytes;
            if (is_narrow) {
                ++merged_count_;
                merged_bytes_ += at.width_bytes;
                continue;
            }
            flush();
            add({.node = child}, at.width_bytes);
        }
        flush();
    }

private:
    void add(FlameBox box, int64_t bytes) {
        box.parent = parent_.node;
        box.row = parent_.row + 1;
        box.left =
            parent_.left + static_cast<float>(static_cast<double>(done_bytes_) / bytes_per_px_);
        done_bytes_ += bytes;
        box.right =
            parent_.left + static_cast<float>(static_cast<double>(done_bytes_) / bytes_per_px_);
        layout_.boxes.push_back(box);
    }

    void flush() {
        if (static_cast<double>(merged_bytes_) >= bytes_per_px_) {
            add({.merged_count = merged_count_, .merged_bytes = merged_bytes_}, merged_bytes_);
        } else {
            done_bytes_ += merged_bytes_;
        }
        merged_count_ = merged_bytes_ = 0;
    }

    const FlameView& view_;
    FlameLayout& layout_;
    const FlameBox parent_;
    const double bytes_per_px_;
    int64_t done_bytes_ = 0;
    int64_t merged_count_ = 0;
    int64_t merged_bytes_ = 0;
};

}  // namespace

FlameLayout lay_out_flame(const FlameView& view, std::size_t focus, float width_px) {
    FlameLayout layout;
    if (focus >= view.nodes.size() || !(width_px >= 1)) return layout;
    const FlameNode& top = view.nodes[focus];
    if (top.width_bytes <= 0) return layout;
    const double bytes_per_px = static_cast<double>(top.width_bytes) / width_px;
    layout.boxes.push_back(
        {.node = static_cast<int32_t>(focus), .parent = top.parent, .right = width_px});
    for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
        const FlameBox box = layout.boxes[i];  // by value: the vector grows
        layout.row_count = std::max(layout.row_count, box.row + 1);
        if (box.node >= 0) RowFiller(view, layout, box, bytes_per_px).fill();
    }
    return layout;
}

}  // namespace profiler
