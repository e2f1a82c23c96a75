#include "profiler/view/run/log_view.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using profiler::log_lines;
using profiler::text_since;
using Lines = std::vector<std::string>;

TEST(LogLines, AreSplitAndCleaned) {
    EXPECT_EQ(log_lines(""), Lines{});
    EXPECT_EQ(log_lines("\n\n"), Lines{});
    EXPECT_EQ(log_lines("one\n\ntwo\n"), (Lines{"one", "", "two"}));
    EXPECT_EQ(log_lines("a\tb\x01"
                        "c\r\n"),
              (Lines{"a b c"}));
    EXPECT_EQ(log_lines("\x1B[31;1mred\x1B[0m plain\x1B"), (Lines{"red plain"}));
    EXPECT_EQ(log_lines("10 %\r50 %\r100 %\ndone"), (Lines{"100 %", "done"}));
    EXPECT_EQ(log_lines("\x1B["), (Lines{""}));
}

TEST(LogLines, AreBoundedInNumberAndLength) {
    std::string text;
    for (int i = 0; i < 7000; ++i) text += std::to_string(i) + "\n";
    const Lines lines = log_lines(text);
    ASSERT_EQ(lines.size(), profiler::kMostLogLines);
    EXPECT_EQ(lines.back(), "6999");
    EXPECT_EQ(lines.front(), "2000");
    const Lines long_line = log_lines(std::string(100'000, 'x'));
    ASSERT_EQ(long_line.size(), 1U);
    EXPECT_LT(long_line[0].size(), 2100U);
}

TEST(TextSince, IsWhatCameAfter) {
    EXPECT_EQ(text_since("ab", ""), "ab");
    EXPECT_EQ(text_since("abc", "ab"), "c");
    EXPECT_EQ(text_since("ab", "ab"), "");
    const std::string seen = std::string(500, 'a') + "the end of what was seen";
    const std::string newer = seen.substr(100) + " and more";  // the log has lost its beginning
    EXPECT_EQ(text_since(newer, seen), " and more");
    EXPECT_EQ(text_since("another log", seen), "another log");
}

}  // namespace
