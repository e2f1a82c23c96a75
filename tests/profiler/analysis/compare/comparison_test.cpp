#include "profiler/analysis/compare/comparison.h"

#include "profiler/analysis/compare/comparison_notes.h"
#include "profiler/analysis/step/closed_form.h"
#include "profiler/analysis/step/describe_run.h"
#include "tests/profiler/analysis/compare/comparison_traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

namespace {

using namespace tests;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Compare, DrawsNoConclusionFromAPredictionBesideAMeasurement) {
    const auto comparison =
        compare_two({}, {.recipe = "tempo", .bytes = 500, .source = Source::kPredicted});
    EXPECT_EQ(comparison.sentence, "");
    EXPECT_THAT(comparison.notes, testing::Contains(HasSubstr("are not the recipe's alone")));
}

TEST(Compare, PutsOriginalFirstAndQuotesTheSaving) {
    const auto comparison =
        compare(
            {{"tempo.tscope", make_trace({.recipe = "tempo",
                                          .bytes = 600,
                                          .step_times_ns = {2'000'000, 1'900'000, 2'100'000}})},
             {"original.tscope", make_trace({.step_times_ns = {2'500'000, 2'400'000, 2'600'000}})}})
            .value();
    EXPECT_THAT(recipes(comparison), ElementsAre("original", "tempo"));
    EXPECT_EQ(comparison.workload, "bert-base, 12 layers, no head, B=8 S=512, fp32");
    EXPECT_EQ(
        comparison.sentence,
        "tempo trains the same step in 40.0 % less memory than original (600 B instead of "
        "1000 B) and takes 20.0 % less time a step at a batch of 8 (not measured alternately).");
    EXPECT_THAT(comparison.notes, IsEmpty());
}

TEST(Compare, TakesTheMedianStepAndTheLastLoss) {
    const auto column = compare({{"a", make_trace({})}}).value().columns[0];
    EXPECT_EQ(column.step_time_ns, 3'000'000);
    EXPECT_EQ(column.steps, 3);
    EXPECT_DOUBLE_EQ(column.sequences_per_s, 8 / 3e-3);
    EXPECT_EQ(column.peak_allocated_bytes, 1000);
    EXPECT_EQ(column.saved_bytes, 1000);
    EXPECT_EQ(column.loss, 0.5);
}

TEST(Compare, TakesTheReportThatATraceCarries) {
    const auto trace = make_trace({});
    StepReport report = report_step(*trace);
    report.peak.allocated_bytes = 123;  // no trace says so: it can only come from here
    report.ledger.total_bytes = 45;
    const NamedTrace named{"a", trace, std::make_shared<const StepReport>(std::move(report))};
    const auto column = compare({named}).value().columns[0];
    EXPECT_EQ(column.peak_allocated_bytes, 123);
    EXPECT_EQ(column.saved_bytes, 45);
    EXPECT_EQ(report_of(named), named.report);
}

TEST(Compare, JoinsACaptureAndItsSweepWhateverTheirOrder) {
    const auto capture = make_trace({.bytes = 700});
    const auto sweep =
        make_trace({.bytes = 800,
                    .step_times_ns = {9'000'000},
                    .sweep = {{1, {1'000'000}},
                              {4, {2'000'000, 2'200'000, 1'900'000}},
                              {6, {}},
                              {5, {4'000'000}}},
                    .batch_size = 1,  // the batch that a sweep traces is its own affair
                    .memory_limit_bytes = 1 << 20});
    for (const bool sweep_first : {false, true}) {
        std::vector<NamedTrace> files{{"c.tscope", capture}, {"s.tscope", sweep}};
        if (sweep_first) std::swap(files[0], files[1]);
        const auto comparison = compare(files).value();
        ASSERT_EQ(comparison.columns.size(), 1u);
        const ComparisonColumn& column = comparison.columns[0];
        EXPECT_EQ(column.recipe, "original");
        EXPECT_EQ(column.peak_allocated_bytes, 700) << "the capture's step, not the sweep's";
        EXPECT_EQ(column.step_trace, capture);
        EXPECT_EQ(column.batch_size, 8);
        EXPECT_EQ(column.max_batch.exact(), 5);
        EXPECT_EQ(column.best_batch_size, 4);
        EXPECT_DOUBLE_EQ(column.best_sequences_per_s.value(), 2000);
        EXPECT_EQ(column.memory_limit_bytes, 1 << 20);
        ASSERT_EQ(column.curve.size(), 4u);
        EXPECT_EQ(column.curve[1].step_time_ns, 2'000'000);
        EXPECT_EQ(column.curve[1].step_time_min_ns, 1'900'000);
        EXPECT_EQ(column.curve[1].step_time_max_ns, 2'200'000);
        EXPECT_EQ(column.curve[2].batch_size, 5) << "by batch size";
        EXPECT_TRUE(column.curve[3].out_of_memory);
        EXPECT_EQ(column.files.size(), 2u);
    }
}

