#include "profiler/analysis/advice/rules.h"

#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

/// Each rule has a program of a few blocks that it speaks of, and one that it says nothing of.
namespace {

using namespace tests;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

struct CallSpec {
    std::string_view name;
    Id<Op> parent = {};
    Id<Op> forward = {};
    Id<ModulePath> module = {};
    std::vector<Id<Allocation>> reads = {};
};

/// A program on a GPU, with calls in calls, edges and lines.
class Program : public TraceBuilder {
public:
    Program() { trace().devices.set<&Device::name>(Id<Device>(0), text("cuda:0")); }

    Id<Op> call(const CallSpec& spec) {
        const Id<Op> id = op(spec.name, spec.module);
        trace().ops.set<&Op::parent>(id, spec.parent);
        trace().ops.set<&Op::forward>(id, spec.forward);
        for (const Id<Allocation> block : spec.reads) {
            // allocate() makes one tensor for each block.
            trace().op_tensors.append({.op = id, .tensor = Id<Tensor>(block.index())});
        }
        return id;
    }

    /// A node of backward with the engine's call around it.
    Id<Op> node_of(Id<Op> forward) {
        const Id<ModulePath> module = trace().ops.get<&Op::module_path>(forward);
        const Id<Op> engine = call({.name = "autograd::engine::evaluate_function: XBackward0",
                                    .forward = forward,
                                    .module = module});
        return call({.name = "XBackward0", .parent = engine, .forward = forward, .module = module});
    }

    Id<Allocation> at_line(Id<Allocation> block, int64_t line) {
        const Id<Frame> frame = trace().frames.append(
            {.function = text("<module>"), .file = text("train.py"), .line = line});
        trace().allocations.set<&Allocation::stack>(block, trace().stacks.append({.frame = frame}));
        return block;
    }

    Id<Allocation> saved(const AllocationSpec& spec) {
        const Id<Allocation> block = allocate(spec);
        save(block, spec.op);
        return block;
    }

    /// The GPU has little more than what the step needs.
    void limit(int64_t size_bytes) {
        trace().runs.set<&Run::memory_limit_bytes>(Id<Run>(0), size_bytes);
    }

    void run_out(int64_t requested_bytes) {
        trace().failures.append({.error = text("OutOfMemoryError"),
                                 .device = Id<Device>(0),
                                 .event = next_event(),
                                 .time_ns = next_event() * kTickNs,
                                 .requested_bytes = requested_bytes,
                                 .free_bytes = 0});
    }
};

std::vector<Finding> findings(const Trace& trace) {
    const StepIndex index(trace);
    return find_unusual(Evidence(index));
}

std::optional<Finding> finding(const Trace& trace, std::string_view id) {
    for (Finding& found : findings(trace)) {
        if (found.id == id) return std::move(found);
    }
    return std::nullopt;
}

// ---- rules of the program ----------------------------

/// Two segments of 400 B with a block of 100 B each: 600 B are cached in two pieces.
Trace cached_pieces_of_300(int64_t requested_bytes) {
    Program b;
    for (const int64_t address : {1000, 5000}) {
        b.trace().allocator_events.append({.action = AllocatorAction::kSegmentAlloc,
                                           .device = Id<Device>(0),
                                           .address = address,
                                           .size_bytes = 400});
        const auto block = b.allocate({.bytes = 100});
        b.trace().allocations.set<&Allocation::address>(block, address);
    }
    b.run_out(requested_bytes);
    return b.finish();
}

TEST(Fragmentation, IsWhenPiecesTogetherWouldServeTheRequest) {
    const auto found = finding(cached_pieces_of_300(500), "fragmentation");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 600);
    EXPECT_THAT(found->sentence, AllOf(HasSubstr("600 B are cached in 2 pieces, the largest 300 B"),
                                       HasSubstr("the 500 B that were asked for")));
}

