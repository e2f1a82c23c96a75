#include "profiler/view/selected/range_view.h"

#include "tests/support/loaded_step.h"
#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <limits>

namespace {

using namespace profiler;
using Loaded = tests::LoadedStep;
using tests::TraceBuilder;

/// One call each of "aten::mm" and "aten::gelu"; the change with number i happens at i us.
///
///     us  0     1     2      3     4      5
///         +100  +30   -30    +50   -100   end
Trace make_step(int64_t probs_bytes) {
    TraceBuilder b;
    const auto module = b.module_path("layer.0");
    b.begin_step(PhaseKind::kForward);
    const auto mm = b.op("aten::mm", module);
    const auto gelu = b.op("aten::gelu", module);
    const auto weight = b.allocate({.bytes = 100, .category = Category::kParameter, .op = mm});
    const auto scratch = b.allocate({.bytes = 30, .op = gelu, .name = "scratch"});
    b.free(scratch);
    b.allocate(
        {.bytes = probs_bytes, .category = Category::kActivation, .op = mm, .name = "probs"});
    b.free(weight);
    b.end_step();
    b.trace().ops.set<&Op::start_ns>(mm, 0);
    b.trace().ops.set<&Op::end_ns>(mm, 4000);
    b.trace().ops.set<&Op::parent>(gelu, mm);
    b.trace().ops.set<&Op::start_ns>(gelu, 1000);
    b.trace().ops.set<&Op::end_ns>(gelu, 2000);
    return b.finish();
}

const RangeRow& row(const std::vector<RangeRow>& rows, std::string_view name) {
    for (const RangeRow& row : rows) {
        if (row.name == name) return row;
    }
    static const RangeRow none{.name = "none", .values = {-1, -1}};
    return none;
}

/// From before the change with this number to before another.
RangeRequest between(const Loaded& a, double first, double last) {
    const auto start_ns = static_cast<double>(
        a.trace.allocations.get<&Allocation::alloc_ns>(Id<Allocation>(std::size_t{0})));
    return {
        .steps = {&a.index}, .start_ns = start_ns + first * 1000, .end_ns = start_ns + last * 1000};
}

TEST(RangeView, SaysWhatIsHeldAtItsEnd) {
    const Loaded a(make_step(50));
    const RangeView view = build_range_view(between(a, 0.5, 3.5));
    ASSERT_EQ(view.held.size(), 2U);
    EXPECT_EQ(view.held[0].values[0], 100) << "the weight, from before the range";
    EXPECT_EQ(row(view.held, "probs").values[0], 50);
    EXPECT_EQ(row(view.held, "scratch").values[0], -1) << "it is freed inside";
}

TEST(RangeView, CountsOnlyWhatHappensInside) {
    const Loaded a(make_step(50));
    const RangeView view = build_range_view(between(a, 0.5, 3.5));
    EXPECT_EQ(row(view.figures, "live at the start").values[0], 100);
    EXPECT_EQ(row(view.figures, "live at the end").values[0], 150);
    EXPECT_EQ(row(view.figures, "peak inside").values[0], 150);
    EXPECT_EQ(row(view.figures, "allocated").values[0], 80);
    EXPECT_EQ(row(view.figures, "freed").values[0], 30);
    EXPECT_EQ(row(view.figures, "time").texts[0], "3.00 µs");
    ASSERT_EQ(view.tensors.size(), 2U);
    EXPECT_EQ(view.tensors[0].name, "probs");
    EXPECT_EQ(view.tensors[0].module_path, "layer.0");
    EXPECT_TRUE(view.tensors[0].allocation.valid());
    EXPECT_EQ(row(view.ops_by_bytes, "aten::mm").values[0], 50);
    EXPECT_EQ(row(view.ops_by_bytes, "aten::gelu").values[0], 30);
    EXPECT_FALSE(view.has_other);
}

TEST(RangeView, PeakInsideMayBeAboveBothEnds) {
    const Loaded a(make_step(5));
    const RangeView view = build_range_view(between(a, 0.5, 2.5));
    EXPECT_EQ(row(view.figures, "peak inside").values[0], 130);
    EXPECT_EQ(row(view.figures, "live at the end").values[0], 100);
}

TEST(RangeView, TimeOfACallLeavesOutTheCallsInIt) {
    const Loaded a(make_step(50));
    const RangeView view = build_range_view({.steps = {&a.index}, .start_ns = 500, .end_ns = 3000});
    EXPECT_FALSE(view.counts_kernels);
    EXPECT_EQ(row(view.ops_by_time, "aten::mm").values[0], 1500);
    EXPECT_EQ(row(view.ops_by_time, "aten::gelu").values[0], 1000);
}

TEST(RangeView, TimeIsThatOfKernelsWhereThereAreSome) {
    Trace trace = make_step(50);
    trace.kernels.append({.op = Id<Op>(std::size_t{1}), .start_ns = 1500, .end_ns = 9000});
    trace.kernels.append({.start_ns = 1500, .end_ns = 9000});  // of no known op
    const Loaded a(std::move(trace));
    const RangeView view =
        build_range_view({.steps = {&a.index}, .start_ns = 1000, .end_ns = 2000});
    EXPECT_TRUE(view.counts_kernels);
    ASSERT_EQ(view.ops_by_time.size(), 1U);
    EXPECT_EQ(view.ops_by_time[0].values[0], 500);
}

TEST(RangeView, ATensorOfManyLayersIsOneRowThatUnfolds) {
    TraceBuilder b;
    const auto encoder = b.module_path("encoder");
    for (int64_t layer = 0; layer < 3; ++layer) {
        const std::string path = "encoder.layer." + std::to_string(layer);
        const auto own = b.module_path(path, layer, encoder);
        const auto op = b.op("tempo::dropout", b.module_path(path + ".attention", layer, own));
        b.allocate({.bytes = 100 + layer, .op = op, .name = "dropped_probs"});
        b.allocate({.bytes = 1, .op = op, .name = "scratch" + std::to_string(layer)});
    }
    const Loaded a(b.finish());
    const RangeView view = build_range_view({.steps = {&a.index}, .start_ns = -1e6, .end_ns = 1e9});
    ASSERT_EQ(view.tensors.size(), 4U);
    const RangeRow& sum = view.tensors[0];
    EXPECT_EQ(sum.name, "dropped_probs ×3");
    EXPECT_EQ(sum.module_path, "encoder.layer.*.attention");
    EXPECT_EQ(sum.values[0], 303);
    EXPECT_EQ(sum.texts[0], "303 B");
    ASSERT_EQ(sum.parts.size(), 3U);
    EXPECT_EQ(sum.parts[0].name, "layer 2") << "the largest first";
    EXPECT_EQ(sum.parts[0].module_path, "encoder.layer.2.attention");
    EXPECT_EQ(sum.parts[2].values[0], 100);
    EXPECT_TRUE(view.tensors[1].parts.empty());
    EXPECT_EQ(view.tensors[1].name, "scratch0");
}

TEST(RangeView, ComparesAWithB) {
    const Loaded a(make_step(50)), b(make_step(20));
    RangeRequest request = between(a, 0.5, 3.5);
    request.steps.b = &b.index;
    request.alignment = std::make_shared<const Alignment>();
    const RangeView view = build_range_view(request);
    EXPECT_TRUE(view.has_other);
    const RangeRow& probs = row(view.tensors, "probs");
    EXPECT_EQ(probs.values[1], 20);
    EXPECT_EQ(probs.difference, -30);
    EXPECT_EQ(probs.difference_text, "-30 B");
    EXPECT_EQ(row(view.figures, "freed").difference_text, "–");
    ASSERT_EQ(view.held.size(), 1U) << "the weight is the same";
    EXPECT_EQ(view.held[0].name, "probs");
    EXPECT_EQ(view.held[0].difference, -30);
}

TEST(RangeView, OfNoTimeIsEmpty) {
    const Loaded a(make_step(50));
    EXPECT_TRUE(build_range_view({}).figures.empty());
    EXPECT_TRUE(build_range_view(between(a, 2, 2)).figures.empty());
    EXPECT_TRUE(build_range_view(between(a, 3, 1)).figures.empty());
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinite = std::numeric_limits<double>::infinity();
    EXPECT_TRUE(build_range_view(between(a, nan, 1)).figures.empty());
    EXPECT_TRUE(build_range_view(between(a, 0, infinite)).figures.empty());
}

TEST(RangeView, SurvivesADamagedTrace) {
    Trace trace = make_step(50);
    const Id<Op> mm(std::size_t{0}), gelu(std::size_t{1});
    trace.ops.set<&Op::parent>(mm, gelu);  // a cycle
    trace.ops.set<&Op::end_ns>(gelu, -5);
    trace.ops.set<&Op::module_path>(mm, {});
    trace.ops.set<&Op::module_path>(gelu, {});
    trace.allocations.append({.requested_bytes = 7, .alloc_ns = 1500});  // of no op, no storage
    const Loaded a(std::move(trace));
    const RangeView view = build_range_view(between(a, -10, 100));
    EXPECT_EQ(row(view.tensors, "(no name)").values[0], 7);
}

TEST(RangeView, ListsNoMoreThanTheLargest) {
    const Loaded a(tests::make_synthetic_trace({.num_allocations = 5000}));
    const RangeView view =
        build_range_view({.steps = {&a.index},
                          .start_ns = static_cast<double>(a.index.curve().start_ns()),
                          .end_ns = static_cast<double>(a.index.curve().end_ns()) + 1});
    EXPECT_LE(view.tensors.size(), RangeView::kMostRows);
    for (std::size_t i = 1; i < view.tensors.size(); ++i) {
        EXPECT_GE(view.tensors[i - 1].values[0], view.tensors[i].values[0]);
    }
    int64_t highest = 0;
    for (const CurveBin& bin :
         a.index.curve().sample(a.index.curve().start_ns(), a.index.curve().end_ns(), 1000)) {
        highest = std::max(highest, bin.allocated_bytes);
    }
    EXPECT_EQ(row(view.figures, "peak inside").values[0], highest);
}

}  // namespace
