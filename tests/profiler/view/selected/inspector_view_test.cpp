#include "profiler/view/selected/inspector_view.h"

#include "profiler/analysis/ops/calls.h"
#include "tests/profiler/view/block_traces.h"
#include "tests/support/trace_builder.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using tests::LoadedBlocks;
using tests::TraceBuilder;

/// Two layers. Each keeps "probs" from its softmax to its backward, and softmax has scratch. The
/// softmax runs in this part of the layer.
Trace make_step(int64_t probs_bytes, const std::string& part = "") {
    TraceBuilder b;
    std::vector<Id<Allocation>> kept;
    b.begin_step(PhaseKind::kForward);
    for (int layer = 0; layer < 2; ++layer) {
        const std::string path = "encoder.layer." + std::to_string(layer);
        auto module = b.module_path(path, layer);
        if (!part.empty()) module = b.module_path(path + "." + part, layer, module);
        const auto softmax = b.op("aten::softmax", module);
        b.trace().ops.set<&Op::written_words>(softmax, 1);
        const auto scratch = b.allocate({.bytes = 16, .op = softmax, .name = "scratch"});
        b.free(scratch);
        if (probs_bytes == 0) continue;
        kept.push_back(b.allocate({.bytes = probs_bytes,
                                   .category = Category::kActivation,
                                   .op = softmax,
                                   .name = "probs",
                                   .shape = "[8, 8]"}));
        b.save(kept.back(), softmax);
        b.trace().ops.set<&Op::end_ns>(
            softmax, b.trace().allocations.get<&Allocation::alloc_ns>(kept.back()) + 1);
    }
    b.begin_phase(PhaseKind::kBackward);
    for (const auto allocation : kept) b.free(allocation);
    return b.finish();
}

struct Inspected : tests::LoadedStep {
    using LoadedStep::LoadedStep;

    /// The allocation of the first storage with this size.
    InspectedTensor tensor(int64_t bytes) const {
        for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
            const Id<Allocation> id(i);
            if (trace.allocations.get<&Allocation::requested_bytes>(id) == bytes) {
                return {0, {}, id};
            }
        }
        return {};
    }
};

std::string value(const InspectorRows& rows, std::string_view label) {
    for (const auto& row : rows) {
        if (row.first == label) return row.second;
    }
    return "";
}

/// The values of a row of a tensor's life: "kept | not kept".
std::string life(const TensorCard& card, std::string_view label) {
    for (const LifeRow& row : card.life) {
        if (row.label == label) return fmt::format("{}", fmt::join(row.values, " | "));
    }
    return "";
}

TEST(InspectorView, ACategoryIsSummedUpAtThePeak) {
    const Inspected a(make_step(64));
    const InspectorView view =
        build_inspector_view({.steps = {&a.index}, .category = Category::kActivation});
    ASSERT_EQ(view.category.size(), 1U);
    const CategoryCard& card = view.category[0];
    ASSERT_EQ(card.rows.size(), 2U);
    EXPECT_EQ(card.rows[0].second, "128 B, 100.0 % of it, in 2 blocks");
    EXPECT_EQ(card.rows[1].second, "128 B, in forward of step 1");
    ASSERT_EQ(card.largest.size(), 2U);
    EXPECT_EQ(card.largest[0].first, "64 B");
    EXPECT_EQ(card.largest[0].second, "probs in encoder.layer.0");
}

TEST(InspectorView, TellsAllAboutASavedTensor) {
    const Inspected a(make_step(64));
    const auto view = build_inspector_view({.steps = {&a.index}, .tensor = a.tensor(64)});
    ASSERT_TRUE(view.tensor);
    const InspectorRows& rows = view.tensor->rows;
    EXPECT_EQ(view.tensor->title, "probs");
    EXPECT_EQ(value(rows, "bytes"), "64 B");
    EXPECT_EQ(value(rows, "shape").substr(0, 6), "[8, 8]");
    EXPECT_EQ(value(rows, "module"), "encoder.layer.0");
    EXPECT_EQ(value(rows, "made by"), "aten::softmax");
    EXPECT_EQ(value(rows, "kept by"), "aten::softmax");
    EXPECT_EQ(value(rows, "in all layers"), "2 of it, 128 B");
    EXPECT_EQ(life(*view.tensor, "for backward"), "kept");
    EXPECT_EQ(life(*view.tensor, "made in"), "forward of layer 0");
    EXPECT_EQ(life(*view.tensor, "freed in"), "backward");
    EXPECT_EQ(life(*view.tensor, "bytes"), "") << "they stand above";
    EXPECT_TRUE(view.tensor->fate.text.empty()) << "there is no B";
}

/// Panels that know only the storage say as much about it as those that know its block.
TEST(InspectorView, AStorageIsDescribedLikeItsBlock) {
    const Inspected a(make_step(64));
    const InspectedTensor block = a.tensor(64);
    const auto storage = a.trace.allocations.get<&Allocation::storage>(block.allocation);
    const auto of_block = build_inspector_view({.steps = {&a.index}, .tensor = block});
    const auto of_storage =
        build_inspector_view({.steps = {&a.index}, .tensor = InspectedTensor{0, storage, {}}});
    EXPECT_EQ(of_storage.tensor->rows, of_block.tensor->rows);
    EXPECT_EQ(value(of_storage.tensor->rows, "made by"), "aten::softmax");
}

