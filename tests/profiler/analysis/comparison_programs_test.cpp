#include "profiler/analysis/comparison.h"
#include "tests/profiler/analysis/comparison_traces.h"

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
};

NamedTrace make_program(const std::string& file, const ProgramSpec& spec) {
    Trace trace = *make_trace({.bytes = spec.bytes, .batch_size = spec.batch_size});
    const Id<profiler::Run> run(0);
    const nlohmann::json workload{{"program", spec.program}};
    trace.runs.set<&Run::workload>(run, trace.strings.intern(workload.dump()));
    trace.runs.set<&Run::model>(run, trace.strings.intern("Net"));
    const auto recipe = spec.recipe.empty() ? StringId() : trace.strings.intern(spec.recipe);
    trace.runs.set<&Run::recipe>(run, recipe);
    return {file, std::make_shared<const Trace>(std::move(trace))};
}

std::vector<std::string> recipes(const Comparison& comparison) {
    std::vector<std::string> names;
    for (const auto& column : comparison.columns) names.push_back(column.recipe);
    return names;
}

TEST(ComparePrograms, AProgramWithoutARecipeIsTheOriginalOfOneWithIt) {
    const auto comparison = compare({make_program("b.tscope", {.recipe = "tempo", .bytes = 600}),
                                     make_program("a.tscope", {})})
                                .value();
    EXPECT_THAT(recipes(comparison), ElementsAre("original", "tempo"));
    EXPECT_THAT(comparison.workload, HasSubstr("train.py: Net, B=8"));
    EXPECT_THAT(comparison.sentence,
                HasSubstr("tempo trains the same step of Net in 40.0 % less memory than original"));
    EXPECT_THAT(comparison.notes, IsEmpty());
}

TEST(ComparePrograms, WithoutRecipesTheyAreCalledByTheirFiles) {
    const auto comparison =
        compare({make_program("before.tscope", {}), make_program("after.tscope", {.bytes = 900})})
            .value();
    EXPECT_THAT(recipes(comparison), ElementsAre("before", "after"));
    EXPECT_THAT(comparison.sentence, HasSubstr("in 10.0 % less memory than before"));
}

TEST(ComparePrograms, SaysWhatDiffersAndDrawsNoConclusion) {
    const auto comparison =
        compare({make_program("a.tscope", {}),
                 make_program("b.tscope", {.program = "other.py", .batch_size = 4})})
            .value();
    EXPECT_EQ(comparison.sentence, "");
    EXPECT_THAT(comparison.notes,
                ElementsAre("a and b do not train the same step: program (train.py and other.py), "
                            "batch size (8 and 4); their figures are not comparable."));
}

TEST(ComparePrograms, AProgramIsNotAWorkloadOfOurs) {
    const auto comparison =
        compare({{"ours.tscope", make_trace({})}, make_program("b.tscope", {})}).value();
    EXPECT_EQ(comparison.sentence, "");
    EXPECT_THAT(comparison.notes, ElementsAre(HasSubstr("program (bert-base and train.py)")));
}

}  // namespace
