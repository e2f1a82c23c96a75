#include "profiler/view/peak/flame_view.h"

#include "profiler/trace/trace_notes.h"
#include "tests/support/loaded_step.h"
#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace {

using namespace profiler;
using Sample = tests::LoadedStep;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::TraceBuilder;

/// Two layers that keep a tensor each, a parameter in each, and an input outside of modules.
Sample two_layers(int64_t probs_bytes = 400, bool with_mask = false) {
    TraceBuilder b;
    const auto encoder = b.module_path("encoder");
    const auto list = b.module_path("encoder.layer", -1, encoder);
    b.allocate({.bytes = 30, .category = Category::kInput, .name = "input_ids"});
    std::vector<Id<ModulePath>> self;
    for (const int layer : {0, 1}) {
        const std::string path = "encoder.layer." + std::to_string(layer);
        const auto module = b.module_path(path, layer, list);
        self.push_back(b.module_path(path + ".self", layer, module));
        b.allocate({.bytes = 100 * (layer + 1),
                    .category = Category::kParameter,
                    .name = path + ".self.weight"});
    }
    b.begin_step(PhaseKind::kForward);
    for (const auto module : self) {
        const auto op = b.op("aten::softmax", module);
        b.allocate(
            {.bytes = probs_bytes, .category = Category::kActivation, .op = op, .name = "probs"});
        if (with_mask) {
            b.allocate(
                {.bytes = 50, .category = Category::kActivation, .op = op, .name = "keep_mask"});
        }
    }
    return Sample(b.finish());
}

FlameView build(const Sample& a, FlameRequest request = {}) {
    request.steps.a = &a.index;
    return build_flame_view(request);
}

std::vector<std::string> children_of(const FlameView& view, std::size_t node) {
    std::vector<std::string> labels;
    for (int32_t c = 0; c < view.nodes[node].child_count; ++c) {
        labels.push_back(
            label_of(view, view.nodes[static_cast<std::size_t>(view.nodes[node].first_child + c)]));
    }
    return labels;
}

std::size_t at(const FlameView& view, const std::string& path) {
    for (std::size_t i = 0; i < view.nodes.size(); ++i) {
        if (path_of(view, i) == path) return i;
    }
    ADD_FAILURE() << "no node " << path;
    return 0;
}

int64_t sum_of_leaves(const FlameView& view, std::size_t trace) {
    int64_t sum = 0;
    for (const FlameNode& node : view.nodes) sum += node.is_tensor ? node.bytes[trace] : 0;
    return sum;
}

/// What holds for the tree of any trace.
void expect_sound(const FlameView& view) {
    ASSERT_FALSE(view.nodes.empty());
    for (std::size_t i = 0; i < view.nodes.size(); ++i) {
        const FlameNode& node = view.nodes[i];
        ASSERT_LT(node.parent, static_cast<int32_t>(i));
        int64_t width = 0;
        for (int32_t c = 0; c < node.child_count; ++c) {
            const FlameNode& child = view.nodes[static_cast<std::size_t>(node.first_child + c)];
            ASSERT_EQ(child.parent, static_cast<int32_t>(i));
            width += child.width_bytes;
        }
        if (!node.is_tensor) {
            ASSERT_EQ(width, node.width_bytes);
        }
    }
    for (const std::size_t t : {0u, 1u}) {
        EXPECT_EQ(sum_of_leaves(view, t), view.root().bytes[t]);
    }
}

TEST(BuildFlameView, ShowsModulesLayersAndTensorsAtThePeak) {
    const Sample a = two_layers();
    const FlameView view = build(a);
    expect_sound(view);
    EXPECT_EQ(view.root().bytes[0], a.index.peak().allocated_bytes);
    EXPECT_THAT(children_of(view, 0), ElementsAre("encoder", "outside the model"));
    // The module that only holds the layers has no node.
    EXPECT_THAT(children_of(view, at(view, "encoder")), ElementsAre("layer.0", "layer.1"));
    const std::size_t self = at(view, "encoder.layer.1.self");
    EXPECT_THAT(children_of(view, self), ElementsAre("probs", "weight"));
    EXPECT_EQ(view.nodes[self].bytes[0], 600);
    EXPECT_EQ(view.nodes[self].category, Category::kActivation);
    EXPECT_GE(view.nodes[self].mix, 0);
    EXPECT_EQ(view.moment_text, "at the peak of A: 1.10 KiB, forward of step 1, 4.00 µs");
    EXPECT_THAT(view.categories,
                ElementsAre(Category::kParameter, Category::kInput, Category::kActivation));
}

