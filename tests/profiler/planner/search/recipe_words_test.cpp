#include "profiler/planner/search/auto_plan.h"

#include <gtest/gtest.h>

namespace {

std::string words(std::string_view chosen, std::string_view reference = "original") {
    const models::Workload large{.model = models::find_model("bert-large").value()};
    return profiler::describe_techniques(models::with_recipe(large, chosen).value(),
                                         models::with_recipe(large, reference).value());
}

TEST(DescribeTechniques, NamesWhatDiffersAndWhere) {
    EXPECT_EQ(words("tempo-dropout@0-11"), "dropout recomputation in layers 0-11");
    EXPECT_EQ(words("checkpoint@0-3+checkpoint@9+checkpoint@20-21"),
              "checkpointing in layers 0-3, 9 and 20-21");
    EXPECT_EQ(words("tempo"),
              "in-place GELU, in-place LayerNorm and dropout recomputation in all layers");
    EXPECT_EQ(words("masks=philox+checkpoint,masks=philox@3"),
              "regenerated masks in all layers; checkpointing in layer 3");
    EXPECT_EQ(words("original", "tempo-gelu"), "GELU as in the original in all layers");
    EXPECT_EQ(words("tempo", "tempo"), "nothing");
}

/// gelu had words for three of its four values, so that gelu=python read past their end.
TEST(DescribeTechniques, HasWordsForEveryGelu) {
    EXPECT_EQ(words("gelu=python"), "unfused GELU in all layers");
}

}  // namespace
