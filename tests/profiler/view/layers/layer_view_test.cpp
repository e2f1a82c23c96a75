// The Layer explorer's picture, from traces made by hand: which boxes and ribbons it has, where
// they lie, and what a second trace changes.
#include "profiler/view/layers/layer_view.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/step_report.h"
#include "tests/support/loaded_step.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

namespace {

using namespace profiler;
using tests::TraceBuilder;

constexpr int64_t kMiB = int64_t{1} << 20;

models::Workload workload_with(const std::string& recipe) {
    models::Workload workload{.model = *models::find_model("bert-large"), .recipe_name = recipe};
    workload.recipe = *models::parse_recipe(recipe);
    return workload;
}

/// Writes the calls of layers. Each call takes 10 µs and says that it writes elements.
class Writer {
public:
    explicit Writer(const std::string& recipe = "original") : b(workload_with(recipe)) {
        b.begin_step();
    }

    Id<ModulePath> module(const std::string& path, int64_t layer = 12) {
        const std::string layer_path = "encoder.layer." + std::to_string(layer);
        const auto [known, is_new] = layers_.try_emplace(layer);
        if (is_new) known->second = b.module_path(layer_path, layer);
        if (path.empty()) return known->second;
        return b.module_path(layer_path + "." + path, layer, known->second);
    }
    Id<Op> call(std::string_view name, Id<ModulePath> where, Id<Op> parent = {},
                Id<Op> forward = {}) {
        const Id<Op> op = b.op(name, where);
        b.wait(10'000);
        auto& ops = b.trace().ops;
        ops.set<&Op::written_words>(op, 1);
        ops.set<&Op::parent>(op, parent);
        ops.set<&Op::forward>(op, forward);
        ops.set<&Op::end_ns>(op, ops.get<&Op::start_ns>(op) + 10'000);
        return op;
    }
    Id<Allocation> make(const std::string& name, int64_t bytes, Id<Op> op) {
        return b.allocate({.bytes = bytes,
                           .category = Category::kActivation,
                           .op = op,
                           .name = name,
                           .shape = "[8, 512]"});
    }
    Trace finish() { return b.finish(); }

    TraceBuilder b;

private:
    std::map<int64_t, Id<ModulePath>> layers_;
};

/// The second half of a layer: dense, GELU, dense. In place, GELU saves its output and a mask
/// instead of its input.
Trace half_layer(bool in_place, std::vector<int64_t> layers = {12}) {
    Writer w(in_place ? "tempo-gelu" : "original");
    struct Layer {
        Id<Op> dense, gelu, output;
        Id<Save> of_gelu, of_output;
    };
    std::vector<Layer> made;
    w.b.begin_phase(PhaseKind::kForward);
    for (const int64_t layer : layers) {
        Layer l;
        l.dense = w.call("aten::addmm", w.module("intermediate.dense", layer));
        const auto input = w.make("gelu_input", 32 * kMiB, l.dense);
        l.gelu = w.call(in_place ? "tempo::gelu" : "aten::gelu",
                        w.module("intermediate.intermediate_act_fn", layer));
        const auto output = w.make("gelu_output", 32 * kMiB, l.gelu);
        if (in_place) {
            w.b.save(w.make("branch_mask", 8 * kMiB, l.gelu), l.gelu);
            l.of_gelu = w.b.save(output, l.gelu);
        } else {
            l.of_gelu = w.b.save(input, l.gelu);
        }
        l.output = w.call("aten::addmm", w.module("output.dense", layer));
        l.of_output = w.b.save(output, l.output);
        made.push_back(l);
    }
    w.b.begin_phase(PhaseKind::kBackward);
    std::reverse(made.begin(), made.end());
    for (std::size_t i = 0; i < made.size(); ++i) {
        const int64_t layer = layers[layers.size() - 1 - i];
        w.call("AddmmBackward0", w.module("output.dense", layer), {}, made[i].output);
        w.b.release(made[i].of_output);
        w.b.free(w.make("grad", 1, {}));
        w.call("GeluBackward0", w.module("intermediate.intermediate_act_fn", layer), {},
               made[i].gelu);
        w.b.release(made[i].of_gelu);
        w.call("AddmmBackward0", w.module("intermediate.dense", layer), {}, made[i].dense);
    }
    return w.finish();
}

struct Subject : tests::LoadedStep {
    using LoadedStep::LoadedStep;
    LayerView alone(LayerRange layers = {12, 12}) const {
        return build_layer_view({.steps = {&index}, .layers = layers});
    }
    LayerView beside(const Subject& other, LayerRange layers = {12, 12}) const {
        return build_layer_view({.steps = {&index, &other.index}, .layers = layers});
    }
    std::vector<std::pair<std::string, std::string>> effect_of(const Subject& other) const {
        return switch_effect({.steps = {&index, &other.index}, .layers = {12, 12}}, 24);
    }
};

const LayerRibbon& ribbon_named(const LayerView& view, std::string_view name) {
    const auto found = std::ranges::find(view.ribbons, name, &LayerRibbon::name);
    if (found == view.ribbons.end()) throw std::out_of_range(std::string(name));
    return *found;
}

std::vector<std::string> titles(const LayerView& view) {
    std::vector<std::string> titles;
    for (const LayerColumn& column : view.columns) titles.push_back(column.title);
    return titles;
}

std::string detail(const LayerRibbon& ribbon, std::string_view label) {
    for (const auto& [name, value] : ribbon.details) {
        if (name == label) return value;
    }
    return {};
}

TEST(LayerView, ColumnsFollowTheForward) {
    const LayerView view = Subject(half_layer(false)).alone();
    EXPECT_EQ(titles(view), (std::vector<std::string>{"dense", "gelu", "dense"}));
    for (const LayerColumn& column : view.columns) {
        EXPECT_TRUE(column.forward.exists);
        EXPECT_TRUE(column.backward.exists);
        EXPECT_EQ(column.forward.time_text, "10.0 µs");
    }
    EXPECT_EQ(view.columns[1].backward.calls, "GeluBackward0");
}

TEST(LayerView, ARibbonRunsFromTheMakerToTheBackwardOfTheOpThatSavesIt) {
    const LayerView view = Subject(half_layer(false)).alone();
    ASSERT_EQ(view.ribbons.size(), 2U);
    const LayerRibbon& input = ribbon_named(view, "gelu_input");
    EXPECT_EQ(input.producer, 0U);
    EXPECT_EQ(input.consumer, 1U);
    EXPECT_TRUE(input.consumer_known);
    EXPECT_EQ(input.size_text, "32.0 MiB");
    EXPECT_EQ(detail(input, "released by"), "GeluBackward0");
    EXPECT_EQ(detail(input, "made by"), "addmm");
    EXPECT_EQ(ribbon_named(view, "gelu_output").consumer, 2U);
}

TEST(LayerView, WhereTwoOpsSaveATensorTheRibbonEndsAtTheLastRelease) {
    const LayerView view = Subject(half_layer(true)).alone();
    const LayerRibbon& output = ribbon_named(view, "gelu_output");
    EXPECT_EQ(output.consumer, 1U);
    EXPECT_EQ(output.also, std::vector<std::size_t>{2});
    EXPECT_EQ(detail(output, "kept by"), "gelu, addmm");
}

TEST(LayerView, MarksWhatOnlyOneTraceSaves) {
    const Subject original(half_layer(false)), in_place(half_layer(true));
    const LayerView view = original.beside(in_place);
    EXPECT_EQ(view.box_times_text, "boxes show B");
    ASSERT_EQ(view.ribbons.size(), 3U);
    const LayerRibbon& input = ribbon_named(view, "gelu_input");
    EXPECT_EQ(input.presence, Presence::kDisappeared);
    EXPECT_EQ(input.size_text, "-32.0 MiB");
    const LayerRibbon& mask = ribbon_named(view, "branch_mask");
    EXPECT_EQ(mask.presence, Presence::kAdded);
    EXPECT_EQ(mask.size_text, "+8.00 MiB");
    EXPECT_FALSE(mask.storage[0].valid());
    EXPECT_EQ(ribbon_named(view, "gelu_output").presence, Presence::kSame);
    EXPECT_EQ(titles(view), (std::vector<std::string>{"dense", "gelu", "dense"}));
    ASSERT_FALSE(view.figures.empty());
    EXPECT_EQ(view.figures[0].label, "layer 12");
    EXPECT_EQ(view.figures[0].value[0], "64.0 MiB");
    EXPECT_EQ(view.figures[0].value[1], "40.0 MiB");
    EXPECT_EQ(view.figures[0].difference, "-24.0 MiB");
    EXPECT_EQ(view.figures[0].sign, -1);
}

TEST(LayerView, SaysWhatOneSwitchAloneChanges) {
    const Subject original(half_layer(false)), in_place(half_layer(true));
    using Row = std::pair<std::string, std::string>;
    EXPECT_THAT(original.effect_of(in_place), testing::Contains(Row("layer 12", "-24.0 MiB")));
    EXPECT_THAT(original.effect_of(original), testing::IsEmpty());
}

TEST(LayerView, SumsSeveralLayers) {
    const Subject subject(half_layer(false, {3, 4, 5}));
    const LayerView two = subject.alone({4, 5});
    EXPECT_EQ(two.columns.size(), 3U);
    const LayerRibbon& input = ribbon_named(two, "gelu_input");
    EXPECT_EQ(input.bytes[0], 64 * kMiB);
    EXPECT_EQ(input.storages[0].size(), 2U);
    EXPECT_EQ(two.columns[0].forward.time_text, "20.0 µs");
    EXPECT_EQ(two.box_times_text, "") << "there is only A";
    EXPECT_EQ(two.figures[0].label, "layers 4 to 5");
    const LayerView all = subject.alone({0, 23});
    EXPECT_EQ(all.figures[0].label, "all 24 layers");
    EXPECT_EQ(ribbon_named(all, "gelu_input").bytes[0], 96 * kMiB);
}

TEST(LayerView, FindsRibbonsAndBoxesOfASelection) {
    const Subject original(half_layer(false)), in_place(half_layer(true));
    const LayerView view = original.beside(in_place);
    const LayerRibbon& mask = ribbon_named(view, "branch_mask");
    const auto index = static_cast<std::size_t>(&mask - view.ribbons.data());
    EXPECT_EQ(ribbon_of(view, true, mask.storage[1]), index);
    EXPECT_NE(ribbon_of(view, false, mask.storage[1]), index);
    EXPECT_EQ(ribbon_of(view, false, Id<Storage>()), std::nullopt);
    const Id<Op> backward = view.columns[1].backward.op[0];
    EXPECT_EQ(place_of(view, false, backward).column, 1U);
    EXPECT_TRUE(place_of(view, false, backward).in_backward);
    EXPECT_EQ(place_of(view, false, Id<Op>(9999)).column, kOutside);
}

// ---- the rule for consumers where no backward call refers to the saver --------------------------

/// One call saves a tensor of 4 MiB; `finish` writes what backward does with it.
template <typename Finish>
Subject saved_by_unlinked_call(Finish finish) {
    Writer w;
    w.b.begin_phase(PhaseKind::kForward);
    const Id<Op> softmax = w.call("aten::_softmax", w.module("attention.self.softmax"));
    const Id<Op> dense = w.call("aten::addmm", w.module("output.dense"));
    const auto probs = w.make("probs", 4 * kMiB, softmax);
    w.b.save(probs, softmax);
    w.b.begin_phase(PhaseKind::kBackward);
    const Id<Op> backward = w.call("aten::addmm_backward", w.module("output.dense"), {}, dense);
    finish(w.b.trace(), probs, backward);
    return Subject(w.finish());
}

TEST(LayerView, WithoutALinkTheFirstBackwardCallThatReadsTheStorageConsumesIt) {
    const Subject subject = saved_by_unlinked_call([](Trace& trace, Id<Allocation>,
                                                      Id<Op> backward) {
        trace.op_tensors.append({.op = backward, .tensor = Id<Tensor>(0), .access = Access::kRead});
    });
    const LayerView view = subject.alone();
    EXPECT_TRUE(ribbon_named(view, "probs").consumer_known);
    EXPECT_EQ(ribbon_named(view, "probs").consumer, 1U);
}

TEST(LayerView, ElseTheCallThatFreesTheMemoryDoes) {
    const Subject subject =
        saved_by_unlinked_call([](Trace& trace, Id<Allocation> probs, Id<Op> backward) {
            trace.allocations.set<&Allocation::freeing_op>(probs, backward);
        });
    EXPECT_EQ(ribbon_named(subject.alone(), "probs").consumer, 1U);
}

TEST(LayerView, ElseItIsNotKnown) {
    const Subject subject = saved_by_unlinked_call([](Trace&, Id<Allocation>, Id<Op>) {});
    const LayerView view = subject.alone();
    const LayerRibbon& probs = ribbon_named(view, "probs");
    EXPECT_FALSE(probs.consumer_known);
    EXPECT_EQ(probs.consumer, 0U);
    EXPECT_EQ(detail(probs, "released by"), "not known");
}

// ---- calls --------------------------------------------------------------------------------------

TEST(LayerView, LeavesOutCallsThatComputeNothing) {
    Writer w;
    w.b.begin_phase(PhaseKind::kForward);
    const auto self = w.module("attention.self");
    w.module("attention.self.query");
    const Id<Op> view_call = w.call("aten::view", self);
    w.b.trace().ops.set<&Op::written_words>(view_call, 0);
    w.call("aten::addmm", w.module("attention.self.query"));
    w.call("aten::contiguous", self);
    const LayerView view = Subject(w.finish()).alone();
    EXPECT_EQ(titles(view), (std::vector<std::string>{"query", "contiguous"}));
}

TEST(LayerView, ATensorOfTheLayerBeforeComesFromOutside) {
    Writer w;
    w.b.begin_phase(PhaseKind::kForward);
    const Id<Op> before = w.call("aten::native_layer_norm", w.module("output.LayerNorm", 11));
    const auto hidden = w.make("hidden_states", kMiB, before);
    const Id<Op> query = w.call("aten::addmm", w.module("attention.self.query"));
    w.b.save(hidden, query);
    const LayerView view = Subject(w.finish()).alone();
    const LayerRibbon& ribbon = ribbon_named(view, "hidden_states");
    EXPECT_EQ(ribbon.producer, kOutside);
    EXPECT_GT(view.outside_right, 0);
    EXPECT_LE(ribbon.top_right, view.outside_right);
    EXPECT_GE(ribbon.bottom_left, view.outside_right);
}

TEST(LayerView, NamesACastAfterItsSource) {
    Writer w;
    w.b.begin_phase(PhaseKind::kForward);
    const auto module = w.module("attention.self.query");
    const Id<Op> linear = w.call("aten::linear", module);
    const Id<Op> copy = w.call("aten::copy_", module, linear);
    w.make("encoder.layer.12.attention.self.query.weight", 4 * kMiB, {});
    const auto cast = w.make("_to_copy_output", 2 * kMiB, copy);
    Trace& trace = w.b.trace();
    trace.tensors.set<&Tensor::dtype>(Id<Tensor>(1), DType::kBFloat16);
    trace.op_tensors.append({.op = copy, .tensor = Id<Tensor>(0), .access = Access::kRead});
    trace.op_tensors.append({.op = copy, .tensor = Id<Tensor>(1), .access = Access::kRead});
    trace.op_tensors.append({.op = copy, .tensor = Id<Tensor>(1), .access = Access::kWrite});
    w.b.save(cast, linear);
    EXPECT_NO_THROW(ribbon_named(Subject(w.finish()).alone(), "query.weight cast"));
}

TEST(LayerView, MarksRecomputationInsideABackwardCall) {
    Writer w;
    w.b.begin_phase(PhaseKind::kForward);
    const auto core = w.module("attention.self.core");
    const Id<Op> forward = w.call("tempo::attention_core", core);
    w.b.begin_phase(PhaseKind::kBackward);
    const Id<Op> backward = w.call("AttentionCoreFunction", core, {}, forward);
    w.b.trace().ops.set<&Op::end_ns>(backward,
                                     w.b.trace().ops.get<&Op::start_ns>(backward) + 50'000);
    w.call("tempo::softmax_dropout_recompute", core, backward, forward);
    w.call("aten::bmm", core, backward, forward);
    const LayerView view = Subject(w.finish()).alone();
    ASSERT_EQ(view.columns.size(), 1U);
    EXPECT_EQ(view.columns[0].backward.recomputed_text, "10.0 µs");
    EXPECT_EQ(view.columns[0].backward.time_text, "50.0 µs");
    EXPECT_EQ(view.columns[0].forward.recomputed_text, "");
    EXPECT_EQ(view.recomputed_text, "10.0 µs recomputed");
}

TEST(LayerView, ACheckpointRunsItsForwardAgain) {
    Writer w;
    w.b.begin_phase(PhaseKind::kForward);
    const auto layer = w.module(""), gelu = w.module("intermediate.act");
    const Id<Op> checkpoint = w.call("tempo::checkpoint", layer);
    w.call("aten::gelu", gelu, checkpoint);
    w.call("aten::add", layer, checkpoint);
    w.b.save(w.make("hidden_states", kMiB, checkpoint), checkpoint);
    w.b.begin_phase(PhaseKind::kBackward);
    const Id<Op> backward = w.call("CheckpointFunction", layer, {}, checkpoint);
    const Id<Op> again = w.call("aten::gelu", gelu, backward, checkpoint);
    w.call("aten::add", layer, backward, checkpoint);
    w.call("autograd::engine::evaluate_function: GeluBackward0", gelu, backward, again);
    const LayerView view = Subject(w.finish()).alone();
    EXPECT_EQ(titles(view), (std::vector<std::string>{"checkpoint", "act", "add"}));
    EXPECT_EQ(view.columns[1].backward.recomputed_text, "10.0 µs");
    EXPECT_EQ(view.columns[1].backward.time_text, "20.0 µs");
    EXPECT_EQ(view.columns[2].backward.recomputed_text, "10.0 µs");
    EXPECT_EQ(view.columns[0].backward.recomputed_text, "");
}

TEST(LayerView, KernelsGiveTheTimes) {
    Trace trace = half_layer(false);
    const auto stream = trace.streams.append({});
    trace.kernels.append({.name = trace.strings.intern("gelu_kernel"),
                          .stream = stream,
                          .op = Id<Op>(1),
                          .start_ns = 0,
                          .end_ns = 3'000'000});
    const LayerView view = Subject(std::move(trace)).alone();
    EXPECT_EQ(view.columns[1].forward.time_text, "3.00 ms");
    EXPECT_EQ(view.forward_text[0], "3.00 ms");
}

TEST(LayerView, BarsOfTimeHaveOneScaleAndFitIntoTheirBoxes) {
    Trace trace = half_layer(false);
    const auto stream = trace.streams.append({});
    for (const auto& [op, end_ns] : {std::pair(0, 1'000'000), std::pair(1, 3'000'000)}) {
        trace.kernels.append({.name = trace.strings.intern("kernel"),
                              .stream = stream,
                              .op = Id<Op>(op),
                              .start_ns = 0,
                              .end_ns = end_ns});
    }
    const LayerView view = Subject(std::move(trace)).alone();
    const auto& brief = view.columns[0];
    const auto& longest = view.columns[1];
    EXPECT_NEAR(longest.forward.time_width, 3 * brief.forward.time_width, 1e-12);
    EXPECT_GT(longest.forward.time_width, 0.7 * (longest.right - longest.left));
    EXPECT_LT(longest.forward.time_width, longest.right - longest.left);
    EXPECT_EQ(longest.backward.time_width, 0) << "no kernel ran in backward";
}

TEST(LayerView, TimesInEventOrderAreNotShown) {
    Trace trace = half_layer(false);
    trace.runs.set<&Run::time_basis>(Id<profiler::Run>(0), TimeBasis::kEventOrder);
    const LayerView view = Subject(std::move(trace)).alone();
    EXPECT_EQ(view.columns[0].forward.time_text, "");
    EXPECT_EQ(view.forward_text[0], "");
    EXPECT_EQ(view.box_times_text, "");
}

// ---- positions ----------------------------------------------------------------------------------

TEST(LayerView, RibbonsHaveOneScaleAndStayInTheirColumns) {
    const LayerView view = Subject(half_layer(false)).beside(Subject(half_layer(true)));
    EXPECT_DOUBLE_EQ(view.columns.front().left, 0);
    EXPECT_NEAR(view.columns.back().right, 1, 1e-9);
    const double byte_width = (view.ribbons[0].top_right - view.ribbons[0].top_left) /
                              static_cast<double>(view.ribbons[0].bytes[0]);
    for (const LayerRibbon& ribbon : view.ribbons) {
        const auto bytes = static_cast<double>(std::max(ribbon.bytes[0], ribbon.bytes[1]));
        EXPECT_NEAR(ribbon.top_right - ribbon.top_left, bytes * byte_width, 1e-9);
        EXPECT_NEAR(ribbon.bottom_right - ribbon.bottom_left, bytes * byte_width, 1e-9);
        EXPECT_GE(ribbon.top_left, view.columns[ribbon.producer].left);
        EXPECT_LE(ribbon.top_right, view.columns[ribbon.producer].right);
        EXPECT_GE(ribbon.bottom_left, view.columns[ribbon.consumer].left);
        EXPECT_LE(ribbon.bottom_right, view.columns[ribbon.consumer].right);
        for (const LayerRibbon& other : view.ribbons) {
            if (&other == &ribbon) continue;
            EXPECT_TRUE(other.top_left >= ribbon.top_right - 1e-9 ||
                        other.top_right <= ribbon.top_left + 1e-9);
        }
    }
}

TEST(LayerView, JoinsTheSmallestOfManyTensors) {
    Writer w;
    w.b.begin_phase(PhaseKind::kForward);
    const Id<Op> op = w.call("aten::addmm", w.module("output.dense"));
    int64_t total = 0;
    for (int i = 0; i < 1000; ++i) {
        w.b.save(w.make("t" + std::to_string(i), 1000 + i, op), op);
        total += 1000 + i;
    }
    const LayerView view = Subject(w.finish()).alone();
    EXPECT_LE(view.ribbons.size(), LayerView::kMostRibbons + 1);
    int64_t shown = 0;
    for (const LayerRibbon& ribbon : view.ribbons) shown += ribbon.bytes[0];
    EXPECT_EQ(shown, total);
    EXPECT_EQ(view.ribbons.back().name, "840 small tensors");
}

TEST(LayerView, LeavesOutModulesThatTakeLeastTime) {
    Writer w;
    w.b.begin_phase(PhaseKind::kForward);
    for (int i = 0; i < 200; ++i) w.call("aten::mm", w.module("part" + std::to_string(i)));
    const LayerView view = Subject(w.finish()).alone();
    EXPECT_EQ(view.columns.size(), LayerFlow::kMostColumns);
    ASSERT_EQ(view.notes.size(), 1U);
}

// ---- what can be wrong --------------------------------------------------------------------------

TEST(LayerView, NoTraceAndNoCallsGiveAnEmptyPicture) {
    EXPECT_TRUE(build_layer_view({}).columns.empty());
    EXPECT_TRUE(Subject(TraceBuilder().finish()).alone().columns.empty());
    EXPECT_TRUE(Subject(half_layer(false)).alone({2, 2}).columns.empty());
}

TEST(LayerView, ClampsTheLayersToThoseOfTheTrace) {
    const LayerView view = Subject(half_layer(false)).alone({-5, 4000});
    EXPECT_EQ(view.layers, (LayerRange{0, 23}));
    EXPECT_EQ(Subject(half_layer(false)).alone({20, 3}).layers, (LayerRange{20, 20}));
}

TEST(LayerView, ParentsThatFormACircleAreIgnored) {
    Trace trace = half_layer(false);
    trace.ops.set<&Op::parent>(Id<Op>(0), Id<Op>(1));
    trace.ops.set<&Op::parent>(Id<Op>(1), Id<Op>(0));
    trace.ops.set<&Op::parent>(Id<Op>(2), Id<Op>(2));
    trace.ops.set<&Op::forward>(Id<Op>(3), Id<Op>(3));
    Subject(std::move(trace)).alone();
}

TEST(LayerView, MissingLinksAreIgnored) {
    Trace trace = half_layer(true);
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        if (i % 2 == 0) trace.ops.set<&Op::module_path>(Id<Op>(i), {});
        if (i % 3 == 0) trace.ops.set<&Op::phase>(Id<Op>(i), {});
    }
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        trace.allocations.set<&Allocation::op>(Id<Allocation>(i), {});
    }
    trace.saves.set<&Save::op>(Id<Save>(0), {});
    trace.saves.set<&Save::tensor>(Id<Save>(1), {});
    Subject(std::move(trace)).alone({0, 23});
}

TEST(LayerView, NamesFromFilesAreCleanedAndShortened) {
    Trace trace = half_layer(false);
    trace.tensors.set<&Tensor::name>(
        Id<Tensor>(0), trace.strings.intern(std::string("a\nb\x01") + std::string(5000, 'x')));
    const LayerView view = Subject(std::move(trace)).alone();
    const auto named = std::find_if(view.ribbons.begin(), view.ribbons.end(),
                                    [](const auto& r) { return r.name.starts_with("a b "); });
    ASSERT_NE(named, view.ribbons.end());
    EXPECT_LT(named->name.size(), 70U);
}

// ---- switches -----------------------------------------------------------------------------------

const RecipeSwitchRow* find_switch(const std::vector<RecipeSwitchRow>& rows,
                                   std::string_view name) {
    for (const RecipeSwitchRow& row : rows) {
        if (row.name == name) return &row;
    }
    return nullptr;
}

TEST(RecipeSwitches, ShowWhatAAndBChose) {
    const LayerView view = Subject(half_layer(false)).beside(Subject(half_layer(true)));
    const RecipeSwitchRow* gelu = find_switch(view.switches, "gelu");
    ASSERT_NE(gelu, nullptr);
    EXPECT_EQ(gelu->options[gelu->chosen[0]].name, "original");
    EXPECT_EQ(gelu->options[gelu->chosen[1]].name, "in_place");
    EXPECT_EQ(find_switch(view.switches, "optimizer"), nullptr);
}

TEST(RecipeSwitches, AnOptionLeadsToTheRecipeOfBWithIt) {
    const Trace original = half_layer(false), in_place = half_layer(true);
    const auto alone = recipe_switches(original, nullptr, 12);
    EXPECT_EQ(find_switch(alone, "gelu")->options[1].recipe, "gelu=in_place");
    EXPECT_EQ(find_switch(alone, "gelu")->chosen[1], RecipeSwitchRow::kNone);
    const auto two = recipe_switches(original, &in_place, 12);
    EXPECT_EQ(find_switch(two, "gelu")->options[0].recipe, "original");
    EXPECT_EQ(find_switch(two, "masks")->options[1].recipe, "gelu=in_place,masks=bit");
    // Fused kernels need other switches.
    EXPECT_EQ(find_switch(alone, "fusion")->options[1].recipe,
              "gelu=in_place,layer_norm=from_output,fusion=tempo");
}

TEST(RecipeSwitches, AreMissingWhereTheTraceSaysNoWorkload) {
    Trace trace = half_layer(false);
    trace.runs.set<&Run::workload>(Id<profiler::Run>(0), trace.strings.intern("{}"));
    EXPECT_TRUE(recipe_switches(trace, nullptr, 12).empty());
    EXPECT_EQ(canonical_recipe(trace), std::nullopt);
    EXPECT_EQ(canonical_recipe(half_layer(true)), "gelu=in_place");
}

}  // namespace
