#include "profiler/analysis/advice/explain.h"

#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"
#include "tests/support/small_program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

/// Small programs whose peaks are known, with each remedy and without.
namespace {

using namespace tests;
using testing::HasSubstr;
using testing::StartsWith;

const Remedy* remedy_of(const Explanation& explanation, std::string_view id) {
    const auto found = std::ranges::find(explanation.remedies, id, &Remedy::id);
    return found == explanation.remedies.end() ? nullptr : &*found;
}

// ---- a language model that runs out of memory in the backward of its second step ---------------

class OutOfMemoryTest : public testing::Test {
protected:
    Explanation explain_with(const ExplainTarget& target = {}) {
        auto explanation = explain(StepIndex(trace_), {.target = target});
        EXPECT_TRUE(explanation) << explanation.error().message;
        return std::move(*explanation);
    }
    void expect_peak(const Explanation& explanation, std::string_view id, int64_t units) {
        const Remedy* remedy = remedy_of(explanation, id);
        ASSERT_NE(remedy, nullptr) << id;
        EXPECT_EQ(remedy->estimated.peak_allocated_bytes, units * kUnit) << id;
        EXPECT_EQ(remedy->saved_bytes, (LanguageModel::kPeak - units) * kUnit) << id;
    }

    const Trace trace_ = LanguageModel().finish();
};

TEST_F(OutOfMemoryTest, SaysWhatHappenedAndWhatFillsTheMemory) {
    const Explanation explanation = explain_with();
    EXPECT_EQ(explanation.verdict, Verdict::kOutOfMemory);
    EXPECT_THAT(explanation.sentence, StartsWith("Out of memory at train.py:14"));
    ASSERT_TRUE(explanation.failure);
    EXPECT_EQ(explanation.failure->code, "loss = cross_entropy(logits, tokens)");
    EXPECT_EQ(explanation.memory.allocated_bytes, (LanguageModel::kPeak - 16) * kUnit);
    EXPECT_EQ(explanation.as_written.peak_allocated_bytes, LanguageModel::kPeak * kUnit);
    EXPECT_FALSE(explanation.as_written.fits);
    EXPECT_EQ(explanation.target.limit_bytes, LanguageModel::kLimit * kUnit);
    EXPECT_EQ(explanation.target.batch_size, 8);
}

TEST_F(OutOfMemoryTest, EstimatesEachRemedyByReplayingTheStepWithIt) {
    const Explanation explanation = explain_with();
    expect_peak(explanation, "delete_after_use", 92);
    // The loss has an eighth of 40, and the peak is in forward, beside 1 of the logits before.
    expect_peak(explanation, "chunked_loss", 66);
    expect_peak(explanation, "checkpoint", 86);  // without 2 x 12, with 2 inputs of 5
}

TEST_F(OutOfMemoryTest, WritesWhatToPasteAndWhere) {
    const Explanation explanation = explain_with();
    const Remedy* remedy = remedy_of(explanation, "delete_after_use");
    ASSERT_NE(remedy, nullptr);
    EXPECT_EQ(remedy->change.text, "del logits");
    EXPECT_EQ(remedy->change.file, "train.py");
    EXPECT_EQ(remedy->change.line, 14) << "the line that uses them last";
    EXPECT_EQ(remedy_of(explanation, "chunked_loss")->change.name, "chunked-loss");
    EXPECT_TRUE(remedy_of(explanation, "chunked_loss")->estimated.fits);
}

TEST_F(OutOfMemoryTest, PutsRemediesThatKeepBatchAndGpuFirst) {
    const Explanation explanation = explain_with();
    const Remedy* larger = remedy_of(explanation, "larger_gpu");
    const Remedy* chunked = remedy_of(explanation, "chunked_loss");
    ASSERT_NE(larger, nullptr);
    ASSERT_NE(chunked, nullptr);
    EXPECT_TRUE(larger->estimated.fits);
    EXPECT_LT(chunked, larger);
}

TEST_F(OutOfMemoryTest, TriesNoSettingsWhereTensorsAreTooLargeTogether) {
    const Explanation explanation = explain_with();
    EXPECT_EQ(remedy_of(explanation, "expandable_segments"), nullptr) << "100 of 96";
    EXPECT_EQ(remedy_of(explanation, "allocator_settings"), nullptr);
}

TEST_F(OutOfMemoryTest, FindsTheLargestBatch) {
    // 31 stay, and 69 are of a batch of 8: 7 need 91.4, if the pieces that are free can serve them.
    const Explanation explanation = explain_with();
    EXPECT_GE(explanation.largest_batch, 5);
    EXPECT_LE(explanation.largest_batch, 7);
    const Remedy* remedy = remedy_of(explanation, "smaller_batch");
    ASSERT_NE(remedy, nullptr);
    EXPECT_TRUE(remedy->estimated.fits);
    EXPECT_EQ(remedy->change.text, std::to_string(explanation.largest_batch));
}

TEST_F(OutOfMemoryTest, JudgesAnotherTarget) {
    const Explanation half = explain_with({.batch_size = 4});
    EXPECT_EQ(half.as_written.peak_allocated_bytes, (31 * 2 + 69) * kUnit / 2);
    EXPECT_EQ(half.verdict, Verdict::kFits);
    EXPECT_THAT(half.sentence, StartsWith("It fits with a batch of 4"));

    const Explanation larger = explain_with({.gpu = "a100-40gb"});
    EXPECT_EQ(larger.verdict, Verdict::kFits);
    EXPECT_GT(larger.target.limit_bytes, int64_t{30} << 30);
    EXPECT_GT(larger.largest_batch, 8);

    const auto unknown = explain(StepIndex(trace_), {.target = {.gpu = "a100-41gb"}});
    ASSERT_FALSE(unknown);
    EXPECT_THAT(unknown.error().message, HasSubstr("a100-41gb"));
}

// ---- combinations ------------------------------------------------------------------------------

std::vector<const Remedy*> combinations_of(const Explanation& explanation) {
    std::vector<const Remedy*> found;
    for (const Remedy& remedy : explanation.remedies) {
        if (!remedy.members.empty()) found.push_back(&remedy);
    }
    return found;
}

TEST_F(OutOfMemoryTest, CombinesUpToThreeRemediesWhereNoneIsEnoughAlone) {
    // The loss in chunks comes to 66, checkpoints to 86. Both together come to 60, in pieces that
    // 64 do not serve.
    const Explanation explanation = explain_with({.limit_bytes = 64 * kUnit});
    const auto combinations = combinations_of(explanation);
    ASSERT_EQ(combinations.size(), 1U);
    const Remedy& best = *combinations.front();
    EXPECT_EQ(best.id, "expandable_segments+chunked_loss+checkpoint");
    EXPECT_THAT(best.members,
                testing::ElementsAre("expandable_segments", "chunked_loss", "checkpoint"));
    EXPECT_EQ(best.change.kind, RemedyChange::Kind::kSeveral);
    EXPECT_EQ(best.title, "expandable_segments:True + checkpoint,loss=chunked");
    EXPECT_EQ(best.change.text,
              "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
              "temposcope.swap(model, \"checkpoint,loss=chunked\")")
        << "a second swap would undo the first";
    EXPECT_EQ(best.code_lines, 1);
    EXPECT_THAT(best.sentence, StartsWith("None of them is enough alone"));
    // In backward: 31 stay, 1 are logits, 5 the input of the first layer, 12 are computed again, 11
    // are a gradient.
    EXPECT_EQ(best.estimated.peak_allocated_bytes, 60 * kUnit);
    for (const Remedy& remedy : explanation.remedies) {
        const bool is_another = remedy.id == "smaller_batch" || remedy.id == "larger_gpu";
        EXPECT_EQ(remedy.estimated.fits, is_another || !remedy.members.empty()) << remedy.id;
    }
}

TEST_F(OutOfMemoryTest, ShowsNoCombinationWhereOneRemedyIsEnough) {
    EXPECT_THAT(combinations_of(explain_with()), testing::IsEmpty());
    EXPECT_THAT(combinations_of(explain_with({.gpu = "a100-40gb"})), testing::IsEmpty());
}

TEST_F(OutOfMemoryTest, SaysSoWhereNoCombinationIsEnough) {
    const Explanation explanation = explain_with({.limit_bytes = 40 * kUnit});
    EXPECT_THAT(combinations_of(explanation), testing::IsEmpty());
    EXPECT_THAT(explanation.notes,
                testing::Contains(HasSubstr("No combination that was tried is enough.")));
}

TEST(ExplainRecipe, KeepsTheOneThatTheProgramRanWith) {
    Trace trace = LanguageModel().finish();
    const auto explain_after = [&](std::string_view recipe) {
        trace.runs.set<&profiler::Run::recipe>(Id<profiler::Run>(0), trace.strings.intern(recipe));
        auto explanation = explain(StepIndex(trace));
        EXPECT_TRUE(explanation) << explanation.error().message;
        return std::move(*explanation);
    };
    const Explanation after_tempo = explain_after("tempo");
    const Remedy* chunked = remedy_of(after_tempo, "chunked_loss");
    ASSERT_NE(chunked, nullptr);
    EXPECT_EQ(chunked->change.name, "tempo,loss=chunked");
    EXPECT_EQ(chunked->change.text, "temposcope.swap(model, \"tempo,loss=chunked\")");
    const Explanation after_sqrt = explain_after("checkpoint-sqrt");
    EXPECT_NE(remedy_of(after_sqrt, "chunked_loss"), nullptr);
    EXPECT_EQ(remedy_of(after_sqrt, "checkpoint"), nullptr) << "another value of the same switch";
}

constexpr int64_t kMeanBytes = 512;

/// Two layers, and two results of 8 that variables keep beside a gradient of 6: 50 at the peak.
Trace two_kept_results() {
    SmallProgram b(8);
    b.make(4, Category::kParameter);
    b.begin_step(PhaseKind::kForward);
    std::vector<Id<Allocation>> kept{b.make(2, b.call({.name = "aten::embedding"}))};
    for (int layer = 0; layer < 2; ++layer) {
        const auto module = b.module_path(fmt::format("encoder.layer.{}", layer), layer);
        const auto linear =
            b.call({.name = "aten::linear", .module = module, .reads = {kept.back()}});
        const auto activation = b.make(10, linear);
        b.keep_for_backward(activation, linear);
        const auto hidden = b.make(2, linear);
        b.free(kept.back());
        kept.back() = activation;
        kept.push_back(hidden);
        // A layer takes half a tick.
        const int64_t start_ns = b.trace().ops.get<&Op::start_ns>(linear);
        b.trace().ops.set<&Op::end_ns>(linear, start_ns + TraceBuilder::kTickNs / 2);
    }
    for (const auto& [line, name] : {std::pair{10, "left"}, {20, "right"}}) {
        const auto result = b.make(8, b.call({.name = "aten::mm", .reads = {kept.back()}}));
        b.at_line(result, line, fmt::format("{} = {}_head(hidden)", name, name));
        const auto mean = b.call({.name = "aten::mean", .reads = {result}});
        b.at_line(b.allocate({.bytes = kMeanBytes, .op = mean}), line + 1, "loss += result.mean()");
    }
    b.begin_phase(PhaseKind::kBackward);
    const auto gradient = b.make(6);
    b.free(gradient);
    for (; !kept.empty(); kept.pop_back()) b.free(kept.back());
    b.end_step();
    return b.finish();
}

TEST(ExplainCombinations, TakeMoreLinesToSaveTime) {
    const Trace trace = two_kept_results();
    // A checkpoint for each layer fits, and costs time.
    const auto explanation = explain(StepIndex(trace), {.target = {.limit_bytes = 40 * kUnit}});
    ASSERT_TRUE(explanation) << explanation.error().message;
    const Remedy* checkpoint = remedy_of(*explanation, "checkpoint");
    ASSERT_NE(checkpoint, nullptr);
    EXPECT_TRUE(checkpoint->estimated.fits);
    EXPECT_EQ(checkpoint->estimated.added_time_ns, TraceBuilder::kTickNs);
    const auto combinations = combinations_of(*explanation);
    ASSERT_EQ(combinations.size(), 1U);
    const Remedy& both = *combinations.front();
    EXPECT_EQ(both.id, "delete_after_use+delete_after_use");
    EXPECT_EQ(both.title, "del left + del right");
    EXPECT_EQ(both.change.text, "del left\ndel right");
    EXPECT_EQ(both.code_lines, 2);
    EXPECT_EQ(both.estimated.added_time_ns, 0);
    EXPECT_EQ(both.estimated.peak_allocated_bytes, 34 * kUnit + 2 * kMeanBytes)
        << "one of the results at a time";
    ASSERT_EQ(both.parts.size(), 2U);
    EXPECT_EQ(both.parts[0].line, 11);
    EXPECT_EQ(both.parts[1].line, 21);
    EXPECT_THAT(both.sentence, HasSubstr("less time or less code"));
}

// ---- what the trace does not hold --------------------------------------------------------------

/// Parameters of 4 and two outputs of 20. The second one is refused, or there is enough memory.
Trace two_layers(bool has_enough) {
    SmallProgram b(8);
    b.make(4, Category::kParameter);
    b.begin_step(PhaseKind::kForward);
    b.keep_for_backward(b.make(20), b.call({.name = "aten::addmm"}));
    if (!has_enough) {
        b.trace().failures.append({.device = Id<Device>(0),
                                   .event = b.next_event(),
                                   .requested_bytes = 20 * kUnit,
                                   .reserved_bytes = 24 * kUnit,
                                   .free_bytes = 6 * kUnit,
                                   .limit_bytes = 30 * kUnit,
                                   .step = Id<Step>(0),
                                   .phase = Id<Phase>(0)});
        b.trace().steps.set<&Step::kind>(Id<Step>(0), StepKind::kBroken);
        return b.finish();
    }
    const auto second = b.make(20);
    b.keep_for_backward(second, b.call({.name = "aten::addmm"}));
    b.begin_phase(PhaseKind::kBackward);
    b.make(4, Category::kGradient);
    b.free(second);
    b.end_step();
    return b.finish();
}

// ---- gradients that DDP holds twice ----------------------------

TEST(ExplainDdp, OffersGradientsThatAreViewsOfTheirBuckets) {
    SmallProgram b(8);
    b.allocate({.bytes = 8 * kUnit, .category = Category::kGradient, .name = "DDP bucket 0"});
    b.begin_step(PhaseKind::kBackward);
    std::vector<Id<Allocation>> gradients;
    for (const char* const name : {"0.weight.grad", "1.weight.grad"}) {
        gradients.push_back(
            b.allocate({.bytes = 4 * kUnit, .category = Category::kGradient, .name = name}));
    }
    b.begin_phase(PhaseKind::kOptimizer);
    const auto temporary = b.allocate({.bytes = 2 * kUnit});
    b.free(temporary);
    for (const auto gradient : gradients) b.free(gradient);
    b.end_step();
    b.limit(32 * kUnit);
    const Trace trace = b.finish();
    const auto explanation = explain(StepIndex(trace));
    ASSERT_TRUE(explanation);
    const Remedy* const remedy = remedy_of(*explanation, "view_buckets");
    ASSERT_NE(remedy, nullptr);
    EXPECT_EQ(explanation->as_written.peak_allocated_bytes, 18 * kUnit);
    EXPECT_EQ(remedy->estimated.peak_allocated_bytes, 12 * kUnit) << "one at a time is copied";
}

// ---- a peak after the recorded steps ----------------------------

TEST(ExplainLaterPeak, CountsInTheVerdict) {
    const auto verdict_with = [](int64_t later_units) {
        SmallProgram b(8);
        b.begin_step(PhaseKind::kForward);
        b.free(b.allocate({.bytes = 4 * kUnit}));
        b.end_step();
        b.limit(32 * kUnit);
        Trace trace = b.finish();
        const NewDiagnostic note{
            .code = kLaterPeak, .count = later_units * kUnit, .explanation = "It rises."};
        if (later_units > 0) set_diagnostic(trace, note);
        const auto explanation = explain(StepIndex(trace));
        const auto notes_the_peak = testing::Contains(StartsWith("It rises."));
        EXPECT_EQ(testing::Matches(notes_the_peak)(explanation->notes), later_units > 0);
        return std::pair(explanation->verdict, explanation->sentence);
    };
    EXPECT_EQ(verdict_with(0).first, Verdict::kFits);
    EXPECT_THAT(verdict_with(0).second, testing::Not(HasSubstr("after the recorded steps")));
    EXPECT_EQ(verdict_with(8).first, Verdict::kFits);
    EXPECT_THAT(verdict_with(8).second, HasSubstr("; after the recorded steps 128 MiB."));
    EXPECT_EQ(verdict_with(31).first, Verdict::kNearLimit);
    EXPECT_EQ(verdict_with(40).first, Verdict::kOutOfMemory);
    EXPECT_THAT(verdict_with(40).second, StartsWith("It does not fit"));
}

TEST(ExplainFirstStep, NeverSaysThatARemedyFitsWhereTheRestOfTheForwardIsUnknown) {
    const Trace trace = two_layers(false);
    const auto explanation = explain(StepIndex(trace));
    ASSERT_TRUE(explanation);
    for (const Remedy& remedy : explanation->remedies) EXPECT_FALSE(remedy.estimated.fits);
    EXPECT_EQ(explanation->largest_batch, -1);
    EXPECT_THAT(explanation->notes, testing::Contains(HasSubstr("reach to the failure")));
}

TEST(ExplainFirstStep, TakesTheRestFromARunWithEnoughMemory) {
    const Trace trace = two_layers(false), whole = two_layers(true);
    const auto before = explain(StepIndex(trace));
    ASSERT_TRUE(before);
    Explanation explanation = *before;
    ASSERT_TRUE(add_whole_step(StepIndex(whole), {}, explanation));
    EXPECT_EQ(explanation.notes.front(),
              "With enough memory the step peaks at 768 MiB: 288 MiB "
              "more than the GPU has.");
    EXPECT_EQ(explanation.as_written.peak_allocated_bytes, 48 * kUnit);
    EXPECT_EQ(explanation.target.limit_bytes, 30 * kUnit);
    EXPECT_EQ(explanation.largest_batch, 4) << "8 stay, and 5 are of each sequence";
    EXPECT_TRUE(remedy_of(explanation, "smaller_batch")->estimated.fits);
    EXPECT_THAT(explanation.notes, testing::Each(testing::Not(HasSubstr("reach to the failure"))));
    // What happened is what happened.
    EXPECT_EQ(explanation.sentence, before->sentence);
    EXPECT_EQ(explanation.memory.allocated_bytes, 24 * kUnit);
}

TEST(ExplainFirstStep, StaysUnknownWhereTheOtherRunFailsToo) {
    const Trace trace = two_layers(false);
    const auto before = explain(StepIndex(trace));
    ASSERT_TRUE(before);
    Explanation explanation = *before;
    ASSERT_TRUE(add_whole_step(StepIndex(trace), {}, explanation));
    EXPECT_EQ(explanation.notes, before->notes);
    EXPECT_FALSE(explanation.unknown_rest.empty());
}

TEST(ExplainFirstStep, AddsAllThatOneRuleFindsInTheOtherRun) {
    const Trace trace = two_layers(false);
    Trace whole = two_kept_results();
    // Of a limit as high as the peak nothing is left, so that all rules are asked.
    whole.runs.set<&profiler::Run::memory_limit_bytes>(Id<profiler::Run>(0), 50 * kUnit);
    auto explanation = explain(StepIndex(trace));
    ASSERT_TRUE(explanation);
    ASSERT_TRUE(add_whole_step(StepIndex(whole), {}, *explanation));
    const std::vector<Finding>& findings = explanation->findings;
    EXPECT_GE(std::ranges::count(findings, std::string_view("held_past_use"), &Finding::id), 2);
    EXPECT_TRUE(std::ranges::is_sorted(findings, std::greater(), &Finding::size_bytes));
}

TEST(ExplainFirstStep, CountsTheUpdateThatFollowsABackward) {
    SmallProgram b(8);
    b.make(4, Category::kParameter);
    b.begin_step(PhaseKind::kForward);
    const auto kept = b.make(20);
    b.keep_for_backward(kept, b.call({.name = "aten::addmm"}));
    b.begin_phase(PhaseKind::kBackward);
    b.trace().failures.append({.device = Id<Device>(0),
                               .event = b.next_event(),
                               .requested_bytes = 10 * kUnit,
                               .reserved_bytes = 24 * kUnit,
                               .free_bytes = 6 * kUnit,
                               .limit_bytes = 30 * kUnit,
                               .step = Id<Step>(0),
                               .phase = Id<Phase>(1)});
    b.trace().steps.set<&Step::kind>(Id<Step>(0), StepKind::kBroken);
    const Trace trace = b.finish();
    const auto explanation = explain(StepIndex(trace));
    ASSERT_TRUE(explanation);
    // Parameter, gradient and temporaries of 4 each, and Adam's state of 8.
    EXPECT_THAT(explanation->notes,
                testing::Contains(HasSubstr("at most " + format_bytes(20 * kUnit))));
    EXPECT_NE(remedy_of(*explanation, "larger_gpu"), nullptr);
}

// ---- techniques, in a step that fits -----------------------------------------------------------

/// GELU saves its input of 16, the linear layer its output of 16, and 16 more make the peak.
Trace gelu_step() {
    SmallProgram b(8);
    const auto layer = b.module_path("mlp");
    const auto activation = b.module_path("mlp.act", -1, layer);
    b.begin_step(PhaseKind::kForward);
    const auto input = b.make(16, b.call({.name = "aten::linear", .module = layer}));
    const auto gelu = b.call({.name = "aten::gelu", .module = activation, .reads = {input}});
    const auto output = b.make(16, gelu);
    b.keep_for_backward(input, gelu);
    const auto linear = b.call({.name = "aten::addmm", .module = layer, .reads = {output}});
    b.keep_for_backward(output, linear);
    const auto last = b.make(16, linear);
    b.begin_phase(PhaseKind::kBackward);
    b.free(last);
    b.free(output);
    b.free(input);
    b.end_step();
    return b.finish();
}

TEST(ExplainTempo, SavesAMaskInPlaceOfTheInputOfGelu) {
    const Trace trace = gelu_step();
    const auto explanation = explain(StepIndex(trace));
    ASSERT_TRUE(explanation);
    EXPECT_EQ(explanation->verdict, Verdict::kFits);
    EXPECT_EQ(explanation->sentence,
              "It fits: " + format_bytes(48 * kUnit) + " at the peak, in forward.");
    const Remedy* bytes = remedy_of(*explanation, "tempo");
    const Remedy* bits = remedy_of(*explanation, "tempo_packed");
    ASSERT_NE(bytes, nullptr);
    ASSERT_NE(bits, nullptr);
    EXPECT_EQ(bytes->estimated.peak_allocated_bytes, 36 * kUnit) << "a mask of 4";
    EXPECT_EQ(bits->estimated.peak_allocated_bytes, 32 * kUnit + kUnit / 2) << "a mask of 1/2";
    EXPECT_EQ(explanation->remedies.front().id, "tempo_packed") << "most bytes first";
}

TEST(ExplainTempo, LeavesACallOfGeluInAModuleOfTheProgramAlone) {
    Trace trace = gelu_step();
    // The same op in the module that has children.
    for (const Id<Op> op : trace.ops.ids()) trace.ops.set<&Op::module_path>(op, Id<ModulePath>(0));
    const auto explanation = explain(StepIndex(trace));
    ASSERT_TRUE(explanation);
    EXPECT_EQ(remedy_of(*explanation, "tempo"), nullptr);
}

TEST(OrderRemedies, PutsWhatEndsGrowthBeforeWhatPutsItOff) {
    const StepOutcome fits{.peak_allocated_bytes = 500, .peak_reserved_bytes = 600, .fits = true};
    Explanation explanation{.target = {.limit_bytes = 1000, .batch_size = 8}};
    explanation.remedies = {
        {.id = "expandable_segments", .code_lines = 0, .estimated = fits},
        {.id = "keep_less", .finding = "growth", .code_lines = 1, .estimated = fits}};
    order_remedies(explanation);
    EXPECT_EQ(explanation.remedies.front().id, "expandable_segments") << "nothing grows";
    explanation.growth.push_back({.line = "train.py:16 <module>", .bytes_per_step = 64});
    order_remedies(explanation);
    EXPECT_EQ(explanation.remedies.front().id, "keep_less");
    explanation.remedies.front().estimated.fits = false;
    order_remedies(explanation);
    EXPECT_EQ(explanation.remedies.front().id, "expandable_segments") << "that one fits now";
    explanation.remedies.push_back({.id = "expandable_segments+keep_less",
                                    .members = {"expandable_segments", "keep_less"},
                                    .code_lines = 1,
                                    .estimated = fits});
    order_remedies(explanation);
    EXPECT_EQ(explanation.remedies.front().id, "expandable_segments+keep_less")
        << "a member ends it";
}

TEST(ExplainLimit, WarnsWhereLessThanFivePercentAreLeft) {
    Trace trace = gelu_step();
    trace.runs.set<&profiler::Run::memory_limit_bytes>(Id<profiler::Run>(0), 50 * kUnit);
    const auto explanation = explain(StepIndex(trace));
    ASSERT_TRUE(explanation);
    EXPECT_EQ(explanation->verdict, Verdict::kNearLimit);
    EXPECT_THAT(explanation->sentence, HasSubstr("with 4.0 % left"));
}

}  // namespace