TEST(BuildFlameView, CombinesTheSameTensorOfAllLayers) {
    const FlameView view = build(two_layers(), {.combine_layers = true});
    expect_sound(view);
    const std::size_t self = at(view, "encoder.layer.*.self");
    EXPECT_THAT(children_of(view, self), ElementsAre("probs ×2", "weight ×2"));
    EXPECT_EQ(view.nodes[self].bytes[0], 1100);
}

TEST(BuildFlameView, ShowsTheBytesThatTheMemoryCurveShowsAtAnyMoment) {
    const Sample a(tests::make_synthetic_trace({.num_allocations = 3000, .num_layers = 3}));
    const MemoryCurve& curve = a.index.curve();
    for (int i = 0; i <= 40; ++i) {
        const int64_t time_ns = curve.start_ns() + (curve.end_ns() - curve.start_ns()) * i / 40;
        const FlameView view = build(a, {.moment_ns = static_cast<double>(time_ns)});
        expect_sound(view);
        const CurveBin bin = curve.at(time_ns);
        EXPECT_EQ(view.root().bytes[0], bin.allocated_bytes) << time_ns;
        EXPECT_EQ(view.mixes[static_cast<std::size_t>(view.root().mix)], bin.by_category);
    }
    const FlameView before = build(a, {.moment_ns = -1e9});
    EXPECT_EQ(before.root().width_bytes, 0);
    EXPECT_TRUE(lay_out_flame(before, 0, 500).boxes.empty());
    const FlameView never = build(a, {.moment_ns = std::numeric_limits<double>::infinity()});
    expect_sound(never);
}

TEST(BuildFlameView, ShowsWhatGrowsAndWhatShrinks) {
    const Sample a = two_layers(400);
    const Sample b = two_layers(100, true);
    const FlameView view = build(a, {.steps = {nullptr, &b.index}, .mode = FlameMode::kDifference});
    expect_sound(view);
    EXPECT_EQ(view.root().bytes[0], a.index.peak().allocated_bytes);
    EXPECT_EQ(view.root().bytes[1], b.index.peak().allocated_bytes);
    const FlameNode& probs = view.nodes[at(view, "encoder.layer.0.self.probs")];
    EXPECT_EQ(change_text(probs), "-300 B");
    EXPECT_EQ(probs.width_bytes, 400);
    const FlameNode& mask = view.nodes[at(view, "encoder.layer.0.self.keep_mask")];
    EXPECT_EQ(change_text(mask), "+50 B");
    EXPECT_TRUE(mask.in_b);
    EXPECT_EQ(change_text(view.nodes[at(view, "encoder.layer.0.self.weight")]), "±0 B");
    EXPECT_THAT(view.moment_text, StartsWith("each at its peak: A 1.10 KiB, B "));
}

TEST(BuildFlameView, ReadsBOnItsOwnClock) {
    const Sample a = two_layers();
    const Sample b = two_layers(100);
    const auto slow =
        std::make_shared<const Alignment>(Alignment{.second = TimeMap({{0, 0}, {1e6, 1e3}})});
    const FlameView at_peak = build(a, {.steps = {nullptr, &b.index}, .mode = FlameMode::kB});
    EXPECT_EQ(at_peak.root().bytes[1], b.index.peak().allocated_bytes);
    EXPECT_THAT(at_peak.moment_text, StartsWith("at the peak of B: 530 B"));
    const auto moment_ns = static_cast<double>(a.index.peak().time_ns);
    const FlameView early = build(a, {.steps = {nullptr, &b.index},
                                      .alignment = slow,
                                      .moment_ns = moment_ns,
                                      .mode = FlameMode::kB});
    EXPECT_EQ(early.root().bytes[1], 30);  // the input alone
    // Without a second trace, A is shown.
    EXPECT_EQ(build(a, {.mode = FlameMode::kB}).mode, FlameMode::kA);
}

