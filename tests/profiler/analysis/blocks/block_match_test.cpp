#include "profiler/analysis/blocks/block_history.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace profiler {
namespace {

using Blocks = std::vector<std::pair<std::string, int64_t>>;  // op and bytes

Trace make(const Blocks& blocks) {
    tests::TraceBuilder b;
    for (const auto& [op, bytes] : blocks) b.allocate({.bytes = bytes, .op = b.op(op)});
    return b.finish();
}

std::vector<std::pair<int32_t, int32_t>> matches(const Blocks& first, const Blocks& second) {
    std::vector<std::pair<int32_t, int32_t>> rows;
    for (const BlockPair& pair : match_blocks(make(first), make(second))) {
        rows.emplace_back(pair.first.value, pair.second.value);
    }
    return rows;
}

using Rows = std::vector<std::pair<int32_t, int32_t>>;

TEST(MatchBlocks, FindsTheSameBlocksAroundNewOnes) {
    const Blocks first{{"mul", 512}, {"add", 1024}, {"gelu", 64}, {"mul", 512}};
    const Blocks second{{"mul", 512}, {"new", 2048}, {"add", 1024}, {"mul", 512}, {"gelu", 128}};
    EXPECT_EQ(matches(first, second), (Rows{{0, 0}, {1, 2}, {3, 3}}));
    EXPECT_EQ(matches(first, first), (Rows{{0, 0}, {1, 1}, {2, 2}, {3, 3}}));
    EXPECT_EQ(matches(first, {{"other", 1}}), Rows{});
}

TEST(MatchBlocks, KeepsTheLongestListInTheOrderOfBoth) {
    const Blocks first{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}};
    const Blocks second{{"d", 4}, {"b", 2}, {"c", 3}, {"a", 1}};
    EXPECT_EQ(matches(first, second), (Rows{{1, 1}, {2, 2}}));
}

TEST(WithoutLine, LeavesTheFileAndTheFunction) {
    EXPECT_EQ(without_line("bert/model.py:54 forward"), "bert/model.py forward");
    EXPECT_EQ(without_line("a::b:c"), "a::b:c");
    EXPECT_EQ(without_line("outside of Python"), "outside of Python");
}

}  // namespace
}  // namespace profiler
