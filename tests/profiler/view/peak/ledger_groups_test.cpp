#include "profiler/view/peak/ledger_view.h"

#include "tests/support/trace_builder.h"

#include "tests/profiler/view/ledger_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using testing::ElementsAre;
using testing::IsEmpty;
using tests::ledger_view_of;

Ledger make_ledger(int64_t probs_bytes) {
    Ledger ledger;
    const auto add = [&](std::string_view path, std::string_view tensor, int64_t bytes,
                         int64_t layer) {
        LedgerRow row;
        row.module_path = path;
        row.tensor = tensor;
        row.category = Category::kActivation;
        row.size_bytes = bytes;
        row.layer = layer;
        if (layer >= 0) row.layer_path = path.substr(0, std::string_view("encoder.layer.0").size());
        row.shape = "[8]";
        ledger.rows.push_back(row);
        ledger.total_bytes += bytes;
    };
    add("encoder.layer.0.self", "probs", probs_bytes, 0);
    add("encoder.layer.0.output", "mask", 10, 0);
    add("encoder.layer.1.self", "probs", probs_bytes, 1);
    add("encoder.layer.1.output", "mask", 10, 1);
    add("cls.decoder", "logits", 50, -1);
    return ledger;
}

/// Each line as "name bytes", indented by its depth.
std::vector<std::string> texts(const LedgerView& view, const std::set<std::string>& open) {
    std::vector<std::string> lines;
    for (const LedgerLine& line : lines_of(view, open)) {
        const LedgerViewRow& row = row_of(view, line);
        lines.push_back(std::string(2 * static_cast<std::size_t>(line.depth), ' ') + row.tensor +
                        " " + std::to_string(row.size_bytes));
    }
    return lines;
}

std::set<std::string> all_open(const LedgerView& view) {
    std::set<std::string> open;
    for (const LedgerGroup& group : view.groups) open.insert(group.id);
    return open;
}

TEST(LinesOf, AreTheRowsOfAFlatList) {
    const LedgerView view = ledger_view_of(make_ledger(100));
    EXPECT_THAT(view.groups, IsEmpty());
    EXPECT_THAT(texts(view, {}),
                ElementsAre("probs 100", "probs 100", "logits 50", "mask 10", "mask 10"));
}

TEST(GroupRows, MakesATreeOfLayersModulesAndTensors) {
    const LedgerView view = ledger_view_of(make_ledger(100), {.grouping = LedgerGrouping::kLayers});
    EXPECT_THAT(texts(view, {}),
                ElementsAre("encoder.layer.0 110", "encoder.layer.1 110", "cls 50"));
    EXPECT_THAT(texts(view, {"encoder.layer.1"}),
                ElementsAre("encoder.layer.0 110", "encoder.layer.1 110", "  self 100",
                            "  output 10", "cls 50"));
    const auto lines = lines_of(view, all_open(view));
    EXPECT_EQ(lines.size(), 3u + 5u + 5u);
    EXPECT_EQ(largest_bytes(view, lines), 110);
    EXPECT_EQ(view.groups[view.top_groups[0]].count, 2);
}

TEST(GroupRows, PutsTheSameTensorOfAllLayersTogether) {
    const LedgerView view = ledger_view_of(make_ledger(100), {.grouping = LedgerGrouping::kKinds});
    EXPECT_THAT(texts(view, {}), ElementsAre("probs ×2 200", "logits 50", "mask ×2 20"));
    const LedgerViewRow& probs = view.groups[view.top_groups[0]].sums;
    EXPECT_EQ(probs.module_path, "encoder.layer.*.self");
    EXPECT_EQ(probs.shape, "[8]");
    EXPECT_EQ(probs.size_text, "200 B");
    EXPECT_EQ(probs.share_text, "74.1 %");
    EXPECT_THAT(texts(view, all_open(view)),
                ElementsAre("probs ×2 200", "  probs 100", "  probs 100", "logits 50", "mask ×2 20",
                            "  mask 10", "  mask 10"));
}

