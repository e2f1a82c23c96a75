#include "app/commands/console/terminal.h"

#include <gtest/gtest.h>

namespace {

using app::printable;

TEST(Printable, LeavesTextOfEveryScriptAsItIs) {
    for (const char* text : {"", "aten::bmm", "µs, Σ, 模型, 🙂", "–", "a\\b"}) {
        EXPECT_EQ(printable(text), text);
    }
}

TEST(Printable, EscapesWhatActsOnATerminal) {
    EXPECT_EQ(printable("\x1b[31m"), "\\x1b[31m");
    EXPECT_EQ(printable("a\r\n\t\a\x7f"), "a\\x0d\\x0a\\x09\\x07\\x7f");
    EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
    EXPECT_EQ(printable("\xc2\x9b"
                        "31m"),
              "\\u009b31m")
        << "a control character of eight bits";
    EXPECT_EQ(printable("\xe2\x80\xae"
                        "gpj.exe"),
              "\\u202egpj.exe");
    EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c"), "\\u2066\\u200f\\u061c");
}

TEST(Printable, EscapesBytesThatAreNoText) {
    EXPECT_EQ(printable("a\xff\x9b"
                        "b"),
              "a\\xff\\x9bb");
    EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80") << "cut inside a character";
}

TEST(Printable, ChangesNothingTheSecondTime) {
    const std::string once = printable("\x1b[31m\xe2\x80\xae");
    EXPECT_EQ(printable(once), once);
}

}  // namespace