TEST(Fragmentation, IsNotWhenMemoryIsTooSmallOrNothingFailed) {
    EXPECT_FALSE(finding(cached_pieces_of_300(900), "fragmentation"));
    Trace trace = cached_pieces_of_300(500);
    trace.failures = {};
    EXPECT_FALSE(finding(trace, "fragmentation"));
}

/// Logits that the loss reads last, and that live until the next step sets them again.
Program step_with_logits() {
    Program b;
    b.begin_step(PhaseKind::kForward);
    const auto logits =
        b.allocate({.bytes = 400, .op = b.call({.name = "aten::addmm"}), .name = "addmm_output"});
    b.at_line(logits, 13);
    b.call({.name = "aten::_log_softmax", .reads = {logits}});
    b.begin_phase(PhaseKind::kBackward);
    b.free(b.allocate({.bytes = 600}));
    b.end_step();
    b.begin_step(PhaseKind::kForward);
    b.free(logits);
    b.end_step();
    return b;
}

TEST(HeldPastUse, SaysWhoKeepsWhatUntilWhen) {
    Program b = step_with_logits();
    b.limit(1000);
    const auto found = finding(b.trace(), "held_past_use");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 400);
    EXPECT_EQ(
        found->sentence,
        "`addmm_output`, made at train.py:13, keeps 400 B past the last use: read last in the "
        "loss, alive until the next forward");
    b.trace().frames.set<&Frame::code>(Id<Frame>(0), b.text("logits = model(tokens)"));
    EXPECT_THAT(finding(b.trace(), "held_past_use")->sentence,
                testing::StartsWith("`logits`, made at train.py:13, keeps 400 B"));
    b.trace().keepers.append(
        {.allocation = Id<Allocation>(0), .text = b.text("list `history`, train.py:16")});
    EXPECT_THAT(finding(b.trace(), "held_past_use")->sentence,
                testing::StartsWith("List `history`, train.py:16, keeps 400 B"));
}

TEST(HeldPastUse, IsCommonInALoopThatHasEnoughMemory) {
    Program b = step_with_logits();
    EXPECT_FALSE(finding(b.trace(), "held_past_use"));
    const StepIndex index(b.trace());
    EXPECT_THAT(find_unusual(Evidence(index), "held_past_use"), testing::SizeIs(1))
        << "a remedy asks for it all the same";
}

TEST(HeldPastUse, IsUnusualFromStepToStep) {
    Program b;
    b.begin_step(PhaseKind::kForward);
    const auto kept = b.allocate({.bytes = 400, .op = b.call({.name = "aten::addmm"})});
    b.call({.name = "aten::mul", .reads = {kept}});
    b.end_step();
    b.begin_step(PhaseKind::kForward);
    b.free(b.allocate({.bytes = 600}));
    const auto found = finding(b.finish(), "held_past_use");
    ASSERT_TRUE(found);
    EXPECT_THAT(found->sentence, HasSubstr("alive to the end of the recording"));
}

TEST(HeldPastUse, IsWhatNoRecordedOpReads) {
    Program b;
    b.allocate({.bytes = 400, .category = Category::kHeld});
    b.begin_step(PhaseKind::kForward);
    b.free(b.allocate({.bytes = 600}));
    const auto found = finding(b.finish(), "held_past_use");
    ASSERT_TRUE(found);
    EXPECT_THAT(found->sentence, HasSubstr("keeps 400 B that no recorded op reads: alive to the"));
}

/// Steps that append 8 KiB at line 16 to a list, or set a variable.
Trace five_steps(bool appends) {
    Program b;
    std::optional<Id<Allocation>> before;
    for (int step = 0; step < 5; ++step) {
        b.begin_step(PhaseKind::kForward);
        const auto block = b.at_line(b.allocate({.bytes = 8192}), 16);
        if (before && !appends) b.free(*before);
        before = block;
        b.end_step();
    }
    return b.finish();
}

TEST(Growth, NamesALineThatKeepsMoreAfterEachStep) {
    const auto found = finding(five_steps(true), "growth");
    ASSERT_TRUE(found);
    EXPECT_THAT(found->sentence, HasSubstr("train.py:16 <module> keeps 8.00 KiB more after each"));
    EXPECT_FALSE(finding(five_steps(false), "growth"));
}