TEST(Compare, CountsTheSequencesOfEveryMicroBatch) {
    const auto trace =
        make_trace({.step_times_ns = {4'000'000}, .sweep = {{2, {1'000'000}}}, .micro_batches = 3});
    const ComparisonColumn column = compare({{"a.tscope", trace}}).value().columns[0];
    EXPECT_EQ(column.batch_size, 8);
    EXPECT_DOUBLE_EQ(column.sequences_per_s, 3 * 8 / 4e-3);
    EXPECT_DOUBLE_EQ(column.best_sequences_per_s.value(), 3 * 2 / 1e-3);
    EXPECT_THAT(describe_workload(*trace), HasSubstr("3 micro-batches of B=8 S=512"));
}

/// A sweep of a recipe that no capture holds stands beside the captures of its step: its maximum
/// batch is compared with theirs, its memory is not, since it traced another batch.
TEST(Compare, ASweepAloneBelongsToTheStepOfTheCaptures) {
    const auto original = make_trace({.bytes = 700});
    const auto original_sweep =
        make_trace({.sweep = {{1, {1'000'000}}, {8, {2'000'000}}, {9, {}}}, .batch_size = 1});
    const auto tempo_sweep = make_trace({.recipe = "tempo",
                                         .bytes = 90,
                                         .sweep = {{1, {1'000'000}}, {12, {2'500'000}}, {13, {}}},
                                         .batch_size = 1});
    std::vector<NamedTrace> files{
        {"c.tscope", original}, {"so.tscope", original_sweep}, {"st.tscope", tempo_sweep}};
    std::sort(files.begin(), files.end(),
              [](const auto& a, const auto& b) { return a.file < b.file; });
    do {
        const auto comparison = compare(files).value();
        ASSERT_THAT(recipes(comparison), ElementsAre("original", "tempo"));
        const ComparisonColumn &first = comparison.columns[0], &second = comparison.columns[1];
        EXPECT_EQ(second.baseline, 0u);
        EXPECT_EQ(first.batch_size, 8);
        EXPECT_EQ(first.peak_allocated_bytes, 700);
        EXPECT_EQ(first.max_batch.exact(), 8);
        EXPECT_EQ(second.batch_size, 1);
        EXPECT_EQ(second.max_batch.exact(), 12);
        EXPECT_FALSE(at_same_batch(first, second));
        EXPECT_THAT(comparison.notes,
                    testing::Contains(HasSubstr("tempo was recorded at a batch of 1")));
        EXPECT_EQ(comparison.sentence, "") << "bytes of batch 1 are no saving against batch 8";
    } while (std::next_permutation(files.begin(), files.end(),
                                   [](const auto& a, const auto& b) { return a.file < b.file; }));
}

TEST(Compare, CapturesAtTwoBatchesStayTwoStepsBesideASweep) {
    const auto comparison =
        compare(
            {{"s", make_trace(
                       {.recipe = "tempo", .sweep = {{1, {1'000'000}}, {9, {}}}, .batch_size = 1})},
             {"a", make_trace({.batch_size = 8})},
             {"b", make_trace({.batch_size = 16})}})
            .value();
    ASSERT_EQ(comparison.columns.size(), 3u);
    EXPECT_EQ(comparison.columns[1].recipe, "tempo");
    EXPECT_EQ(comparison.columns[1].baseline, 0u);
    EXPECT_EQ(comparison.columns[2].baseline, 2u);
}

