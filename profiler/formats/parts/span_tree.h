#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace profiler::kineto {

/// The nested spans of one thread: who lies in whom, and which one runs at a time.
///
///     |        linear         |    | dropout |
///       | t |   | addmm    |         | mul |
///
/// O(n log n) to build, O(log n) to ask. Spans that overlap without nesting, which rounded times
/// make, count as nested.
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
            ways_.push_back(way_from(static_cast<int32_t>(i)));
            open.push_back(static_cast<int32_t>(i));
        }
    }

    /// By start; a parent comes before its children.
    const std::vector<Node>& nodes() const { return nodes_; }
    const Node& at(int32_t node) const { return nodes_[static_cast<std::size_t>(node)]; }

    /// The innermost span that holds `time_ns`, both its ends included; -1 for none.
    int32_t innermost(int64_t time_ns) const {
        const auto after = std::ranges::upper_bound(nodes_, time_ns, {}, &Node::start_ns);
        auto node = static_cast<int32_t>(after - nodes_.begin()) - 1;
        while (node >= 0 && at(node).end_ns < time_ns) {
            const auto [outlasting, jump, length] = way(node);
            node = jump >= 0 && at(jump).end_ns < time_ns ? jump : outlasting;
        }
        return node;
    }

private:
    /// From a span outwards, over spans that end ever later. The jumps make a skew-binary list:
    /// E. W. Myers, "An applicative random-access stack", 1983.
    struct Way {
        int32_t outlasting = -1;  // the innermost span around it that ends later
        int32_t jump = -1;        // one further out
        int32_t length = 1;       // spans up to the outermost
    };

    const Way& way(int32_t node) const { return ways_[static_cast<std::size_t>(node)]; }
    int32_t length(int32_t node) const { return node < 0 ? 0 : way(node).length; }

    Way way_from(int32_t node) const {
        int32_t outer = at(node).parent;
        while (outer >= 0 && at(outer).end_ns <= at(node).end_ns) outer = way(outer).outlasting;
        if (outer < 0) return {};
        const int32_t jump = way(outer).jump;
        const int32_t further = jump < 0 ? -1 : way(jump).jump;
        const bool is_even = length(outer) - length(jump) == length(jump) - length(further);
        return {
            .outlasting = outer, .jump = is_even ? further : outer, .length = length(outer) + 1};
    }

    std::vector<Node> nodes_;
    std::vector<Way> ways_;  // of each node
};

}  // namespace profiler::kineto
