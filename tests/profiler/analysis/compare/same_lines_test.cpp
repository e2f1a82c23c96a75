#include "profiler/analysis/compare/same_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace {

using namespace profiler;
using testing::ElementsAre;

std::vector<BreakdownRow> lines(const std::vector<std::pair<std::string, std::string>>& texts) {
    std::vector<BreakdownRow> rows;
    for (const auto& [name, code] : texts) {
        BreakdownRow& row = rows.emplace_back();
        row.name = name;
        row.code = code;
    }
    return rows;
}

const auto kProgram = lines({{"fa/lm.py:11 forward", "h = up(x)"},
                             {"fa/lm.py:12 forward", "h = gelu(h)"},
                             {"fa/lm.py:13 forward", "return down(h)"},
                             {"fa/lm.py:33 <module>", "loss.backward()"}});

TEST(SameLines, MoveByOneWithTheirText) {
    const auto moved = lines({{"fc/lm.py:12 forward", "h = up(x)"},
                              {"fc/lm.py:13 forward", "h = gelu(h)"},
                              {"fc/lm.py:14 forward", "return down(h)"},
                              {"fc/lm.py:34 <module>", "loss.backward()"}});
    EXPECT_THAT(find_same_lines(kProgram, moved), ElementsAre(0, 1, 2, 3));
}

TEST(SameLines, InOneFileTellMoreByTheirTextThanByTheirNumbers) {
    const auto edited = lines({{"fa/lm.py:13 forward", "h = up(x)"},
                               {"fa/lm.py:12 forward", "x = norm(x)"},
                               {"fa/lm.py:14 forward", "h = relu(h)"},
                               {"fa/lm.py:15 forward", "return down(h)"}});
    const auto same = find_same_lines(kProgram, edited);
    EXPECT_EQ(same[0], 0U);
    EXPECT_EQ(same[1], 1U) << "the number is all that they share";
    EXPECT_EQ(same[2], kNoLine);
    EXPECT_EQ(same[3], 2U);
}

TEST(SameLines, OfAnEditedLineAreTheOnlyOnesLeftOfTheirFunction) {
    const auto edited = lines({{"fb/lm.py:13 forward", "h = up(x)"},
                               {"fb/lm.py:14 forward", "h = relu(h)"},
                               {"fb/lm.py:15 forward", "return down(h)"},
                               {"fb/lm.py:40 <module>", "loss.backward()"}});
    EXPECT_THAT(find_same_lines(kProgram, edited), ElementsAre(0, 1, 2, 3));
}

TEST(SameLines, WithOneTextAreThoseOfTheSameOrder) {
    const auto before = lines({{"a.py:9 f", "x = relu(x)"}, {"a.py:5 f", "x = relu(x)"}});
    const auto after = lines({{"a.py:6 f", "x = relu(x)"}, {"a.py:10 f", "x = relu(x)"}});
    EXPECT_THAT(find_same_lines(before, after), ElementsAre(1, 0));
    const auto three = lines({{"a.py:5 f", "relu"}, {"a.py:7 f", "relu"}, {"a.py:9 f", "relu"}});
    const auto by_two = lines({{"a.py:7 f", "relu"}, {"a.py:9 f", "relu"}, {"a.py:11 f", "relu"}});
    EXPECT_THAT(find_same_lines(three, by_two), ElementsAre(0, 1, 2)) << "numbers coincide";
    const auto fewer = lines({{"a.py:6 f", "x = relu(x)"}});
    EXPECT_THAT(find_same_lines(before, fewer), ElementsAre(kNoLine));
}

TEST(SameLines, WithoutTextAreThoseOfTheSameNumber) {
    const auto before = lines({{"a/m.py:5 f", ""}, {"a/m.py:6 f", ""}, {"a/m.py:7 g", ""}});
    const auto after = lines({{"b/m.py:6 f", ""}, {"b/m.py:5 f", ""}, {"b/m.py:8 g", ""}});
    EXPECT_THAT(find_same_lines(before, after), ElementsAre(1, 0, 2));
}

}  // namespace
