#include "profiler/analysis/step/ledger.h"

#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace tests;
using testing::ElementsAre;

/// Two layers; the second's input is the first's output, kept by the LayerNorm that made it and by
/// the linear that reads it.
struct TwoLayers {
    TraceBuilder b;
    Id<ModulePath> layer0 = b.module_path("encoder.layer.0", 0);
    Id<ModulePath> layer1 = b.module_path("encoder.layer.1", 1);
    Id<Allocation> weight, output0, probs1, dead;
    Id<Save> by_norm, by_linear;
    Trace trace;

    TwoLayers() {
        weight = b.allocate({.bytes = 400, .category = Category::kParameter, .name = "weight"});
        b.begin_step(PhaseKind::kForward);
        const auto norm = b.op("tempo::inplace_layer_norm", layer0);
        output0 = b.allocate({.bytes = 100,
                              .category = Category::kActivation,
                              .op = norm,
                              .name = "mlp_norm_output",
                              .shape = "[5, 5]"});
        by_norm = b.save(output0, norm);
        b.save(weight, norm);
        const auto linear = b.op("aten::addmm", layer1);
        by_linear = b.save(output0, linear);
        const auto softmax = b.op("aten::_softmax", layer1);
        probs1 = b.allocate({.bytes = 60,
                             .category = Category::kActivation,
                             .op = softmax,
                             .name = "attention_probs",
                             .dtype = DType::kBFloat16});
        b.save(probs1, softmax);
        dead = b.allocate({.bytes = 1000, .category = Category::kActivation});
        b.release(b.save(dead, softmax));
        b.free(dead);
        b.begin_phase(PhaseKind::kLoss);
        const auto loss = b.op("aten::mul");
        const auto product =
            b.allocate({.bytes = 8, .category = Category::kActivation, .op = loss});
        b.save(product, loss);
        b.begin_phase(PhaseKind::kBackward);
        b.release(by_linear);
        b.allocate({.bytes = 4});
        b.release(by_norm);
        b.free(output0);
        trace = b.finish();
    }
};

TEST(BuildLedger, ListsEachStorageOnceUnderTheFirstOpThatKeepsIt) {
    const TwoLayers t;
    const Ledger ledger = build_ledger(t.trace);
    ASSERT_EQ(ledger.rows.size(), 3u);
    EXPECT_EQ(ledger.total_bytes, 168);

    const LedgerRow& shared = ledger.rows[0];
    EXPECT_EQ(shared.module_path, "encoder.layer.0");
    EXPECT_EQ(shared.layer, 0);
    EXPECT_EQ(shared.op, "tempo::inplace_layer_norm");
    EXPECT_EQ(shared.tensor, "mlp_norm_output");
    EXPECT_EQ(shared.shape, "[5, 5]");
    EXPECT_EQ(shared.size_bytes, 100);
    EXPECT_THAT(shared.saved_by, ElementsAre("tempo::inplace_layer_norm", "aten::addmm"));
    EXPECT_EQ(shared.allocation, t.output0);

    EXPECT_EQ(ledger.rows[1].tensor, "attention_probs");
    EXPECT_EQ(ledger.rows[1].dtype, DType::kBFloat16);
    EXPECT_EQ(ledger.rows[1].released_event, -1) << "still kept at the end of the trace";
    EXPECT_EQ(ledger.rows[2].op, "aten::mul") << "what the loss keeps counts: backward needs it";
}

/// A loss saves half of its logits: the storage is that of all.
TEST(BuildLedger, GivesAPartOfAStorageTheShapeOfTheWhole) {
    TraceBuilder b;
    b.begin_step(PhaseKind::kForward);
    const auto op = b.op("aten::_log_softmax");
    const auto logits =
        b.allocate({.bytes = 64, .op = op, .shape = "[8, 4]", .dtype = DType::kBFloat16});
    const Tensor whole = b.trace().tensors[Id<Tensor>(0)];
    const auto part = b.trace().tensors.append(
        {.storage = whole.storage, .shape = b.text("[4, 4]"), .dtype = DType::kBFloat16});
    const auto save = b.save(logits, op);
    b.trace().saves.set<&Save::tensor>(save, part);
    b.begin_phase(PhaseKind::kBackward);
    const Trace trace = b.finish();
    const LedgerRow row = build_ledger(trace).rows.at(0);
    EXPECT_EQ(row.shape, "[8, 4]");
    EXPECT_EQ(row.size_bytes, 64);
}

TEST(BuildLedger, NamesTheCheckpointThatKeepsItsInputs) {
    TraceBuilder b;
    b.begin_step(PhaseKind::kForward);
    const auto op = b.op("_NoopSaveInputs");
    b.save(b.allocate({.bytes = 64, .op = op}), op);
    b.begin_phase(PhaseKind::kBackward);
    const Trace trace = b.finish();
    EXPECT_EQ(build_ledger(trace).rows.at(0).op, "checkpoint");
}

TEST(BuildLedger, KeepsAStorageUntilItsLastKeeperLetsGo) {
    const TwoLayers t;
    const LedgerRow row = build_ledger(t.trace).rows[0];
    EXPECT_EQ(row.released_event, t.trace.saves.get<&Save::released_event>(t.by_norm));
    EXPECT_EQ(row.released_ns, t.trace.allocations.get<&Allocation::free_requested_ns>(t.output0));
    EXPECT_EQ(row.saved_ns, t.trace.ops.get<&Op::start_ns>(Id<Op>(0)));
}

