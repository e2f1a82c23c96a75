#include "profiler/capture/python/final_categories.h"

#include "profiler/capture/python/keeper_rows.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace profiler;
using nlohmann::json;

class FinalCategories : public testing::Test {
protected:
    Id<Op> use(Id<Allocation> block) {
        const Id<Op> op = b_.op("aten::add");
        b_.trace().op_tensors.append({.op = op, .tensor = Id<Tensor>(block.index())});
        return op;
    }
    void add(Id<Allocation> block, const std::vector<std::string>& kinds) {
        auto keepers = json::array();
        for (const std::string& kind : kinds) {
            keepers.push_back({{"kind", kind}, {"text", "`x`"}, {"file", ""}, {"line", 0}});
        }
        add_keepers({{{"allocation", block.value}, {"keepers", keepers}}}, b_.next_event(),
                    b_.trace());
    }
    Category category_of(Id<Allocation> block) { return category_of_block(b_.trace(), block); }

    tests::TraceBuilder b_;
};

TEST_F(FinalCategories, WhatTheSameOpMadeInAnotherStepIsHeldToo) {
    const auto block = [&](std::string_view op, Category category) {
        return b_.allocate({.bytes = 10, .category = category, .op = b_.op(op)});
    };
    const auto like = block("aten::addmm", Category::kUnknown);
    const auto saved = block("aten::addmm", Category::kActivation);
    const auto other = block("aten::mul", Category::kUnknown);
    const auto outside = b_.allocate({.bytes = 10, .category = Category::kUnknown});
    block("aten::addmm", Category::kHeld);
    name_likes_of_kept(b_.trace());
    EXPECT_EQ(category_of(like), Category::kHeld);
    EXPECT_EQ(category_of(saved), Category::kActivation);
    EXPECT_EQ(category_of(other), Category::kUnknown);
    EXPECT_EQ(category_of(outside), Category::kUnknown);
}

TEST_F(FinalCategories, WhatTheSameOpMadeAsAGradientInAnotherStepIsOneToo) {
    const auto block = [&](std::string_view op, Category category) {
        return b_.allocate({.bytes = 10, .category = category, .op = b_.op(op)});
    };
    const auto like = block("aten::add", Category::kUnknown);
    const auto of_both = block("aten::mm", Category::kUnknown);
    block("aten::add", Category::kGradient);
    block("aten::mm", Category::kGradient);
    block("aten::mm", Category::kHeld);
    name_likes_of_kept(b_.trace());
    EXPECT_EQ(category_of(like), Category::kGradient);
    EXPECT_EQ(category_of(of_both), Category::kUnknown);
}

TEST_F(FinalCategories, BlocksOfOneSizeFromBeforeTheFirstStepAreAlike) {
    const auto block = [&](int64_t bytes) {
        return b_.allocate({.bytes = bytes, .category = Category::kUnknown});
    };
    const auto held = block(64);
    const auto like = block(64);
    const auto other = block(32);
    const auto of_another_line = block(64);
    b_.trace().allocations.set<&Allocation::stack>(of_another_line, Id<Stack>(0));
    b_.begin_step();
    const auto in_step = block(64);
    add(held, {"container"});
    name_likes_of_kept(b_.trace());
    EXPECT_EQ(category_of(held), Category::kHeld);
    EXPECT_EQ(category_of(like), Category::kHeld);
    EXPECT_EQ(category_of(other), Category::kUnknown);
    EXPECT_EQ(category_of(of_another_line), Category::kUnknown);
    EXPECT_EQ(category_of(in_step), Category::kUnknown);
}

