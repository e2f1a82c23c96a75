#include "models/config/parallel.h"
#include "tests/models/config/sample_workloads.h"

#include <gtest/gtest.h>

#include <string>

namespace models {
namespace {

TEST(Parallel, TextIsReadAsItIsWritten) {
    for (const std::string text :
         {"none", "ddp", "zero1", "fsdp2", "fsdp2-no-reshard", "hsdp:8", "tp:2", "pp:4"}) {
        const auto parallel = parse_parallel(text);
        ASSERT_TRUE(parallel) << text;
        EXPECT_EQ(to_text(*parallel), text);
    }
    for (const std::string text : {"", "fsdp", "tp", "tp:", "tp:1", "tp:2x", "pp:-4", "ddp:8"}) {
        EXPECT_FALSE(parse_parallel(text)) << text;
    }
}

TEST(Parallel, GroupsDivideTheRanks) {
    const Workload w = tests::bert_large();
    EXPECT_TRUE(validate(w, {Strategy::kHsdp, 8}, 64));
    EXPECT_FALSE(validate(w, {Strategy::kHsdp, 8}, 60));
    EXPECT_TRUE(validate(w, {Strategy::kNone}, 1));
    EXPECT_FALSE(validate(w, {Strategy::kNone}, 2));
    EXPECT_FALSE(validate(w, {Strategy::kDdp}, 1));
    EXPECT_FALSE(validate(w, {Strategy::kDdp}, kMostRanks + 1));
}

TEST(Parallel, RanksOfAGroupTrainTheSameSequences) {
    Workload w = tests::bert_large();
    w.batch_size = 3;
    EXPECT_EQ(sequences_per_step(w, {Strategy::kFsdp2}, 8), 24);
    EXPECT_EQ(sequences_per_step(w, {Strategy::kTensor, 4}, 8), 6);
    // Two pipelines of four stages, four micro-batches each.
    EXPECT_EQ(sequences_per_step(w, {Strategy::kPipeline, 4}, 8), 24);
}

}  // namespace
}  // namespace models
