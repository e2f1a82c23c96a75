#include "profiler/view/search_words.h"

#include <gtest/gtest.h>

#include <string_view>

namespace profiler {
namespace {

bool finds(std::string_view text, std::string_view query) {
    return contains_all(text, search_words(query));
}

TEST(SearchWords, NumbersAreFoundWhole) {
    EXPECT_TRUE(finds("encoder.layer.1.attention", "layer.1"));
    EXPECT_FALSE(finds("encoder.layer.12.attention", "layer.1"));
    EXPECT_TRUE(finds("encoder.layer.12", "layer 12"));
    EXPECT_FALSE(finds("encoder.layer.12", "layer 1"));
    EXPECT_FALSE(finds("encoder.layer.12", "layer 2"));
    EXPECT_TRUE(finds("gpt2.layer.3", "2"));
    EXPECT_FALSE(finds("gemm_f16", "6"));
}

TEST(SearchWords, DigitsBehindALetterOfTheWordMayGoOn) {
    EXPECT_TRUE(finds("gemm_f16_128x64", "f1"));
    EXPECT_TRUE(finds("layer12", "layer1"));
}

TEST(SearchWords, APlaceThatIsCutHidesNoLaterOne) {
    EXPECT_TRUE(finds("layer.12 and layer.1", "layer.1"));
    EXPECT_EQ(find_word("12 1", "1"), 3U);
    EXPECT_EQ(find_word("1 1", "1", 1), 2U);
    EXPECT_EQ(find_word("12", "1"), std::string_view::npos);
    EXPECT_EQ(find_word("12", ""), std::string_view::npos);
}

TEST(SearchScore, ALayerIsFoundByItsWholeNumber) {
    EXPECT_GE(search_score("encoder.layer.1.output", search_words("layer.1")), 0);
    EXPECT_EQ(search_score("encoder.layer.12.output", search_words("layer.1")), -1);
}

}  // namespace
}  // namespace profiler