TEST_F(FinalCategories, WhatAModuleMakesAndBackwardReadsIsAnActivation) {
    const auto layer = b_.module_path("encoder.layer.0", 0);
    b_.begin_step(PhaseKind::kForward);
    const auto kept = b_.allocate({.bytes = 10, .op = b_.op("aten::mm", layer)});
    const auto of_forward = b_.allocate({.bytes = 10, .op = b_.op("aten::mm", layer)});
    const auto outside = b_.allocate({.bytes = 10, .op = b_.op("aten::ones_like")});
    use(of_forward);
    b_.begin_phase(PhaseKind::kBackward);
    const auto of_backward = b_.allocate({.bytes = 10, .op = b_.op("aten::mm", layer)});
    for (const auto block : {kept, outside, of_backward}) use(block);
    name_kept_for_backward(b_.trace());
    EXPECT_EQ(category_of(kept), Category::kActivation);
    EXPECT_EQ(category_of(of_forward), Category::kTemporary);
    EXPECT_EQ(category_of(outside), Category::kTemporary) << "backward begins with it";
    EXPECT_EQ(category_of(of_backward), Category::kTemporary);
}

TEST_F(FinalCategories, WhatACheckpointMakesAgainAndBackwardReadsIsRecomputed) {
    const auto layer = b_.module_path("encoder.layer.0", 0);
    b_.begin_step(PhaseKind::kForward);
    const auto forward = b_.op("aten::mm", layer);
    b_.begin_phase(PhaseKind::kBackward);
    const auto checkpoint = b_.op("torch.utils.checkpoint::checkpoint", layer);
    b_.trace().ops.set<&Op::forward>(checkpoint, forward);
    const auto again = b_.op("aten::mm", layer);
    b_.trace().ops.set<&Op::parent>(again, checkpoint);
    b_.trace().ops.set<&Op::forward>(again, forward);
    const auto read = b_.allocate({.bytes = 10, .op = again});
    const auto saved = b_.allocate({.bytes = 10, .category = Category::kActivation, .op = again});
    const auto scratch = b_.allocate({.bytes = 10, .op = again});
    const auto of_backward = b_.allocate({.bytes = 10, .op = b_.op("aten::mul", layer)});
    for (const auto block : {read, saved, of_backward}) use(block);
    name_recomputed(b_.trace());
    EXPECT_EQ(category_of(read), Category::kRecomputed);
    EXPECT_EQ(category_of(saved), Category::kRecomputed);
    EXPECT_EQ(category_of(scratch), Category::kTemporary) << "nothing in backward reads it";
    EXPECT_EQ(category_of(of_backward), Category::kTemporary);
}

/// A model of three parameters, whose average in fp32 is made before the first step.
TEST_F(FinalCategories, BlocksWithTheSizesOfAllParametersAreCopiesOfThem) {
    const auto parameter = [&](std::string_view name, int64_t bytes) {
        const auto block = b_.allocate(
            {.bytes = bytes, .category = Category::kParameter, .name = std::string(name)});
        return block;
    };
    const auto block = [&](int64_t bytes) {
        return b_.allocate({.bytes = bytes, .category = Category::kHeld});
    };
    parameter("fc.weight", 400);
    parameter("fc.bias", 20);
    parameter("head.weight", 400);
    const std::vector copy{block(800), block(40), block(800)};
    const auto odd = block(400);
    const auto third = block(800);
    b_.begin_step(PhaseKind::kForward);
    const auto in_step = block(40);
    name_weight_copies(b_.trace());
    for (const auto part : copy) EXPECT_EQ(category_of(part), Category::kWeightCopy);
    for (const auto other : {odd, third, in_step}) EXPECT_EQ(category_of(other), Category::kHeld);
}

TEST_F(FinalCategories, BlocksOfOneSizeAreNoCopies) {
    b_.allocate({.bytes = 400, .category = Category::kParameter, .name = "fc.weight"});
    const auto batch = b_.allocate({.bytes = 400, .category = Category::kHeld});
    b_.begin_step(PhaseKind::kForward);
    name_weight_copies(b_.trace());
    EXPECT_EQ(category_of(batch), Category::kHeld);
}

}  // namespace
