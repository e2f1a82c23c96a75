#include "profiler/capture/python/keeper_rows.h"

#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace profiler;
using nlohmann::json;
using testing::ElementsAre;

class KeeperRows : public testing::Test {
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

TEST_F(KeeperRows, TheLargestLiveBlocksWithoutANameComeFirst) {
    const auto small = b_.allocate({.bytes = 10, .category = Category::kUnknown});
    b_.allocate({.bytes = 90, .category = Category::kParameter});
    const auto freed = b_.allocate({.bytes = 80});
    const auto saved = b_.allocate({.bytes = 30, .category = Category::kActivation});
    const auto temporary = b_.allocate({.bytes = 30});
    const auto held = b_.allocate({.bytes = 20, .category = Category::kHeld});
    b_.free(freed);
    const Trace trace = b_.finish();
    EXPECT_THAT(unnamed_blocks(trace, 9), ElementsAre(saved, temporary, held, small));
    EXPECT_THAT(unnamed_blocks(trace, 2), ElementsAre(saved, temporary));
}

TEST_F(KeeperRows, KeepersBecomeRows) {
    const auto block = b_.allocate({.bytes = 10});
    const json keepers{
        {{"kind", "container"}, {"text", "list `history[3]`"}, {"file", "train.py"}, {"line", 16}},
        {{"kind", "cpp"}, {"text", "only C++"}, {"file", ""}, {"line", 0}}};
    add_keepers({{{"allocation", block.value}, {"keepers", keepers}}}, 7, b_.trace());
    const Trace trace = b_.finish();
    ASSERT_EQ(trace.keepers.size(), 2U);
    const Keeper list = trace.keepers[Id<Keeper>(0)];
    EXPECT_EQ(list.allocation, block);
    EXPECT_EQ(list.event, 7);
    EXPECT_EQ(list.kind, KeeperKind::kContainer);
    EXPECT_EQ(trace.text(list.text), "list `history[3]`");
    EXPECT_EQ(trace.text(list.file), "train.py");
    EXPECT_EQ(list.line, 16);
    const Keeper cpp = trace.keepers[Id<Keeper>(1)];
    EXPECT_FALSE(cpp.file.valid());
    EXPECT_EQ(cpp.line, -1);
}

TEST_F(KeeperRows, ABlockThatOnlyCppKeepsIsSaidWithTheOpThatMadeIt) {
    const json keepers{{{"kind", "cpp"}, {"text", "only C++ holds it"}, {"file", ""}, {"line", 0}}};
    b_.begin_step(PhaseKind::kBackward);
    const auto in_flight = b_.allocate({.bytes = 10, .op = b_.op("aten::nll_loss_backward")});
    b_.end_step();
    const auto outside = b_.allocate({.bytes = 10, .op = b_.op("aten::mm")});
    const auto of_no_op = b_.allocate({.bytes = 10});
    for (const auto block : {in_flight, outside, of_no_op}) {
        add_keepers({{{"allocation", block.value}, {"keepers", keepers}}}, 7, b_.trace());
    }
    std::vector<std::string_view> texts;
    for (const StringId text : b_.trace().keepers.column<&Keeper::text>()) {
        texts.push_back(b_.trace().text(text));
    }
    EXPECT_THAT(texts, ElementsAre("only C++ holds it: made by aten::nll_loss_backward in backward",
                                   "only C++ holds it: made by aten::mm", "only C++ holds it"));
}

TEST_F(KeeperRows, TheOpThatSavesABlockIsTheLastThatKeepsIt) {
    const auto saved = b_.allocate({.bytes = 10});
    const auto released = b_.allocate({.bytes = 10});
    const auto never = b_.allocate({.bytes = 10});
    b_.save(saved, b_.op("aten::linear"));
    const Id<Op> last = b_.op("aten::nll_loss_forward");
    b_.save(saved, last);
    b_.release(b_.save(saved, b_.op("aten::mul")));
    b_.release(b_.save(released, b_.op("aten::mul")));
    EXPECT_THAT(savers_of(b_.trace(), std::vector{never, saved, released}),
                ElementsAre(Id<Op>(), last, Id<Op>()));
}

TEST_F(KeeperRows, ABlockIsHeldOnceAnOpOfALaterPhaseHasBegun) {
    b_.begin_step(PhaseKind::kForward);
    const auto block = b_.allocate({.bytes = 10, .op = b_.op("aten::mm")});
    use(block);
    b_.op("aten::relu");
    add(block, {"container"});
    EXPECT_EQ(category_of(block), Category::kTemporary) << "the phase that uses it may go on";
    b_.begin_phase(PhaseKind::kBackward);
    add(block, {"container"});
    EXPECT_EQ(category_of(block), Category::kTemporary) << "no op has begun since";
    b_.op("NllLossBackward0");
    add(block, {"variable"});
    EXPECT_EQ(category_of(block), Category::kHeld);
}

TEST_F(KeeperRows, ABlockThatIsUsedInThisPhaseIsNotHeld) {
    b_.begin_step(PhaseKind::kForward);
    const auto block = b_.allocate({.bytes = 10, .op = b_.op("aten::mm")});
    b_.begin_phase(PhaseKind::kBackward);
    use(block);
    add(block, {"variable"});
    EXPECT_EQ(category_of(block), Category::kTemporary);
}

TEST_F(KeeperRows, OutsideOfPhasesAVariableHoldsNothing) {
    const auto variable = b_.allocate({.bytes = 10, .op = b_.op("aten::mm")});
    const auto list = b_.allocate({.bytes = 10, .op = b_.op("aten::mm")});
    b_.op("aten::mm");
    add(variable, {"variable"});
    add(list, {"frame", "container"});
    EXPECT_EQ(category_of(variable), Category::kTemporary);
    EXPECT_EQ(category_of(list), Category::kHeld);
}

TEST_F(KeeperRows, ABlockFromBeforeTheStepThatNoOpUsesIsHeld) {
    const auto block = b_.allocate({.bytes = 10, .category = Category::kUnknown});
    add(block, {"variable"});
    EXPECT_EQ(category_of(block), Category::kUnknown);
    b_.begin_step();
    add(block, {"variable"});
    EXPECT_EQ(category_of(block), Category::kHeld);
}

TEST_F(KeeperRows, AKeeperMayTellWhatABlockIs) {
    const auto parameter = b_.allocate({.bytes = 10});
    const auto gradient = b_.allocate({.bytes = 10});
    const auto state = b_.allocate({.bytes = 10, .category = Category::kUnknown});
    add(parameter, {"frame", "parameter"});
    add(gradient, {"gradient"});
    add(state, {"optimizer", "container"});
    EXPECT_EQ(category_of(parameter), Category::kParameter);
    EXPECT_EQ(category_of(gradient), Category::kGradient);
    EXPECT_EQ(category_of(state), Category::kOptimizerState);
}

TEST_F(KeeperRows, WhatTheProgramDoesNotHoldKeepsItsCategory) {
    const auto in_graph = b_.allocate({.bytes = 10});
    const auto saved = b_.allocate({.bytes = 10, .category = Category::kActivation});
    b_.begin_step();
    add(in_graph, {"autograd", "cpp", "collector"});
    add(saved, {"container"});
    EXPECT_EQ(category_of(in_graph), Category::kTemporary);
    EXPECT_EQ(category_of(saved), Category::kActivation);
}

TEST_F(KeeperRows, WhatDoesNotExistIsRefusedAndNothingIsAdded) {
    const auto block = b_.allocate({.bytes = 10});
    EXPECT_THROW(add(Id<Allocation>(5), {"variable"}), std::invalid_argument);
    EXPECT_THROW(add(block, {"container", "ghost"}), std::invalid_argument);
    EXPECT_THROW(add_keepers({{{"allocation", 0}}}, 0, b_.trace()), json::exception);
    EXPECT_TRUE(b_.trace().keepers.empty());
}

}  // namespace
