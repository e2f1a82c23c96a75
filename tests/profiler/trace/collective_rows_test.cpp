#include "profiler/trace/collective_rows.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

TEST(CollectiveKind, IsReadFromNamesOfOpsAndOfRecords) {
    EXPECT_EQ(collective_kind_of("allreduce_coalesced_"), CollectiveKind::kAllReduce);
    EXPECT_EQ(collective_kind_of("_allgather_base_"), CollectiveKind::kAllGather);
    EXPECT_EQ(collective_kind_of("_reduce_scatter_base"), CollectiveKind::kReduceScatter);
    EXPECT_EQ(collective_kind_of("_reduce_oop"), CollectiveKind::kReduce);
    EXPECT_EQ(collective_kind_of("all_to_allv"), CollectiveKind::kAllToAll);
    EXPECT_EQ(collective_kind_of("recv_any_source_"), CollectiveKind::kRecv);
    EXPECT_EQ(collective_kind_of("monitored_barrier_"), CollectiveKind::kBarrier);
}

TEST(CollectiveKind, IsNoneOfWhatMovesNothing) {
    EXPECT_FALSE(collective_kind_of("wait"));
    EXPECT_FALSE(collective_kind_of("init"));
    EXPECT_FALSE(collective_kind_of(""));
}

}  // namespace
}  // namespace profiler