TEST(Compare, KnowsNoMaximumBatchWhenNothingFailed) {
    const auto comparison = compare({{"s", make_trace({.sweep = {{1, {5}}, {2, {6}}}})}}).value();
    EXPECT_FALSE(comparison.columns[0].max_batch.exact());
    EXPECT_EQ(comparison.columns[0].max_batch.at_least, 2);
    EXPECT_EQ(comparison.columns[0].best_batch_size, 2);
}

TEST(Compare, ReportsAMaximumBatchOfZeroWhenNotEvenOneFits) {
    const auto comparison = compare({{"s", make_trace({.sweep = {{1, {}}}})}}).value();
    EXPECT_EQ(comparison.columns[0].max_batch.exact(), 0);
    EXPECT_FALSE(comparison.columns[0].best_batch_size);
}

TEST(Compare, QuotesTheBatchWithItsLimit) {
    const Sample ok8{8, {1'000'000}}, ok13{13, {1'000'000}}, oom9{9, {}}, oom14{14, {}};
    const auto sentence = compare_two({.sweep = {ok8, oom9}, .memory_limit_bytes = 1 << 30},
                                      {.recipe = "tempo",
                                       .bytes = 500,
                                       .sweep = {ok13, oom14},
                                       .memory_limit_bytes = 1 << 30})
                              .sentence;
    EXPECT_THAT(sentence, HasSubstr("fits a batch of 13 instead of 8 within 1.00 GiB"));
}

TEST(Compare, KeepsTwoCapturesOfOneRecipeApart) {
    const auto comparison = compare({{"out/before.tscope", make_trace({})},
                                     {"out/after.tscope", make_trace({.bytes = 1100})}})
                                .value();
    EXPECT_THAT(recipes(comparison), ElementsAre("original (before)", "original (after)"));
    EXPECT_THAT(comparison.sentence, HasSubstr("10.0 % more memory"));
}

TEST(Compare, TellsCapturesOfOneNameApartByTheirFolders) {
    const auto trace = [] { return make_trace({}); };
    EXPECT_THAT(recipes(compare({{"out/before/original.tscope", trace()},
                                 {"out/after/original.tscope", trace()}})
                            .value()),
                ElementsAre("original (before/original)", "original (after/original)"));
    EXPECT_THAT(
        recipes(compare({{"a/x/original.tscope", trace()},
                         {"b/x/original.tscope", trace()},
                         {"./b/x/new.tscope", trace()}})
                    .value()),
        ElementsAre("original (a/x/original)", "original (b/x/original)", "original (new)"));
}

TEST(Compare, NumbersCapturesThatNothingElseTellsApart) {
    const auto comparison =
        compare({{"a.tscope", make_trace({})}, {"./a.tscope", make_trace({.bytes = 900})}}).value();
    EXPECT_THAT(recipes(comparison), ElementsAre("original (a)", "original (a) #2"));
    EXPECT_THAT(comparison.sentence, HasSubstr("original (a) #2 trains"));
}

/// 8 trained, 16 failed, and the sweep was stopped before it tried what lies between.
TEST(Compare, GivesBoundsOfTheMaximumBatchOfAnUnfinishedSweep) {
    const auto bounds = [](std::vector<Sample> sweep) {
        return compare({{"s", make_trace({.sweep = std::move(sweep)})}})
            .value()
            .columns[0]
            .max_batch;
    };
    const BatchBounds open = bounds({{4, {5}}, {8, {5}}, {16, {}}, {32, {}}});
    EXPECT_FALSE(open.exact());
    EXPECT_EQ(open.at_least, 8);
    EXPECT_EQ(open.below, 16);
    EXPECT_EQ(bounds({{8, {5}}, {16, {}}, {9, {}}}).exact(), 8);
    const BatchBounds nothing = bounds({{4, {}}});
    EXPECT_FALSE(nothing.exact());
    EXPECT_FALSE(nothing.at_least);
    EXPECT_EQ(nothing.below, 4);
    const BatchBounds odd = bounds({{4, {}}, {8, {5}}});
    EXPECT_EQ(odd.at_least, 8) << "another process took memory when 4 failed";
    EXPECT_FALSE(odd.below);
}