TEST(BuildLedger, LeavesParametersOutUnlessAsked) {
    const TwoLayers t;
    const Ledger all = build_ledger(t.trace, {.include_all = true});
    EXPECT_EQ(all.total_bytes, 568);
    EXPECT_EQ(all.rows.size(), 4u);
}

TEST(BuildLedger, TakesOnlyTheScopeAsked) {
    const TwoLayers t;
    EXPECT_EQ(build_ledger(t.trace, {.module_path = "encoder.layer.1"}).total_bytes, 60);
    EXPECT_EQ(build_ledger(t.trace, {.module_path = "encoder"}).total_bytes, 160);
    EXPECT_EQ(build_ledger(t.trace, {.module_path = "encoder.layer"}).total_bytes, 160);
    EXPECT_EQ(build_ledger(t.trace, {.module_path = "enc"}).total_bytes, 0)
        << "a name, not a prefix";
}

TEST(BuildLedger, IsTakenInTheLastRecordedStep) {
    TraceBuilder b;
    for (const int64_t bytes : {10, 30}) {
        b.begin_step(PhaseKind::kForward);
        const auto op = b.op("aten::gelu");
        const auto kept = b.allocate({.bytes = bytes, .category = Category::kActivation, .op = op});
        const auto save = b.save(kept, op);
        b.begin_phase(PhaseKind::kBackward);
        b.release(save);
        b.free(kept);
        b.end_step();
    }
    const Trace trace = b.finish();
    EXPECT_EQ(build_ledger(trace).total_bytes, 30);
    EXPECT_EQ(step_of_ledger(trace).index(), 1U);
    EXPECT_EQ(start_of_ledger_step(trace), trace.steps.get<&Step::start_ns>(Id<Step>(1)));
}

/// A layer that is computed again in backward saves then; that is not kept from forward.
TEST(BuildLedger, LeavesOutWhatBackwardSavesForItself) {
    TraceBuilder b;
    b.begin_step(PhaseKind::kForward);
    b.begin_phase(PhaseKind::kBackward);
    const auto op = b.op("aten::gelu");
    const auto again = b.allocate({.bytes = 10, .category = Category::kActivation, .op = op});
    b.save(again, op);
    const Trace trace = b.finish();
    EXPECT_TRUE(build_ledger(trace).rows.empty());
}

TEST(BuildLedger, HoldsWhatAllForwardsBeforeOneBackwardSave) {
    TraceBuilder b;
    b.begin_step();
    const auto save_in = [&](PhaseKind kind, int64_t bytes) {
        b.begin_phase(kind);
        const auto op = b.op("aten::mm", b.module_path("model", -1));
        const auto block =
            b.allocate({.bytes = bytes, .category = Category::kActivation, .op = op});
        const Id<Save> save = b.save(block, op);
        b.end_phase();
        return save;
    };
    b.release(save_in(PhaseKind::kForward, 1));  // of the micro-batch before
    b.release(save_in(PhaseKind::kBackward, 2));
    save_in(PhaseKind::kForward, 10);
    save_in(PhaseKind::kLoss, 20);
    save_in(PhaseKind::kForward, 40);
    save_in(PhaseKind::kBackward, 80);
    const Trace trace = b.finish();
    EXPECT_EQ(build_ledger(trace).total_bytes, 70);
}

TEST(BuildLedger, OfSeveralBackwardsTheOneForWhichTheMostIsKeptCounts) {
    TraceBuilder b;
    b.begin_step();
    const auto op = [&] { return b.op("aten::mm", b.module_path("model", -1)); };
    const auto keep = [&](int64_t bytes) {
        const auto maker = op();
        return b.save(b.allocate({.bytes = bytes, .category = Category::kActivation, .op = maker}),
                      maker);
    };
    b.begin_phase(PhaseKind::kForward);
    const Id<Save> of_generator = keep(100);  // for the second backward
    const Id<Save> of_discriminator = keep(40);
    b.begin_phase(PhaseKind::kBackward);
    b.allocate({.bytes = 1, .op = op()});
    b.release(of_discriminator);
    b.begin_phase(PhaseKind::kForward);
    const Id<Save> of_both = keep(20);
    b.begin_phase(PhaseKind::kBackward);
    b.allocate({.bytes = 1, .op = op()});
    b.release(of_generator);
    b.release(of_both);
    EXPECT_EQ(build_ledger(b.finish()).total_bytes, 140);
}

TEST(BuildLedger, OfATraceWithoutPhasesIsTakenAtThePeak) {
    TraceBuilder b;
    const auto op = b.op("aten::gelu");
    const auto kept = b.allocate({.bytes = 10, .category = Category::kActivation, .op = op});
    b.save(kept, op);
    b.free(b.allocate({.bytes = 10}));
    const Trace trace = b.finish();
    EXPECT_EQ(build_ledger(trace).total_bytes, 10);
    EXPECT_TRUE(build_ledger(Trace{}).rows.empty());
    EXPECT_FALSE(step_of_ledger(trace).valid());
    EXPECT_LT(start_of_ledger_step(trace), trace.allocations.get<&Allocation::alloc_ns>(kept));
}

}  // namespace