TEST(InspectorView, TellsWhatBecomesOfATensorInB) {
    const Inspected a(make_step(64)), same(make_step(64)), smaller(make_step(32)),
        gone(make_step(0));
    const auto fate = [&](const Inspected& b) {
        return *build_inspector_view({.steps = {&a.index, &b.index}, .tensor = a.tensor(64)})
                    .tensor;
    };
    EXPECT_EQ(fate(same).fate.fate, Fate::kSame);
    EXPECT_EQ(fate(same).fate.text, "B keeps the same, also until backward.");
    EXPECT_EQ(fate(smaller).fate.fate, Fate::kSmaller);
    EXPECT_EQ(fate(smaller).fate.text, "B keeps it in 32 B instead of 64 B.");
    EXPECT_EQ(life(fate(smaller), "bytes"), "64 B | 32 B");
    EXPECT_EQ(fate(gone).fate.fate, Fate::kGone);
    EXPECT_EQ(fate(gone).fate.text, "B does not keep it.");
    EXPECT_EQ(life(fate(gone), "freed in"), "backward") << "of A alone";
}

TEST(InspectorView, ATensorOfACallThatBDoesNotRunHasThatAsItsCause) {
    const Inspected a(make_step(64, "scores")), b(make_step(0, "fused"));
    const InspectorView view =
        build_inspector_view({.steps = {&a.index, &b.index}, .tensor = a.tensor(64)});
    EXPECT_EQ(view.tensor->fate.text, "B does not keep it. B does not run scores there.");
}

/// B makes as many bytes, but frees them in forward.
TEST(InspectorView, AFateIsAboutTimeToo) {
    TraceBuilder builder;
    builder.begin_step(PhaseKind::kForward);
    const auto module = builder.module_path("encoder.layer.0", 0);
    const auto softmax = builder.op("aten::softmax", module);
    const auto probs = builder.allocate({.bytes = 64,
                                         .category = Category::kActivation,
                                         .op = softmax,
                                         .name = "probs",
                                         .shape = "[8, 8]"});
    builder.trace().allocations.set<&Allocation::freeing_op>(probs, softmax);
    builder.free(probs);
    builder.begin_phase(PhaseKind::kBackward);
    builder.free(builder.allocate({.bytes = 256}));
    const Inspected a(make_step(64)), b(builder.finish());
    const auto card = [&](std::size_t source) {
        InspectedTensor tensor = (source == 0 ? a : b).tensor(64);
        tensor.source = source;
        return *build_inspector_view({.steps = {&a.index, &b.index}, .tensor = tensor}).tensor;
    };
    const TensorCard of_a = card(0);
    EXPECT_EQ(of_a.fate.fate, Fate::kShorter);
    EXPECT_EQ(of_a.fate.text,
              "B frees it in forward of layer 0; A keeps it for backward, until backward. It is "
              "there at the peak of A, not at the peak of B.");
    EXPECT_EQ(life(of_a, "bytes"), "64 B | 64 B");
    EXPECT_EQ(life(of_a, "for backward"), "kept | not kept");
    EXPECT_EQ(life(of_a, "freed in"), "backward | forward of layer 0");
    EXPECT_EQ(life(of_a, "lives"), "4.00 µs, 50.0 % of the step | 1.00 µs, 25.0 % of the step");
    EXPECT_EQ(life(of_a, "at the peak"), "held | not held");
    EXPECT_EQ(card(1).life.size(), of_a.life.size()) << "the same, picked in B";
    EXPECT_EQ(card(1).fate.text, of_a.fate.text);
}

TEST(InspectorView, TellsWhatACallAllocates) {
    const Inspected a(make_step(64));
    const auto view =
        build_inspector_view({.steps = {&a.index}, .call = InspectedCall{0, {CallKind::kOp, 0}}});
    ASSERT_TRUE(view.call);
    EXPECT_EQ(value(view.call->rows, "with its calls"), "allocates 80 B in 2 blocks");
    EXPECT_EQ(value(view.call->rows, "leaves live"), "64 B");
    EXPECT_EQ(value(view.call->rows, "scratch"), "up to 16 B");
}

TEST(InspectorView, SurvivesWhatATraceDoesNotKnow) {
    Trace trace = make_step(64);
    trace.allocations.append({.requested_bytes = 7, .alloc_ns = 1});
    const Inspected a(std::move(trace));
    auto view = build_inspector_view({.steps = {&a.index}, .tensor = a.tensor(7)});
    ASSERT_TRUE(view.tensor);
    EXPECT_EQ(view.tensor->title, "(no name)");
    EXPECT_EQ(life(*view.tensor, "lives").substr(0, 10), "to the end");
    EXPECT_EQ(life(*view.tensor, "freed in"), "never");
    view = build_inspector_view({.steps = {&a.index}, .tensor = InspectedTensor{}});
    EXPECT_TRUE(view.tensor) << "neither storage nor block is known";
    view = build_inspector_view(
        {.steps = {&a.index}, .tensor = InspectedTensor{.source = 5}, .call = InspectedCall{}});
    EXPECT_FALSE(view.tensor);
    EXPECT_FALSE(view.call);
}

TEST(InspectorView, ResolvesTheSymbolsOfAClosedForm) {
    models::Workload workload{.batch_size = 4, .seq_len = 512};
    workload.model.num_heads = 16;
    workload.model.hidden_size = 1024;
    EXPECT_EQ(resolve_symbols("eT", workload), "e = 4 B, T = B·A·S² = 4·16·512²");
    EXPECT_EQ(resolve_symbols("n", workload), "n = B·S·H = 4·512·1024");
    EXPECT_EQ(resolve_symbols("", workload), "");
}

}  // namespace