/// A forward that saves 500 B, and one that saves 300 B and is trained.
Trace two_forwards(bool first_has_backward, std::string_view first_op = "aten::gelu") {
    Program b;
    b.begin_step(PhaseKind::kForward);
    const auto first = b.call({.name = first_op});
    b.saved({.bytes = 500, .category = Category::kActivation, .op = first});
    const auto second = b.call({.name = "aten::relu"});
    b.saved({.bytes = 300, .category = Category::kActivation, .op = second});
    b.begin_phase(PhaseKind::kBackward);
    b.node_of(second);
    if (first_has_backward) b.node_of(first);
    b.free(b.allocate({.bytes = 100}));
    return b.finish();
}

TEST(ValidationGraph, IsWhatNoBackwardUses) {
    const auto found = finding(two_forwards(false), "validation_graph");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 500);
    EXPECT_FALSE(finding(two_forwards(true), "validation_graph"));
    EXPECT_FALSE(finding(two_forwards(false, "_NoopSaveInputs"), "validation_graph"))
        << "a checkpoint keeps its input";
}

/// A step that trains on line 10, and three forwards that memory ends: all on one line.
Trace cut_off(int64_t line) {
    Program b;
    const auto forward = [&] {
        const auto op = b.call({.name = "aten::gelu"});
        return std::pair(op, b.saved({.bytes = 500, .category = Category::kActivation, .op = op}));
    };
    b.begin_step(PhaseKind::kForward);
    const auto [op, trained] = forward();
    b.at_line(trained, 10);
    b.begin_phase(PhaseKind::kBackward);
    b.node_of(op);
    b.free(trained);
    b.end_step();
    b.begin_step(PhaseKind::kForward);
    const Id<Stack> known = b.trace().allocations.get<&Allocation::stack>(trained);
    Id<Stack> stack = known;
    for (int i = 0; i < 3; ++i) {
        const auto [again, block] = forward();
        if (i == 0 && line != 10) {
            b.at_line(block, line);
            stack = b.trace().allocations.get<&Allocation::stack>(block);
        }
        b.trace().allocations.set<&Allocation::stack>(block, stack);
    }
    b.run_out(500);
    Trace trace = b.finish();
    trace.steps.set<&Step::kind>(Id<Step>(1), StepKind::kBroken);
    return trace;
}

TEST(ValidationGraph, MayBeWhatMemoryEndedOnALineThatTrainsNothing) {
    const auto found = finding(cut_off(20), "validation_graph");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 1500);
    EXPECT_THAT(found->sentence, HasSubstr("if it is a validation, it runs without"));
    EXPECT_FALSE(finding(cut_off(10), "validation_graph")) << "micro-batches of a training step";
}

Trace joined_outputs(std::string_view module) {
    Program b;
    b.begin_step(PhaseKind::kForward);
    b.allocate({.bytes = 500});
    const auto inside = module.empty() ? Id<ModulePath>() : b.module_path(module);
    const auto cat = b.call({.name = "aten::cat", .module = inside});
    b.at_line(b.allocate({.bytes = 500, .op = cat}), 20);
    return b.finish();
}

TEST(ConcatenatedLogits, AreJoinedByTheProgramNotByAModel) {
    const auto found = finding(joined_outputs(""), "concatenated_logits");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->sentence,
              "torch.cat at train.py:20 joins outputs into 500 B, beside its parts");
    EXPECT_FALSE(finding(joined_outputs("rotary"), "concatenated_logits"));
}

Trace sweep_of(const std::vector<int64_t>& peaks) {
    Program b;
    b.begin_step(PhaseKind::kForward);
    b.allocate({.bytes = 100});
    for (std::size_t i = 0; i < peaks.size(); ++i) {
        b.trace().sweep_points.append(
            {.batch_size = static_cast<int64_t>(i) + 1, .peak_allocated_bytes = peaks[i]});
    }
    return b.finish();
}