TEST(BuildFlameView, SaysHowMuchTheSearchFinds) {
    const Sample a = two_layers();
    const auto text = [&](std::string search) {
        return build(a, {.search = std::move(search)}).search_text;
    };
    EXPECT_EQ(text("probs"), "2 tensors match: 800 B, 70.8 %");
    EXPECT_EQ(text("LAYER.1 self"), "2 tensors match: 600 B, 53.1 %");  // counted once
    EXPECT_EQ(text("input_ids"), "1 tensor matches: 30 B, 2.7 %");
    EXPECT_EQ(text("no such"), "nothing matches");
    EXPECT_EQ(text("  "), "");
    const FlameView view = build(a, {.search = "layer.1"});
    EXPECT_TRUE(view.nodes[at(view, "encoder.layer.1.self.probs")].matches);
    EXPECT_FALSE(view.nodes[at(view, "encoder")].matches);
}

// ---- traces without modules -------------------------------------------------------------------

/// A program's stack, outermost first: main > library > step > at::_ops::mul.
Sample with_stacks() {
    Trace trace;
    trace.runs.append({.source = Source::kImported, .state = RunState::kComplete});
    const auto frame = [&](std::string_view function, std::string_view file, int64_t line) {
        return trace.frames.append(
            {trace.strings.intern(function), trace.strings.intern(file), line});
    };
    const std::vector<Id<Frame>> frames{
        frame("main", "/home/me/train.py", 9),
        frame("_call_impl", "/x/site-packages/torch/nn/modules/module.py", 1),
        frame("step", "/home/me/model.py", 5), frame("at::_ops::mul::call(at::Tensor)", "", 0),
        frame("malloc", "??", 0)};
    Id<Stack> stack;
    for (const Id<Frame> f : frames) stack = trace.stacks.append({.parent = stack, .frame = f});
    for (int i = 0; i < 3; ++i) {
        trace.allocations.append({.requested_bytes = 100,
                                  .block_bytes = 512,
                                  .alloc_event = i,
                                  .alloc_ns = i * 10,
                                  .stack = i < 2 ? stack : Id<Stack>()});
    }
    return Sample(std::move(trace));
}

TEST(BuildFlameView, ShowsCallStacksWhereThereAreNoModules) {
    const FlameView view = build(with_stacks());
    expect_sound(view);
    EXPECT_EQ(view.tree, FlameTree::kStacks);
    EXPECT_THAT(children_of(view, 0), ElementsAre("me/train.py:9 main", "no stack"));
    const std::size_t step = at(view, "me/train.py:9 main > me/model.py:5 step");
    EXPECT_THAT(children_of(view, step), ElementsAre("aten::mul ×2"));
    EXPECT_EQ(view.moment_text, "at the peak of A: 300 B, 20 ns");
}

/// A snapshot's metadata, which is the innermost frame of its rows, groups everything else.
TEST(BuildFlameView, ShowsTheUsersMetadataAroundTheStack) {
    Trace trace = with_stacks().trace;
    const Id<Frame> mark = trace.frames.append(
        {trace.strings.intern("step 3"), trace.strings.intern(kUserMetadataFile), 0});
    const auto outer = trace.allocations.get<&Allocation::stack>(Id<Allocation>(0));
    const auto marked = trace.stacks.append({.parent = outer, .frame = mark});
    trace.allocations.set<&Allocation::stack>(Id<Allocation>(0), marked);
    const FlameView view = build(Sample(std::move(trace)));
    EXPECT_THAT(
        children_of(view, 0),
        testing::UnorderedElementsAre("<user_metadata> step 3", "me/train.py:9 main", "no stack"));
    const std::size_t step =
        at(view, "<user_metadata> step 3 > me/train.py:9 main > me/model.py:5 step");
    EXPECT_THAT(children_of(view, step), ElementsAre("aten::mul"));
}