TEST(Differences, NameEverythingThatKeepsWorkloadsFromBeingComparable) {
    using models::Workload;
    const std::vector<std::function<void(Workload&)>> changes{
        [](Workload& w) { w.model.name = "other"; },
        [](Workload& w) { w.model.family = models::Family::kGpt2; },
        [](Workload& w) { w.model.hidden_size += 1; },
        [](Workload& w) { w.model.num_layers += 1; },
        [](Workload& w) { w.model.num_heads += 1; },
        [](Workload& w) { w.model.intermediate_size += 1; },
        [](Workload& w) { w.model.vocab_size += 1; },
        [](Workload& w) { w.model.max_position_embeddings += 1; },
        [](Workload& w) { w.model.first_position += 1; },
        [](Workload& w) { w.model.type_vocab_size += 1; },
        [](Workload& w) { w.model.hidden_dropout_p = 0.5; },
        [](Workload& w) { w.model.attention_dropout_p = 0.5; },
        [](Workload& w) { w.model.layer_norm_eps = 0.5; },
        [](Workload& w) { w.head = models::Head::kMlm; },
        [](Workload& w) { w.precision = models::Precision::kBf16; },
        [](Workload& w) { w.batch_size += 1; },
        [](Workload& w) { w.seq_len += 1; },
        [](Workload& w) { w.padding = models::Padding::kRandom; },
        [](Workload& w) { w.gradient_accumulation_steps += 1; },
        [](Workload& w) { w.input_requires_grad = false; },
        [](Workload& w) { w.seed += 1; },
        [](Workload& w) { w.learning_rate = 0.5; }};
    const Workload w;
    EXPECT_THAT(differences(w, w), IsEmpty());
    for (std::size_t i = 0; i < changes.size(); ++i) {
        Workload changed = w;
        changes[i](changed);
        EXPECT_FALSE(models::comparable(w, changed)) << i;
        EXPECT_EQ(differences(w, changed).size(), 1u) << i;
    }
}

