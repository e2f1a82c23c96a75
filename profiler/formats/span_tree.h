#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace profiler::kineto {

/// The nested spans of one thread: who lies in whom, and which one runs at a time.
///
///     |        linear         |    | dropout |
///       | t |   | addmm    |         | mul |
///
/// O(n log n) to build, O(log n + depth) to ask. Spans that overlap without nesting, which rounded
/// times make, count as nested.
class SpanTree {
public:
    struct Node {
        int64_t start_ns = 0;
        int64_t end_ns = 0;
        uint32_t item = 0;    // what the caller calls the span
        int32_t parent = -1;  // index into nodes()
    };

    SpanTree() = default;
    explicit SpanTree(std::vector<Node> nodes) : nodes_(std::move(nodes)) {
        std::stable_sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) {
            return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
        });
        std::vector<int32_t> open;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            while (!open.empty() && at(open.back()).end_ns <= nodes_[i].start_ns) open.pop_back();
            nodes_[i].parent = open.empty() ? -1 : open.back();
            open.push_back(static_cast<int32_t>(i));
        }
    }

    /// By start; a parent comes before its children.
    const std::vector<Node>& nodes() const { return nodes_; }
    const Node& at(int32_t node) const { return nodes_[static_cast<std::size_t>(node)]; }

    /// The innermost span that holds `time_ns`, both its ends included; -1 for none.
    int32_t innermost(int64_t time_ns) const {
        const auto after =
            std::upper_bound(nodes_.begin(), nodes_.end(), time_ns,
                             [](int64_t time, const Node& node) { return time < node.start_ns; });
        auto node = static_cast<int32_t>(after - nodes_.begin()) - 1;
        while (node >= 0 && at(node).end_ns < time_ns) node = at(node).parent;
        return node;
    }

private:
    std::vector<Node> nodes_;
};

}  // namespace profiler::kineto