TEST(BuildFlameView, ShowsOpsOrCategoriesWhereThereIsNothingElse) {
    TraceBuilder with_ops;
    with_ops.allocate({.bytes = 8, .op = with_ops.op("aten::mm"), .name = "x"});
    const FlameView ops = build(Sample(with_ops.finish()));
    EXPECT_EQ(ops.tree, FlameTree::kOps);
    EXPECT_THAT(children_of(ops, 0), ElementsAre("aten::mm"));

    TraceBuilder bare;
    bare.allocate({.bytes = 8, .category = Category::kGradient});
    bare.allocate({.bytes = 9, .category = Category::kGradient});
    const FlameView categories = build(Sample(bare.finish()));
    EXPECT_EQ(categories.tree, FlameTree::kCategories);
    EXPECT_THAT(children_of(categories, 0), ElementsAre("Gradients"));
    expect_sound(categories);
}

// ---- damaged traces ---------------------------------------------------------------------------

TEST(BuildFlameView, EndsOnModulesInACycleAndDeepStacks) {
    Sample a = two_layers();
    for (std::size_t i = 0; i < a.trace.module_paths.size(); ++i) {
        a.trace.module_paths.set<&ModulePath::parent>(
            Id<ModulePath>(i), Id<ModulePath>((i + 1) % a.trace.module_paths.size()));
    }
    const FlameView cycle = build(a);
    expect_sound(cycle);
    EXPECT_EQ(cycle.root().bytes[0], a.index.peak().allocated_bytes);

    Sample deep = with_stacks();
    const auto frame = deep.trace.stacks.get<&Stack::frame>(Id<Stack>(std::size_t{2}));
    Id<Stack> stack(std::size_t{0});
    for (int i = 0; i < 5000; ++i) {
        stack = deep.trace.stacks.append({.parent = stack, .frame = frame});
    }
    deep.trace.stacks.set<&Stack::parent>(Id<Stack>(std::size_t{0}), stack);
    deep.trace.allocations.set<&Allocation::stack>(Id<Allocation>(std::size_t{0}), stack);
    const FlameView view = build(deep);
    expect_sound(view);
    EXPECT_LE(lay_out_flame(view, 0, 1000).row_count, static_cast<int32_t>(kMaxFlameDepth) + 2);
}

