#include "profiler/trace/text.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

TEST(ToLower, ChangesAsciiLettersOnly) {
    EXPECT_EQ(to_lower("GiB, ÄÖ_Z9"), "gib, ÄÖ_z9");
    EXPECT_EQ(to_lower('['), '[');
    EXPECT_EQ(to_lower('@'), '@');
}

TEST(SplitLines, KeepsEmptyLinesAndNeedsNoEndOfTheLast) {
    using Lines = std::vector<std::string_view>;
    EXPECT_EQ(split_lines(""), Lines());
    EXPECT_EQ(split_lines("one"), Lines{"one"});
    EXPECT_EQ(split_lines("one\n\nthree\n"), (Lines{"one", "", "three"}));
}

TEST(IsUtf8, AcceptsWellFormedTextOfEveryLength) {
    for (const char* text : {"", "plain", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
                             "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
                             "\xf4\x8f\xbf\xbf", "µs, Σ, 模型, 🙂"}) {
        EXPECT_TRUE(is_utf8(text)) << text;
    }
    EXPECT_TRUE(is_utf8(std::string_view("a\0b", 3)));
}

/// Table 3-7 of the Unicode standard, one case per line that it excludes.
TEST(IsUtf8, RefusesWhatIsMalformed) {
    for (const char* text :
         {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2x", "\xe0\x9f\xbf", "\xe0\xa0",
          "\xe1\x80x", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80",
          "\xf1\x80\x80x", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xff"}) {
        EXPECT_FALSE(is_utf8(text)) << text;
    }
}

}  // namespace
}  // namespace profiler