TEST(AlgorithmJump, LeavesTheSlopeOfTheOtherBatches) {
    const auto found = finding(sweep_of({100, 200, 300, 600, 700}), "algorithm_jump");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 200);
    EXPECT_THAT(found->sentence, HasSubstr("From batch 3 to 4 the peak changes by 200 B more"));
    EXPECT_FALSE(finding(sweep_of({100, 200, 300, 400, 500}), "algorithm_jump"));
}

// ---- rules of activations ----------------------------

Trace autocast(int64_t activation_bytes) {
    Program b;
    const auto weight = b.allocate({.bytes = 1000, .category = Category::kParameter});
    b.begin_step(PhaseKind::kForward);
    const auto cast = b.call({.name = "aten::_to_copy"});
    const auto copy = b.allocate({.bytes = 500, .op = cast, .dtype = DType::kBFloat16});
    b.call({.name = "aten::copy_", .parent = cast, .reads = {copy, weight}});
    b.saved({.bytes = activation_bytes,
             .category = Category::kActivation,
             .op = b.call({.name = "aten::addmm"}),
             .dtype = DType::kBFloat16});
    return b.finish();
}

TEST(AutocastCopies, OutweighTheActivationsOfASmallBatch) {
    const auto found = finding(autocast(100), "autocast_copies");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 500);
    EXPECT_THAT(found->sentence, HasSubstr("copies of 1 parameters, 500 B"));
    EXPECT_FALSE(finding(autocast(600), "autocast_copies"));
}

Program step_with_dropout() {
    Program b;
    const auto layer = b.module_path("encoder.layer.0", 0);
    const auto drop = b.module_path("encoder.layer.0.drop", 0, layer);
    b.begin_step(PhaseKind::kForward);
    const auto dropout = b.call({.name = "aten::dropout", .module = drop});
    const auto native = b.call({.name = "aten::native_dropout", .parent = dropout, .module = drop});
    b.allocate({.bytes = 400, .op = native});
    b.allocate({.bytes = 600});
    b.end_step();
    return b;
}

TEST(DropoutGrows, SaysInWhichModules) {
    Program b = step_with_dropout();
    EXPECT_FALSE(finding(b.trace(), "dropout_grows")) << "memory is not short";
    b.limit(1000);
    const auto found = finding(b.finish(), "dropout_grows");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->sentence,
              "Outputs and masks of dropout take 400 B (40.0 %), 400 B of it in "
              "encoder.layer.*.drop");
}

/// Backward of the second layer runs the forward of some layers again, inside its first node.
Trace checkpointed(const std::vector<std::string_view>& recomputed) {
    Program b;
    const auto layer0 = b.module_path("layers.0", 0);
    const auto layer1 = b.module_path("layers.1", 1);
    const auto norm1 = b.module_path("layers.1.norm", 1, layer1);
    b.begin_step(PhaseKind::kForward);
    b.call({.name = "aten::addmm", .module = layer0});
    const auto last = b.call({.name = "aten::layer_norm", .module = norm1});
    b.begin_phase(PhaseKind::kBackward);
    const auto node = b.node_of(last);
    for (const std::string_view path : recomputed) {
        const bool is_first = path.starts_with("layers.0");
        const auto module = b.module_path(path, is_first ? 0 : 1, is_first ? layer0 : layer1);
        b.allocate(
            {.bytes = 300, .op = b.call({.name = "aten::gelu", .parent = node, .module = module})});
    }
    return b.finish();
}

TEST(WholeCheckpoint, ComputesMostLayersAgainAtOnce) {
    const auto found = finding(checkpointed({"layers.0.mlp", "layers.1.mlp"}), "whole_checkpoint");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 600);
    EXPECT_THAT(found->sentence, HasSubstr("2 of 2 parts of the model"));
    EXPECT_FALSE(finding(checkpointed({"layers.1.mlp"}), "whole_checkpoint")) << "one layer";
}

