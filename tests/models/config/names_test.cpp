#include "models/config/names.h"

#include <gmock/gmock.h>

namespace models {
namespace {

using testing::ElementsAre;

const std::vector<std::string_view> kGpus{"t4",        "v100-16gb", "v100-32gb", "a10",
                                          "a40",       "a6000",     "a100-40gb", "a100-80gb",
                                          "h100-pcie", "h100-sxm",  "h200",      "b200",
                                          "rtx3090",   "rtx3090ti", "rtx4090",   "jetson-orin"};

TEST(NearestNames, BeginWithTheWordInAnyCase) {
    EXPECT_THAT(nearest_names("v100", kGpus), ElementsAre("v100-16gb", "v100-32gb"));
    EXPECT_THAT(nearest_names("a100", kGpus), ElementsAre("a100-40gb", "a100-80gb"));
    EXPECT_THAT(nearest_names("H100", kGpus), ElementsAre("h100-sxm", "h100-pcie"));
    EXPECT_THAT(nearest_names("RTX3090", kGpus), ElementsAre("rtx3090", "rtx3090ti"));
}

TEST(NearestNames, ContainTheWord) {
    EXPECT_THAT(nearest_names("Orin", kGpus), ElementsAre("jetson-orin"));
    EXPECT_THAT(nearest_names("3090", kGpus), ElementsAre("rtx3090", "rtx3090ti"));
}

TEST(NearestNames, HaveTheFewestEditsIfNoneContainsTheWord) {
    EXPECT_EQ(nearest_names("rtx3091", kGpus).front(), "rtx3090");
    EXPECT_EQ(nearest_names("A100_80GB", kGpus).front(), "a100-80gb");
    EXPECT_EQ(nearest_names("", kGpus).size(), 3U);
    EXPECT_TRUE(nearest_names("t4", {}).empty());
}

TEST(IsSameName, IgnoresCase) {
    EXPECT_TRUE(is_same_name("RTX4090", "rtx4090"));
    EXPECT_FALSE(is_same_name("rtx409", "rtx4090"));
    EXPECT_FALSE(is_same_name("", "t4"));
}

}  // namespace
}  // namespace models
