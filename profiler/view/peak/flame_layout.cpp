#include "profiler/view/peak/flame_view.h"

#include <algorithm>

namespace profiler {
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
