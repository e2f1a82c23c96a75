#include "models/config/routing.h"

#include <gtest/gtest.h>

#include <string>

namespace models {
namespace {

TEST(Routing, TextsGoBothWays) {
    for (const std::string text : {"balanced", "zeros", "zipf:1.2", "worst:1.5", "seed:7"}) {
        const auto routing = parse_routing(text);
        ASSERT_TRUE(routing) << text;
        EXPECT_EQ(to_text(*routing), text);
    }
    EXPECT_EQ(parse_routing("worst:1")->strength, 1.0);
    EXPECT_EQ(parse_routing("seed:18446744073709551615")->seed, UINT64_MAX);
}

TEST(Routing, OthersAreRefusedInOneSentence) {
    for (const char* const text :
         {"", "fair", "balanced:1", "zeros:", "zipf", "zipf:", "zipf:0", "zipf:-1", "zipf:nan",
          "zipf:inf", "zipf:1.2x", "worst:0.9", "worst:1e999", "seed:-1", "seed:1.5",
          "seed:18446744073709551616", "worst:1.5 "}) {
        const auto routing = parse_routing(text);
        ASSERT_FALSE(routing) << text;
        EXPECT_NE(routing.error().message.find("is no routing"), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace models
