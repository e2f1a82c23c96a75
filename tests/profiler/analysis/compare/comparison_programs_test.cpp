#include "profiler/analysis/compare/comparison.h"
#include "profiler/analysis/step/describe_run.h"
#include "tests/profiler/analysis/compare/comparison_traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

/// Traces of a user's own programs, side by side.
namespace {

using namespace tests;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct ProgramSpec {
    std::string program = "train.py";
    std::string recipe;  // empty: the program as it is
    int64_t bytes = 1000;
    int64_t batch_size = 8;
    int64_t micro_batches = 0;  // not known
};

NamedTrace make_program(const std::string& file, const ProgramSpec& spec) {
    Trace trace = *make_trace({.bytes = spec.bytes, .batch_size = spec.batch_size});
    const Id<profiler::Run> run(0);
    nlohmann::json workload{{"program", spec.program}};
    if (spec.micro_batches > 0) workload["micro_batches"] = spec.micro_batches;
    trace.runs.set<&Run::workload>(run, trace.strings.intern(workload.dump()));
    trace.runs.set<&Run::model>(run, trace.strings.intern("Net"));
    const auto recipe = spec.recipe.empty() ? StringId() : trace.strings.intern(spec.recipe);
    trace.runs.set<&Run::recipe>(run, recipe);
    return {file, std::make_shared<const Trace>(std::move(trace))};
}

Comparison compare_programs(const ProgramSpec& a, const ProgramSpec& b) {
    return compare({make_program("a.tscope", a), make_program("b.tscope", b)}).value();
}

TEST(ComparePrograms, AProgramWithoutARecipeIsTheOriginalOfOneWithIt) {
    const auto comparison = compare_programs({.recipe = "tempo", .bytes = 600}, {});
    EXPECT_THAT(recipes(comparison), ElementsAre("original", "tempo"));
    EXPECT_THAT(comparison.workload, HasSubstr("train.py: Net, B=8"));
    EXPECT_THAT(comparison.sentence,
                HasSubstr("tempo trains the same step of Net in 40.0 % less memory than original"));
    EXPECT_THAT(comparison.notes, IsEmpty());
}

TEST(ComparePrograms, DamagedNumbersOfSequencesAreNotKnown) {
    constexpr int64_t kHuge = int64_t{1} << 62;
    const auto sequences = [](const ProgramSpec& spec) {
        return profiler::sequences_per_step(*make_program("a.tscope", spec).trace);
    };
    EXPECT_EQ(sequences({.batch_size = 8, .micro_batches = 4}), 32);
    EXPECT_EQ(sequences({.batch_size = 8, .micro_batches = kHuge}), 0);
    EXPECT_EQ(sequences({.batch_size = kHuge, .micro_batches = 4}), 0);
}

TEST(ComparePrograms, WithoutRecipesTheyAreCalledByTheirFiles) {
    const auto comparison = compare_programs({}, {.bytes = 900});
    EXPECT_THAT(recipes(comparison), ElementsAre("a", "b"));
    EXPECT_THAT(comparison.sentence, HasSubstr("in 10.0 % less memory than a"));
}

TEST(ComparePrograms, SaysWhatDiffersAndWhatThatChanges) {
    const auto comparison =
        compare_programs({}, {.program = "other.py", .bytes = 600, .batch_size = 4});
    EXPECT_THAT(comparison.sentence, HasSubstr("b takes 40.0 % less memory than a ("));
    EXPECT_THAT(
        comparison.sentence,
        HasSubstr(". They differ in program (train.py and other.py) and batch size (8 and 4)."));
    EXPECT_THAT(comparison.notes, IsEmpty());
}

/// A trace with a gradient for the first `num_gradients` of its parameters, of 10 elements each.
NamedTrace make_trained(const std::string& file, int64_t num_parameters, int64_t num_gradients) {
    NamedTrace named = make_program(file, {});
    Trace trace = *named.trace;
    const auto add = [&trace](const std::string& name, Category category) {
        const Id<Storage> storage = trace.storages.append({.size_bytes = 40, .category = category});
        trace.tensors.append({.storage = storage, .name = trace.strings.intern(name)});
    };
    for (int64_t i = 0; i < num_parameters; ++i) {
        const std::string name = "layer." + std::to_string(i);
        add(name, Category::kParameter);
        if (i < num_gradients) add(name + ".grad", Category::kGradient);
    }
    named.trace = std::make_shared<const Trace>(std::move(trace));
    return named;
}

TEST(ComparePrograms, TrainTheSameOnlyWithTheSameParametersAndGradients) {
    const auto differences_of = [](const NamedTrace& b) {
        return compare({make_trained("a.tscope", 6, 6), b}).value().columns[1].differs_in;
    };
    EXPECT_THAT(differences_of(make_trained("b.tscope", 6, 6)), IsEmpty());
    EXPECT_THAT(differences_of(make_trained("b.tscope", 6, 2)),
                ElementsAre("parameters with a gradient (6 of 6 and 2 of 6)"));
    EXPECT_THAT(differences_of(make_trained("b.tscope", 7, 7)),
                ElementsAre("parameters (60 and 70)"));
}

TEST(ComparePrograms, AProgramIsNotAWorkloadOfOurs) {
    const auto comparison =
        compare({{"ours.tscope", make_trace({})}, make_program("b.tscope", {})}).value();
    EXPECT_EQ(comparison.sentence, "");
    EXPECT_THAT(comparison.notes, ElementsAre(HasSubstr("program (bert-base and train.py)")));
}

TEST(ComparePrograms, KnowThroughputWhereMicroBatchesAreCounted) {
    const auto comparison = compare_programs({}, {.micro_batches = 4});
    EXPECT_EQ(comparison.columns[0].sequences_per_s, 0);
    const auto& counted = comparison.columns[1];
    EXPECT_DOUBLE_EQ(counted.sequences_per_s,
                     profiler::sequences_per_s(4 * 8, counted.step_time_ns));
    EXPECT_THAT(comparison.notes, IsEmpty());
}

TEST(ComparePrograms, MicroBatchesMakeAnotherStep) {
    const auto comparison = compare_programs({.micro_batches = 1}, {.micro_batches = 4});
    EXPECT_THAT(comparison.sentence, HasSubstr("They differ in micro-batches (1 and 4)."));
}

TEST(ComparePrograms, MicroBatchesOfTheSameSamplesAreTheSameStep) {
    const auto comparison = compare_programs({.batch_size = 8, .micro_batches = 1},
                                             {.batch_size = 2, .micro_batches = 4});
    EXPECT_THAT(comparison.notes, IsEmpty());
    EXPECT_EQ(comparison.columns[1].baseline, 0U);
}

/// A rank of a built-in model over many GPUs, as `capture --parallel` writes it.
NamedTrace make_rank(const std::string& file, const std::string& parallel, int64_t world_size,
                     int64_t collective_ns = 0) {
    Trace trace = *make_trace({.recipe = "tempo", .source = Source::kPredicted});
    const Id<profiler::Run> run(0);
    const nlohmann::json json{{"program", "train_built_in.py"},
                              {"workload", nlohmann::json::parse(trace.text(trace.run().workload))},
                              {"parallel", parallel}};
    trace.runs.set<&Run::workload>(run, trace.strings.intern(json.dump()));
    trace.runs.set<&Run::world_size>(run, world_size);
    trace.runs.set<&Run::time_basis>(run, profiler::TimeBasis::kModelled);
    trace.collectives.append(
        {.kind = profiler::CollectiveKind::kAllReduce, .start_ns = 0, .end_ns = collective_ns});
    return {file, std::make_shared<const Trace>(std::move(trace))};
}

TEST(CompareSpreadModels, StrategiesOfOneStepStandSideBySide) {
    const auto comparison = compare({make_rank("a/rank-0000.tscope", "ddp", 8),
                                     make_rank("b/rank-0000.tscope", "fsdp2", 8)})
                                .value();
    EXPECT_THAT(recipes(comparison), ElementsAre("tempo · ddp", "tempo · fsdp2"));
    EXPECT_THAT(comparison.workload, HasSubstr("bert-base"));
    EXPECT_THAT(comparison.notes,
                ElementsAre(HasSubstr("Communication between GPUs is not, or not wholly, in the "
                                      "times of tempo · ddp and tempo · fsdp2")));
    EXPECT_THAT(comparison.sentence, HasSubstr("tempo · fsdp2 trains the same step"));
    const auto& column = comparison.columns[0];  // all GPUs together
    EXPECT_DOUBLE_EQ(column.sequences_per_s,
                     profiler::sequences_per_s(8 * column.batch_size, column.step_time_ns));
}

TEST(CompareSpreadModels, ModelledCommunicationTellsWhichIsFaster) {
    const auto comparison = compare({make_rank("a/rank-0000.tscope", "ddp", 8, 100),
                                     make_rank("b/rank-0000.tscope", "fsdp2", 8, 100)})
                                .value();
    EXPECT_THAT(comparison.notes,
                ElementsAre(HasSubstr("Communication between GPUs is modelled in the times of "
                                      "tempo · ddp and tempo · fsdp2; no machine")));
    EXPECT_THAT(comparison.sentence, HasSubstr("takes about the same time a step"));
}

TEST(CompareSpreadModels, OtherNumbersOfGpusAreOtherSteps) {
    const auto comparison =
        compare({make_rank("a.tscope", "ddp", 8),
                 make_rank("b.tscope", "ddp", 16),
                 {"one.tscope", make_trace({.recipe = "tempo", .source = Source::kPredicted})}})
            .value();
    EXPECT_THAT(comparison.notes, ElementsAre(HasSubstr("number of GPUs (8 and 16)"),
                                              HasSubstr("number of GPUs (8 and 1)")));
}

/// The GPUs of a tensor-parallel group train the same sequences.
TEST(CompareSpreadModels, FewerSequencesAreAnotherStep) {
    const auto comparison =
        compare({make_rank("a.tscope", "ddp", 2), make_rank("b.tscope", "tp:2", 2)}).value();
    EXPECT_THAT(comparison.notes, ElementsAre(HasSubstr("sequences of a step (16 and 8)")));
}

}  // namespace