/// A damaged file must not lead to a division by its hidden size of 0.
TEST(WorkloadOf, RefusesWhatCannotBe) {
    Trace trace = *make_trace({});
    const Id<profiler::Run> run(0);
    ASSERT_TRUE(workload_of(trace));
    auto json = nlohmann::json::parse(trace.text(trace.run().workload));
    for (const int64_t size : {int64_t{0}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
        json["model"]["hidden_size"] = size;
        trace.runs.set<&Run::workload>(run, trace.strings.intern(json.dump()));
        EXPECT_FALSE(workload_of(trace)) << size;
        EXPECT_FALSE(check_against_closed_form(trace)) << size;
    }
}

TEST(Compare, SaysWhatIsNotComparable) {
    const auto comparison = compare_two({}, {.recipe = "tempo", .batch_size = 16});
    EXPECT_THAT(comparison.notes,
                ElementsAre("original and tempo differ in more than the recipe: batch size (8 and "
                            "16); their figures are not comparable."));
    EXPECT_EQ(comparison.sentence, "");
}

TEST(Compare, HoldsEachStepAgainstItsOwnBaseline) {
    const auto comparison =
        compare({{"dir/tempo.tscope", make_trace({.recipe = "tempo"})},
                 {"big/tempo.tscope", make_trace({.recipe = "tempo", .batch_size = 16})},
                 {"big/original.tscope", make_trace({.batch_size = 16})},
                 {"dir/original.tscope", make_trace({})}})
            .value();
    EXPECT_THAT(recipes(comparison), ElementsAre("original (dir/original)", "tempo (dir/tempo)",
                                                 "original (big/original)", "tempo (big/tempo)"));
    std::vector<std::size_t> baselines;
    for (const auto& column : comparison.columns) baselines.push_back(column.baseline);
    EXPECT_THAT(baselines, ElementsAre(0u, 0u, 2u, 2u));
    EXPECT_THAT(comparison.notes,
                ElementsAre(HasSubstr("batch size (8 and 16); changes of tempo (big/tempo) are "
                                      "against original (big/original).")));
    EXPECT_EQ(comparison.sentence, "");
}

TEST(Compare, SaysWhenCaptureAndSweepDisagreeInSpeed) {
    const auto notes = [&](int64_t sweep_step_ns) {
        return compare_two({.step_times_ns = {4'000'000, 4'000'000}},
                           {.step_times_ns = {}, .sweep = {{8, {sweep_step_ns}}}})
            .notes;
    };
    EXPECT_THAT(notes(4'200'000), IsEmpty());
    EXPECT_THAT(notes(5'000'000),
                ElementsAre(HasSubstr("timed the same batch differently (original 4.00 ms and "
                                      "5.00 ms)")));
}

TEST(Compare, DoesNotKnowWhatAStepThatRanOutOfMemoryWouldSave) {
    auto trace = std::make_shared<Trace>(*make_trace({.step_times_ns = {4'000'000}}));
    add_diagnostic(*trace, {.code = kRanOutOfMemory, .explanation = "Too large."});
    const ComparisonColumn column = compare({{"a.tscope", trace}}).value().columns[0];
    EXPECT_TRUE(column.is_cut_off);
    EXPECT_FALSE(column.knows_saved);
    EXPECT_EQ(column.saved_bytes, 0);
}

TEST(Compare, SaysWherePeaksLieThatNoActivationMakes) {
    const auto sentence = [](PhaseKind a, PhaseKind b) {
        return compare_two({.peak_phase = a}, {.recipe = "tempo", .bytes = 600, .peak_phase = b})
            .sentence;
    };
    EXPECT_THAT(sentence(PhaseKind::kBackward, PhaseKind::kForward), Not(HasSubstr("lie")));
    EXPECT_THAT(
        sentence(PhaseKind::kBackward, PhaseKind::kOptimizer),
        HasSubstr(
            "; its peak lies in the optimizer's step, and the peak of original in backward."));
    EXPECT_THAT(sentence(PhaseKind::kOptimizer, PhaseKind::kOptimizer),
                HasSubstr("; both peaks lie in the optimizer's step"));
}

TEST(Compare, NotesIncompleteAndUnknownFiles) {
    Trace trace = *make_trace({.step_times_ns = {1'000'000}});
    trace.runs.set<&Run::state>(Id<profiler::Run>(0), RunState::kIncomplete);
    trace.runs.set<&Run::workload>(Id<profiler::Run>(0), {});
    trace.runs.set<&Run::recipe>(Id<profiler::Run>(0), {});
    const NamedTrace unknown{"dir/snapshot.tscope", std::make_shared<const Trace>(trace)};
    const auto alone = compare({unknown}).value();
    EXPECT_THAT(recipes(alone), ElementsAre("snapshot"));
    EXPECT_THAT(alone.notes, ElementsAre(HasSubstr("incomplete: 1 step was recorded")))
        << "there is nothing to be comparable with";
    const auto two = compare({{"known.tscope", make_trace({})}, unknown}).value();
    EXPECT_THAT(two.notes, testing::Contains(HasSubstr("does not say which workload")));
}

TEST(Compare, TakesTheChosenBaseline) {
    const std::vector<NamedTrace> files{{"a", make_trace({.bytes = 1000})},
                                        {"b", make_trace({.recipe = "tempo", .bytes = 500})},
                                        {"c", make_trace({.recipe = "flash", .bytes = 400})}};
    const auto comparison = compare(files, "tempo").value();
    EXPECT_THAT(recipes(comparison), ElementsAre("tempo", "original", "flash"));
    EXPECT_THAT(comparison.sentence, HasSubstr("flash trains the same step in 20.0 % less memory "
                                               "than tempo (400 B instead of 500 B)"));
    EXPECT_THAT(compare(files, "checkpoint").error().message,
                HasSubstr("No trace has the recipe 'checkpoint' to compare with; choose one of: "
                          "original, tempo, flash."));
}

TEST(Compare, NeedsAFile) { EXPECT_THAT(compare({}).error().message, HasSubstr("no trace")); }

}  // namespace
