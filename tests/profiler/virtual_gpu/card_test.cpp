#include "profiler/virtual_gpu/card.h"

#include "profiler/protocol/virtual_gpu_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <stdexcept>

namespace profiler::virtual_gpu {
namespace {

using nlohmann::json;

json small_machine() {
    return {{"devices",
             {{{"name", "A card"},
               {"compute_capability", "8.6"},
               {"total_bytes", 1000},
               {"context_bytes", 100},
               {"sm_count", 2},
               {"l2_bytes", 64},
               {"threads_per_sm", 1536},
               {"blocks_per_sm", 16},
               {"shared_bytes_per_sm", 102400},
               {"shared_bytes_per_block", 101376}}}}};
}

/// The sentence of a machine that is refused.
std::string refusal_of(const std::string& text) {
    try {
        parse_machine(text);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "accepted";
}

TEST(VirtualCard, AProcessSeesAsManyAsItsStarterMayGiveIt) {
    json machine = small_machine();
    const json card = machine["devices"][0];
    machine["devices"] = json::array_t(kMostVirtualCards, card);
    EXPECT_EQ(parse_machine(machine.dump()).cards.size(), kMostVirtualCards);
    machine["devices"].push_back(card);
    EXPECT_THAT(refusal_of(machine.dump()), testing::HasSubstr("1 to 32"));
}

TEST(VirtualCard, IsReadFromJson) {
    const Machine machine = parse_machine(small_machine().dump());
    ASSERT_EQ(machine.cards.size(), 1U);
    EXPECT_EQ(machine.cards[0].name, "A card");
    EXPECT_EQ(machine.cards[0].major, 8);
    EXPECT_EQ(machine.cards[0].minor, 6);
    EXPECT_EQ(machine.cards[0].context_bytes, 100);
    EXPECT_EQ(machine.placement, SegmentPlacement::kChunks);
}

TEST(VirtualCard, HasAnH100sClocksUnlessItsOwnAreGiven) {
    json machine = small_machine();
    EXPECT_NEAR(bytes_per_ns(parse_machine(machine.dump()).cards[0]), 3352, 1);
    machine["devices"][0].update(
        {{"clock_khz", 1'590'000}, {"memory_clock_khz", 5'001'000}, {"memory_bus_bits", 256}});
    const Card card = parse_machine(machine.dump()).cards[0];
    EXPECT_EQ(card.clock_khz, 1'590'000);
    EXPECT_NEAR(bytes_per_ns(card), 320, 1);
}

TEST(VirtualCard, WrongFieldsAreNamed) {
    using testing::HasSubstr;
    const auto with = [](const char* key, const json& value) {
        json machine = small_machine();
        machine["devices"][0][key] = value;
        return refusal_of(machine.dump());
    };
    EXPECT_THAT(with("sm_count", 0), HasSubstr("sm_count"));
    EXPECT_THAT(with("sm_count", "two"), HasSubstr("sm_count is not a whole number from 1"));
    EXPECT_THAT(with("sm_count", 1.5), HasSubstr("sm_count"));
    EXPECT_THAT(with("total_bytes", 1e300), HasSubstr("total_bytes"));
    EXPECT_THAT(with("memory_bus_bits", 0), HasSubstr("memory_bus_bits"));
    EXPECT_THAT(with("clock_khz", int64_t{1} << 33), HasSubstr("clock_khz"));
    EXPECT_THAT(with("name", 7), HasSubstr("name is not a text"));
    EXPECT_THAT(with("compute_capability", "-8.0"), HasSubstr("compute_capability '-8.0'"));
    EXPECT_THAT(with("compute_capability", "8"), HasSubstr("compute_capability '8'"));
    EXPECT_THAT(with("context_bytes", 2000), HasSubstr("context_bytes"));
    json machine = small_machine();
    machine["placement"] = "random";
    EXPECT_THAT(refusal_of(machine.dump()), HasSubstr("placement 'random'"));
    EXPECT_THAT(refusal_of("{\"devices\": []}"), HasSubstr("1 to 32"));
    EXPECT_THAT(refusal_of("no JSON"), HasSubstr("not valid JSON"));
    EXPECT_THAT(refusal_of("[]"), HasSubstr("devices is missing"));
    EXPECT_THAT(refusal_of("{\"devices\": [7]}"), HasSubstr("name is missing"));
}

}  // namespace
}  // namespace profiler::virtual_gpu