TEST(BuildFlameView, ShowsNamesWithoutControlCharacters) {
    TraceBuilder b;
    const std::string name = "a\nb\x1b[31m" + std::string(10'000, 'x');
    b.allocate({.bytes = 8, .op = b.op("aten::mm", b.module_path("m")), .name = name});
    const FlameView view = build(Sample(b.finish()));
    const std::string label = label_of(view, view.nodes.back());
    EXPECT_THAT(label, StartsWith("a b [31mxx"));
    EXPECT_LT(label.size(), 300u);
}

TEST(BuildFlameView, SortsMoreLayersThanThereAreBySize) {
    TraceBuilder b;
    for (int i = 0; i < 5000; ++i) {
        const auto module = b.module_path("l." + std::to_string(i), i);
        b.allocate({.bytes = 1 + i % 7, .op = b.op("aten::mm", module), .name = "x"});
    }
    const FlameView view = build(Sample(b.finish()));
    expect_sound(view);
    EXPECT_EQ(view.nodes[1].layer, -1);
    EXPECT_EQ(view.nodes[1].bytes[0], 7);
}

// ---- layout -----------------------------------------------------------------------------------

TEST(LayOutFlame, FillsTheWidthLevelByLevel) {
    const FlameView view = build(two_layers());
    const FlameLayout layout = lay_out_flame(view, 0, 1130);
    EXPECT_EQ(layout.row_count, 5);  // memory, encoder, layer, self, tensor
    std::vector<float> end(5, 0);
    for (const FlameBox& box : layout.boxes) {
        ASSERT_GE(box.node, 0);
        ASSERT_GE(box.left, end[static_cast<std::size_t>(box.row)]);
        end[static_cast<std::size_t>(box.row)] = box.right;
        ASSERT_FLOAT_EQ(
            box.right - box.left,
            static_cast<float>(view.nodes[static_cast<std::size_t>(box.node)].width_bytes));
    }
    const std::size_t layer = at(view, "encoder.layer.1");
    const FlameLayout zoomed = lay_out_flame(view, layer, 600);
    EXPECT_EQ(zoomed.boxes[0].node, static_cast<int32_t>(layer));
    EXPECT_FLOAT_EQ(zoomed.boxes[0].right, 600);
    EXPECT_TRUE(lay_out_flame(view, 0, 0).boxes.empty());
    EXPECT_TRUE(lay_out_flame(view, view.nodes.size(), 100).boxes.empty());
}

TEST(LayOutFlame, MergesWhatIsNarrowerThanAPixel) {
    TraceBuilder b;
    const auto op = b.op("aten::mm", b.module_path("m"));
    b.allocate({.bytes = 50'000, .op = op, .name = "large"});
    for (int i = 0; i < 50'000; ++i) b.allocate({.bytes = 1, .op = op, .name = "small"});
    const FlameView view = build(Sample(b.finish()));
    const FlameLayout layout = lay_out_flame(view, 0, 1000);
    ASSERT_EQ(layout.boxes.size(), 4u);  // memory, m, large, the rest
    EXPECT_EQ(layout.boxes[3].node, -1);
    EXPECT_EQ(layout.boxes[3].merged_count, 50'000);
    EXPECT_EQ(layout.boxes[3].merged_bytes, 50'000);
    EXPECT_FLOAT_EQ(layout.boxes[3].left, 500);
    EXPECT_FLOAT_EQ(layout.boxes[3].right, 1000);
}

/// A million tensors in one module: the boxes are as many as the picture has pixels.
TEST(LayOutFlame, VisitsOnlyWhatItDraws) {
    FlameView view;
    constexpr int32_t kCount = 1'000'000;
    view.nodes.push_back({.first_child = 1, .child_count = kCount, .width_bytes = kCount});
    for (int32_t i = 0; i < kCount; ++i) {
        view.nodes.push_back({.parent = 0, .width_bytes = 1, .is_tensor = true});
    }
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(lay_out_flame(view, 0, 2000).boxes.size(), 2u);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

// ---- texts ------------------------------------------------------------------------------------

TEST(FindNode, FollowsAPathIntoAnotherView) {
    const Sample a = two_layers();
    const FlameView view = build(a);
    const std::size_t self = at(view, "encoder.layer.1.self");
    EXPECT_THAT(names_of(view, self), ElementsAre("encoder", "layer.1", "self"));
    EXPECT_EQ(find_node(view, names_of(view, self)), self);
    // As far as it goes; a tensor cannot be zoomed to.
    EXPECT_EQ(find_node(view, {"encoder", "layer.1", "self", "probs"}), self);
    EXPECT_EQ(find_node(view, {"gone"}), 0u);
}

TEST(ReadFlame, TellsBytesShareAndCategories) {
    const FlameView view = build(two_layers());
    const FlameReadout readout = read_flame(view, at(view, "encoder.layer.1.self"));
    EXPECT_EQ(readout.title, "encoder.layer.1.self");
    EXPECT_EQ(readout.rows[0].second, "600 B  (600 B)");
    EXPECT_EQ(readout.rows[1].second, "53.1 %");
    ASSERT_EQ(readout.categories.size(), 2u);
    EXPECT_EQ(readout.categories[0].category, Category::kActivation);
    EXPECT_EQ(readout.categories[0].share, "66.7 %");
    EXPECT_EQ(read_flame(view, 0).title, "all memory");
}

TEST(FlameAsText, IndentsTheTree) {
    const FlameView view = build(two_layers());
    const std::string text = flame_as_text(view, at(view, "encoder.layer.0"));
    EXPECT_THAT(text, HasSubstr("\nlayer.0  500 B  44.2 %\n  self  500 B"));
    EXPECT_THAT(text, HasSubstr("\n    probs  400 B"));
    const std::string csv = flame_as_csv(view, 0);
    EXPECT_THAT(csv, StartsWith("path,kind,category,tensors,size_bytes\n"));
    EXPECT_THAT(csv, HasSubstr("encoder.layer.1.self.probs,tensor,activation,1,400\n"));
}

TEST(FlameAsCsv, QuotesWhatASpreadsheetWouldRun) {
    TraceBuilder b;
    b.allocate({.bytes = 8, .op = b.op("=HYPERLINK(\"x\",1)"), .name = "x"});
    const FlameView view = build(Sample(b.finish()));
    const std::string csv = flame_as_csv(view, 0);
    EXPECT_THAT(csv, HasSubstr("\"'=HYPERLINK(\"\"x\"\",1)\","));
    EXPECT_THAT(csv, Not(HasSubstr("\n=")));
}

}  // namespace