Trace reentrant_checkpoint(bool has_node) {
    Program b;
    const auto weight =
        b.allocate({.bytes = 500, .category = Category::kParameter, .name = "body.0.weight"});
    b.begin_step(PhaseKind::kForward);
    const auto checkpoint = b.call({.name = "CheckpointFunction"});
    b.call({.name = "aten::addmm", .parent = checkpoint, .reads = {weight}});
    b.begin_phase(PhaseKind::kBackward);
    if (has_node) b.node_of(checkpoint);
    return b.finish();
}

TEST(ReentrantWithoutGradients, HasNoNodeInBackward) {
    const auto found = finding(reentrant_checkpoint(false), "reentrant_without_gradients");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 500);
    EXPECT_THAT(found->sentence, HasSubstr("such as body.0.weight"));
    EXPECT_FALSE(finding(reentrant_checkpoint(true), "reentrant_without_gradients"));
}

// ---- rules of attention ----------------------------

struct AttentionSpec {
    std::string_view op = "aten::_scaled_dot_product_attention_math";
    bool widens = true;
    bool is_grouped = false;
    bool has_mask = false;
    std::string shape = "[1, 8, 2048, 64]";
};

Trace attention(const AttentionSpec& spec) {
    Program b;
    b.begin_step(PhaseKind::kForward);
    const auto query = b.allocate({.bytes = 100, .shape = spec.shape});
    const auto math = b.call({.name = spec.op});
    if (spec.widens) b.call({.name = "aten::_to_copy", .parent = math});
    b.call({.name = "aten::mul", .parent = math, .reads = {query}});
    if (spec.is_grouped) b.call({.name = "aten::repeat_interleave", .parent = math});
    b.call({.name = "aten::matmul", .parent = math});
    if (spec.has_mask) b.call({.name = "aten::add_", .parent = math});
    const auto softmax = b.call({.name = "aten::_softmax", .parent = math});
    b.at_line(b.allocate({.bytes = 900, .op = softmax}), 9);
    return b.finish();
}

TEST(MathAttention, SaysWhyNoOtherBackendRan) {
    const auto reason = [](const AttentionSpec& spec) {
        return finding(attention(spec), "math_attention").value_or(Finding()).sentence;
    };
    EXPECT_EQ(
        reason({.is_grouped = true, .has_mask = true}),
        "Attention runs in torch's math backend at train.py:9 and keeps the scores of all "
        "heads, 900 B: grouped queries come with a mask, which flash attention does not take; "
        "the memory-efficient kernel takes no groups");
    EXPECT_THAT(reason({.widens = false, .is_grouped = true}), HasSubstr("are float32"));
    EXPECT_THAT(reason({.is_grouped = true, .shape = "[1, 8, 2048, 320]"}),
                HasSubstr("heads of 320 elements, and flash attention takes 256 at most"));
    EXPECT_THAT(reason({.has_mask = true, .shape = "[1, 8, 2048, 65]"}),
                HasSubstr("heads of 65 elements are no multiple of 16 bytes"));
    EXPECT_THAT(reason({}), HasSubstr("excludes the other backends"));
}

TEST(MathAttention, IsNotAnotherBackendNorTheCpu) {
    EXPECT_FALSE(
        finding(attention({.op = "aten::_scaled_dot_product_flash_attention"}), "math_attention"));
    Trace trace = attention({});
    trace.devices.set<&Device::name>(Id<Device>(0), trace.strings.intern("cpu"));
    EXPECT_FALSE(finding(trace, "math_attention"));
}

// ---- rules of the loss ----------------------------

Program step_with_loss(int64_t parameter_bytes) {
    Program b;
    b.allocate({.bytes = parameter_bytes, .category = Category::kParameter});
    b.begin_step(PhaseKind::kForward);
    const auto logits = b.allocate({.bytes = 800, .shape = "[10, 20]"});
    const auto cast = b.call({.name = "aten::_log_softmax", .reads = {logits}});
    b.allocate({.bytes = 800, .op = cast, .shape = "[10, 20]"});
    b.begin_phase(PhaseKind::kBackward);
    b.allocate({.bytes = 400, .dtype = DType::kBFloat16});
    b.limit(2000 + parameter_bytes);
    return b;
}