TEST(GroupRows, SumsBothLedgersAndFollowsTheFilter) {
    const LedgerView view =
        ledger_view_of(make_ledger(100), make_ledger(30),
                       {.filter = "layer.1", .grouping = LedgerGrouping::kLayers});
    ASSERT_EQ(view.top_groups.size(), 1u);
    const LedgerViewRow& layer = view.groups[view.top_groups[0]].sums;
    EXPECT_EQ(layer.difference_text, "-70 B");
    EXPECT_EQ(layer.other_text, "40 B");
    EXPECT_EQ(layer.presence, Presence::kChanged);
}

TEST(GroupRows, KeepsRowsOutsideOfModules) {
    Ledger ledger;
    LedgerRow row;
    row.size_bytes = 8;
    row.layer = 7;  // of a damaged file: the path says nothing of a layer
    ledger.rows = {row, row};
    for (const auto grouping : {LedgerGrouping::kLayers, LedgerGrouping::kKinds}) {
        const LedgerView view = ledger_view_of(ledger, {.grouping = grouping});
        ASSERT_EQ(view.top_groups.size(), 1u);
        EXPECT_EQ(view.groups[0].sums.size_bytes, 16);
    }
}

TEST(MarkRows, FindsWhatAnOpMadeAndSaves) {
    tests::TraceBuilder b;
    const auto linear = b.op("aten::linear");
    const auto addmm = b.op("aten::addmm");
    b.trace().ops.set<&Op::parent>(addmm, linear);
    const auto softmax = b.op("aten::_softmax");
    const auto backward = b.op("SoftmaxBackward0");
    b.trace().ops.set<&Op::forward>(backward, softmax);
    const auto scores = b.allocate({.bytes = 8, .op = addmm, .name = "scores"});
    const auto probs = b.allocate({.bytes = 8, .op = softmax, .name = "probs"});
    b.save(scores, softmax);
    b.save(probs, softmax);
    const Trace trace = b.finish();
    const Ledger ledger = build_ledger(trace);
    const LedgerView view = ledger_view_of(ledger, {.grouping = LedgerGrouping::kLayers});
    ASSERT_EQ(view.rows.size(), 2u);
    EXPECT_EQ(view.rows[0].made_by, "aten::addmm");

    // The op that called the one that allocated.
    const RowsOfOp of_linear = mark_rows(view, {&trace, false, linear, {}});
    EXPECT_TRUE(of_linear.rows[0].made);
    EXPECT_FALSE(of_linear.rows[1].made);
    EXPECT_EQ(of_linear.text, "aten::linear made 1 and saves 0 of these tensors.");
    EXPECT_TRUE(of_linear.groups[0].made);

    const RowsOfOp of_softmax = mark_rows(view, {&trace, false, softmax, {}});
    EXPECT_EQ(of_softmax.text, "aten::_softmax made 1 and saves 2 of these tensors.");
    const RowsOfOp of_backward = mark_rows(view, {&trace, false, backward, softmax});
    EXPECT_EQ(of_backward.text, "SoftmaxBackward0 made 0 and uses 2 of these tensors.");
    EXPECT_TRUE(
        mark_rows(view, {&trace, true, softmax, {}}).text.ends_with("one of these tensors."));
    EXPECT_THAT(mark_rows(view, {}).rows, IsEmpty());
}

TEST(MarkRows, SaysThatTheLedgerListsAnotherStep) {
    tests::TraceBuilder b;
    std::vector<Id<Op>> ops;
    for (int step = 0; step < 2; ++step) {
        b.begin_step(PhaseKind::kForward);
        ops.push_back(b.op("aten::addmm"));
        if (step == 1) {
            b.save(b.allocate({.bytes = 8, .op = ops.back(), .name = "scores"}), ops.back());
        }
        b.wait(1000);
        b.end_step();
    }
    const auto earlier = ops[0], last = ops[1];
    const Trace trace = b.finish();
    const Ledger ledger = build_ledger(trace);
    const LedgerView view = ledger_view_of(ledger);
    EXPECT_EQ(mark_rows(view, {&trace, false, earlier, {}}).text,
              "This aten::addmm ran before step 2, which the ledger lists.");
    EXPECT_EQ(mark_rows(view, {&trace, false, last, {}}).text,
              "aten::addmm made 1 and saves 1 of these tensors.");
}

}  // namespace
