#include "profiler/planner/step/communication.h"

#include "profiler/planner/data/planner_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

/// Against the closed forms, with round figures in the calibration's place.
namespace profiler {
namespace {

constexpr double kLinkBytesPerNs = 200, kAdapterBytesPerNs = 25;
constexpr double kBase = 5000, kStep = 1000, kNetworkStep = 8000;
constexpr int64_t kLarge = int64_t{1} << 30;

class Communication : public testing::Test {
protected:
    Communication() {
        calibration_.links = {{.name = "link", .gpus = {}, .bus_bytes_per_s = {200e9, ""}}};
        calibration_.networks = {{.name = "network", .gpus = {}, .bytes_per_s = {25e9, ""}}};
        calibration_.protocols = {{.name = "Simple",
                                   .base_ns = kBase,
                                   .step_ns = kStep,
                                   .network_step_ns = kNetworkStep,
                                   .bandwidth_share = 1,
                                   .source = ""}};
        calibration_.gpus_per_node = {8, ""};
    }

    double time_ns(CollectiveKind kind, int64_t size_bytes, const RankPlaces& places) const {
        return CommunicationModel(calibration_, "a100-80gb").time_ns(kind, size_bytes, places);
    }

    Calibration calibration_;
};

RankPlaces first_ranks(int64_t count) {
    std::vector<int64_t> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    return places_of(ranks, 8);
}

TEST_F(Communication, RanksStandOnNodesInOrder) {
    const RankPlaces on_one = first_ranks(8), on_two = first_ranks(12);
    EXPECT_EQ(on_one.num_nodes, 1);
    EXPECT_EQ(on_two.num_nodes, 2);
    EXPECT_EQ(on_two.most_on_node, 8);
    const RankPlaces apart = places_of(std::vector<int64_t>{0, 8, 16}, 8);  // replicas of HSDP
    EXPECT_EQ(apart.num_ranks, 3);
    EXPECT_EQ(apart.num_nodes, 3);
    EXPECT_EQ(apart.most_on_node, 1);
}

/// 2 (R-1)/R · N/B, and 2 steps.
TEST_F(Communication, AnAllReduceGoesTwiceAroundTheRing) {
    for (const int64_t ranks : {2, 4, 8}) {
        const auto r = static_cast<double>(ranks);
        EXPECT_NEAR(time_ns(CollectiveKind::kAllReduce, kLarge, first_ranks(ranks)),
                    2 * (r - 1) / r * static_cast<double>(kLarge) / kLinkBytesPerNs + kBase +
                        2 * (r - 1) * kStep,
                    1);
    }
}

TEST_F(Communication, GathersAndScattersGoOnceAround) {
    const double expected_ns =
        7.0 / 8 * static_cast<double>(kLarge) / kLinkBytesPerNs + kBase + 7 * kStep;
    for (const auto kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
        EXPECT_NEAR(time_ns(kind, kLarge, first_ranks(8)), expected_ns, 1);
    }
}

TEST_F(Communication, AMessageIsOneStep) {
    EXPECT_NEAR(time_ns(CollectiveKind::kSend, kLarge, first_ranks(2)),
                static_cast<double>(kLarge) / kLinkBytesPerNs + kBase + kStep, 1);
}

/// Eight GPUs of a node use eight adapters, and the link is not the bound.
TEST_F(Communication, BetweenNodesEachGpuHasItsAdapter) {
    const double wire_bytes = 2 * 15.0 / 16 * static_cast<double>(kLarge);
    const double tree_ns = kBase + 2 * (7 * kStep + kNetworkStep);
    EXPECT_NEAR(time_ns(CollectiveKind::kAllReduce, kLarge, first_ranks(16)),
                wire_bytes / (8 * kAdapterBytesPerNs) + tree_ns, 1);
    const RankPlaces apart = places_of(std::vector<int64_t>{0, 8}, 8);
    EXPECT_NEAR(time_ns(CollectiveKind::kAllGather, kLarge, apart),
                static_cast<double>(kLarge) / 2 / kAdapterBytesPerNs + kBase + kNetworkStep, 1);
    calibration_.links.front().bus_bytes_per_s.value = 40e9;
    EXPECT_NEAR(time_ns(CollectiveKind::kAllReduce, kLarge, first_ranks(16)),
                wire_bytes / 40 + tree_ns, 1);
}

TEST_F(Communication, ATreeOfManyNodesIsShorterThanTheRing) {
    const double ns = time_ns(CollectiveKind::kAllReduce, 4, first_ranks(1024));
    EXPECT_NEAR(ns, kBase + 2 * (7 * kStep + 7 * kNetworkStep), 1);  // log2 of 128 nodes
    EXPECT_GT(time_ns(CollectiveKind::kAllGather, 4, first_ranks(1024)), 1023 * kStep);
}

TEST_F(Communication, TheFasterProtocolIsTaken) {
    calibration_.protocols.push_back({.name = "LL",
                                      .base_ns = kBase,
                                      .step_ns = kStep / 10,
                                      .network_step_ns = kNetworkStep,
                                      .bandwidth_share = 0.5,
                                      .source = ""});
    EXPECT_NEAR(time_ns(CollectiveKind::kBarrier, 0, first_ranks(2)), kBase + 2 * kStep / 10, 1);
    EXPECT_NEAR(time_ns(CollectiveKind::kBroadcast, kLarge, first_ranks(2)),
                static_cast<double>(kLarge) / kLinkBytesPerNs + kBase + kStep, 1);
}

TEST_F(Communication, OneRankSaysNothing) {
    EXPECT_EQ(time_ns(CollectiveKind::kAllReduce, kLarge, first_ranks(1)), 0);
}

/// The form above with the calibration that comes with the program.
TEST(BuiltInCalibration, KnowsLinksOfEveryGpu) {
    const PlannerData& data = built_in_planner_data();
    for (const Gpu& gpu : data.gpus) {
        const CommunicationModel model(data.calibration, gpu.id);
        const double small_ns = model.time_ns(CollectiveKind::kAllReduce, 4, first_ranks(16));
        const double large_ns = model.time_ns(CollectiveKind::kAllReduce, kLarge, first_ranks(16));
        EXPECT_TRUE(std::isfinite(large_ns)) << gpu.id;
        EXPECT_GT(large_ns, small_ns) << gpu.id;
        EXPECT_GT(small_ns, 0) << gpu.id;
    }
}

}  // namespace
}  // namespace profiler