TEST(LogitsAndLoss, CountAllThatHasAnElementForEachLogit) {
    const auto found = finding(step_with_loss(1000).finish(), "logits_and_loss");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 2000);
    EXPECT_EQ(found->sentence,
              "The loss takes 1.95 KiB of 2.93 KiB (66.7 %): logits [10, 20], their copies and "
              "their gradients");
}

TEST(LogitsAndLoss, CountTheRequestThatFailed) {
    Program b = step_with_loss(1000);
    b.end_step();
    b.run_out(800);
    const auto found = finding(b.finish(), "logits_and_loss");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 2800);
    EXPECT_THAT(found->sentence, HasSubstr("with the 800 B that were asked for"));
}

TEST(LogitsAndLoss, AreCommonOrSmall) {
    EXPECT_FALSE(finding(step_with_loss(100'000).finish(), "logits_and_loss"));
    Program b = step_with_loss(1000);
    b.limit(100'000);
    EXPECT_FALSE(finding(b.finish(), "logits_and_loss"));
}

Trace loss_in_chunks(int count, int64_t layer = -1) {
    Program b;
    b.begin_step(PhaseKind::kForward);
    const auto module = layer < 0 ? Id<ModulePath>() : b.module_path("layers.0", layer);
    for (int chunk = 0; chunk < count; ++chunk) {
        const auto loss = b.call({.name = "aten::_log_softmax", .module = module});
        b.at_line(
            b.saved(
                {.bytes = 100, .category = Category::kActivation, .op = loss, .shape = "[5, 5]"}),
            11);
    }
    b.begin_phase(PhaseKind::kBackward);
    return b.finish();
}

TEST(ChunksSaved, AreAllKeptByALoopWithoutCheckpoints) {
    const auto found = finding(loss_in_chunks(4), "chunks_saved");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 400);
    EXPECT_THAT(found->sentence, HasSubstr("A loop at train.py:11 saves all its 4 chunks [5, 5]"));
    EXPECT_FALSE(finding(loss_in_chunks(3), "chunks_saved"));
    EXPECT_FALSE(finding(loss_in_chunks(4, 0), "chunks_saved")) << "one line for each layer";
}

// ---- rules of the optimizer ----------------------------

Trace update_with(std::string_view op, PhaseKind phase) {
    Program b;
    b.begin_step(PhaseKind::kForward);
    b.begin_phase(phase);
    b.allocate({.bytes = 500, .op = b.call({.name = op})});
    b.limit(500);
    return b.finish();
}

TEST(OptimizerPeak, LiesInTemporariesOfTheUpdate) {
    const auto found =
        finding(update_with("aten::_foreach_sqrt", PhaseKind::kOptimizer), "optimizer_peak");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->sentence,
              "The peak lies in the optimizer's step, whose temporaries take 500 B: "
              "aten::_foreach_sqrt makes one for each parameter, all at once");
    EXPECT_FALSE(finding(update_with("aten::mm", PhaseKind::kBackward), "optimizer_peak"));
    EXPECT_FALSE(finding(update_with("aten::zeros_like", PhaseKind::kOptimizer), "optimizer_peak"))
        << "a state is born";
}

Trace two_gradients(bool both_have_state) {
    Program b;
    b.begin_step(PhaseKind::kForward);
    for (const std::string name : {"head.weight", "base.weight"}) {
        b.allocate({.bytes = 300, .category = Category::kGradient, .name = name + ".grad"});
        if (name == "base.weight" && !both_have_state) continue;
        b.allocate(
            {.bytes = 300, .category = Category::kOptimizerState, .name = name + ".exp_avg"});
    }
    b.end_step();
    b.begin_step(PhaseKind::kForward);
    b.allocate({.bytes = 100});
    return b.finish();
}

TEST(UnusedGradients, BelongToParametersWithoutState) {
    const auto found = finding(two_gradients(false), "unused_gradients");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 300);
    EXPECT_THAT(found->sentence, HasSubstr("such as base.weight"));
    EXPECT_FALSE(finding(two_gradients(true), "unused_gradients"));
}

// ---- rules of ranks ----------------------------

Trace with_ddp(bool has_own_gradients) {
    Program b;
    b.begin_step(PhaseKind::kBackward);
    b.allocate({.bytes = 500, .category = Category::kGradient, .name = "DDP bucket 0"});
    if (has_own_gradients) {
        b.allocate({.bytes = 500, .category = Category::kGradient, .name = "0.weight.grad"});
    }
    b.limit(1000);
    return b.finish();
}

TEST(DdpBuckets, RepeatGradientsThatAreNoViews) {
    const auto found = finding(with_ddp(true), "ddp_buckets");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 500);
    EXPECT_FALSE(finding(with_ddp(false), "ddp_buckets"));
}

