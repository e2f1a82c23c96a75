#include "profiler/analysis/step/value_reads.h"

#include "profiler/analysis/step/expert_routing.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace profiler {
namespace {

/// A trace whose reads happen in lines of train.py; line 0: on a thread without Python.
class ValueReads : public testing::Test {
protected:
    void add(int64_t line, std::string_view op, ValueReadKind kind, int64_t count,
             std::string_view answer = "zeros", std::array<int64_t, 3> experts = {}) {
        Id<Stack> stack;
        if (line > 0) {
            const Id<Frame> frame = trace_.frames.append(
                {.function = text("main"), .file = text("/home/me/my/train.py"), .line = line});
            stack = trace_.stacks.append({.frame = frame});
        }
        trace_.value_reads.append({.stack = stack,
                                   .op = text(op),
                                   .kind = kind,
                                   .count = count,
                                   .answer = text(answer),
                                   .num_tokens = experts[0],
                                   .num_experts = experts[1],
                                   .experts_per_token = experts[2]});
    }
    StringId text(std::string_view words) { return trace_.strings.intern(words); }

    std::string reads() const { return value_read_sentence(value_read_lines(trace_)); }
    std::string assumed() const { return assumption_sentence(value_read_lines(trace_)); }

    Trace trace_;
};

TEST_F(ValueReads, AProgramThatReadsNoneGetsNoWord) {
    EXPECT_EQ(reads(), "");
    add(3, "aten::norm", ValueReadKind::kAssumed, 7, "1");
    EXPECT_EQ(reads(), "");
    EXPECT_EQ(assumed(), "");
}

TEST_F(ValueReads, TheWorstComeFirstAndSayWhatFollows) {
    add(9, "aten::item", ValueReadKind::kNumber, 5000);
    EXPECT_EQ(reads(),
              "The program read 5,000 values that the simulated GPU does not compute, as zeros: "
              "my/train.py:9 main (item, 5,000 times). Memory does not depend on numbers that are "
              "only printed or stored.");
    add(4, "aten::nonzero", ValueReadKind::kSize, 1);
    add(0, "aten::index", ValueReadKind::kSize, 2);
    EXPECT_EQ(
        reads(),
        "The program read 5,003 values that the simulated GPU does not compute, as zeros: in "
        "backward (index, 2 times), my/train.py:4 main (nonzero, once) and my/train.py:9 main "
        "(item, 5,000 times). Sizes that depend on them are wrong.");
}

TEST_F(ValueReads, OneLineIsNamedOnceAndManyAreCounted) {
    for (int64_t line = 1; line <= 5; ++line) {
        add(line, "aten::_unique2", ValueReadKind::kSize, line);
        add(line, "aten::_unique2", ValueReadKind::kSize, line);
    }
    const std::vector<ValueReadLine> lines = value_read_lines(trace_);
    ASSERT_EQ(lines.size(), 5U);
    EXPECT_EQ(lines.front().count, 10);
    EXPECT_NE(reads().find("(_unique2, 6 times) and 2 more places. "), std::string::npos)
        << reads();
}

TEST_F(ValueReads, RoutingIsAnAssumption) {
    add(31, "aten::topk", ValueReadKind::kRouting, 24, "worst:1.5 routing");
    EXPECT_EQ(reads(), "");
    EXPECT_EQ(assumed(),
              "Which experts get a token is not known: worst:1.5 routing was assumed at "
              "my/train.py:31 main (topk, 24 times).");
    EXPECT_EQ(expert_routing_of(trace_)->routing, "worst:1.5");
}

TEST_F(ValueReads, TheLayerWithTheMostExpertsCounts) {
    add(30, "aten::topk", ValueReadKind::kRouting, 24, "balanced routing", {4096, 8, 4});
    add(31, "aten::topk", ValueReadKind::kRouting, 24, "balanced routing", {4096, 64, 6});
    add(32, "aten::topk", ValueReadKind::kRouting, 8, "balanced routing", {1024, 64, 6});
    add(40, "aten::argmax", ValueReadKind::kAssumed, 3, "uniform places");
    trace_.runs.append({.imbalanced_peak_bytes = 3 << 20});
    const auto experts = expert_routing_of(trace_);
    ASSERT_TRUE(experts);
    EXPECT_EQ(experts->routing, "balanced");
    EXPECT_EQ(experts->num_experts, 64);
    EXPECT_EQ(experts->tokens_per_expert, 384);
    EXPECT_EQ(experts->most_tokens, 576);
    EXPECT_EQ(
        routing_sentence(trace_, value_read_lines(trace_), 2 << 20),
        "Which experts get a token is not known: balanced routing was assumed at "
        "my/train.py:30 main (topk, 24 times), my/train.py:31 main (topk, 24 times) and "
        "my/train.py:32 main (topk, 8 times). "
        "64 experts got 384 tokens each. If the first one gets 1.5 times as many, the peak is "
        "3.00 MiB in place of 2.00 MiB.");
}

TEST_F(ValueReads, TheFullestExpertGetsAtMostAllTokens) {
    trace_.runs.append({});
    add(31, "aten::topk", ValueReadKind::kRouting, 24, "worst:9 routing", {4096, 8, 2});
    const std::string text = routing_sentence(trace_, value_read_lines(trace_), 0);
    const std::string_view end =
        " 8 experts got 1,024 tokens each on average, the fullest 4,096, all that there are.";
    EXPECT_TRUE(text.ends_with(end)) << text;
}

TEST_F(ValueReads, ARoutingThatNobodyKnowsIsNone) {
    add(31, "aten::topk", ValueReadKind::kRouting, 24, "$(reboot) routing");
    EXPECT_FALSE(expert_routing_of(trace_));
}

}  // namespace
}  // namespace profiler