Trace with_fsdp(bool reshards) {
    Program b;
    b.begin_step(PhaseKind::kForward);
    b.call({.name = "fsdp::all_gather_copy_in"});
    const auto gathered = b.allocate({.bytes = 500});
    if (reshards) b.free(gathered);
    b.begin_phase(PhaseKind::kBackward);
    b.allocate({.bytes = 600});
    b.limit(reshards ? 600 : 1100);
    return b.finish();
}

TEST(FsdpRootGathered, StaysThroughBackward) {
    const auto found = finding(with_fsdp(false), "fsdp_root_gathered");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 500);
    EXPECT_FALSE(finding(with_fsdp(true), "fsdp_root_gathered"));
}

Trace two_micro_batches(bool first_reduces) {
    Program b;
    b.begin_step();
    for (const bool reduces : {first_reduces, true}) {
        b.begin_phase(PhaseKind::kForward);
        b.begin_phase(PhaseKind::kBackward);
        b.allocate({.bytes = 500, .op = b.call({.name = "aten::mm"})});
        if (!reduces) continue;
        b.trace().collectives.append({.op = b.call({.name = "c10d::_reduce_scatter_base_"}),
                                      .kind = CollectiveKind::kReduceScatter});
    }
    return b.finish();
}

TEST(NoSyncGradients, WaitInFullSize) {
    const auto found = finding(two_micro_batches(false), "no_sync_gradients");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size_bytes, 500);
    EXPECT_FALSE(finding(two_micro_batches(true), "no_sync_gradients"));
}

// ---- the table ----------------------------

/// A step as most programs have it: dropout, logits that the loop's variable holds, buckets.
TEST(FindUnusual, SaysNothingOfAnOrdinaryStep) {
    Program b = step_with_logits();
    b.limit(100'000);
    EXPECT_THAT(findings(b.finish()), IsEmpty());
    Program with_dropout = step_with_dropout();
    EXPECT_THAT(findings(with_dropout.finish()), IsEmpty());
    EXPECT_THAT(findings(TraceBuilder().finish()), IsEmpty());
}

TEST(FindUnusual, LeavesNoiseOut) {
    Program b;
    b.allocate({.bytes = 1'000'000, .category = Category::kParameter});
    b.begin_step(PhaseKind::kForward);
    b.begin_phase(PhaseKind::kOptimizer);
    b.allocate({.bytes = 19'000, .op = b.call({.name = "aten::_foreach_sqrt"})});
    b.limit(1'019'000);
    EXPECT_THAT(findings(b.finish()), IsEmpty()) << "1.9 % of the peak";
}

TEST(FindUnusual, PutsTheLargestFirst) {
    Program b = step_with_logits();
    b.limit(1000);
    b.trace().failures.append({.error = b.text("OutOfMemoryError"),
                               .requested_bytes = 1,
                               .outcome = FailureOutcome::kCaught});
    const auto found = findings(b.finish());
    EXPECT_TRUE(std::ranges::is_sorted(found, std::greater(), &Finding::size_bytes));
}

}  // namespace
