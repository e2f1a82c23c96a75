#include "profiler/trace/printable.h"

#include <gtest/gtest.h>

namespace {

using profiler::csv_cell;
using profiler::printable;
using profiler::printable_json;
using profiler::spreadsheet_cell;

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

TEST(Printable, EscapesWhatNobodySees) {
    EXPECT_EQ(printable("a\u200bb\ufeff\u00ad"), "a\\u200bb\\ufeff\\u00ad");
    EXPECT_EQ(printable("a\U000e0041"), "a\\U000e0041");
    EXPECT_EQ(printable("a\u200db"), "a\u200db") << "joins letters of some scripts";
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

TEST(SpreadsheetCell, HoldsNoFormula) {
    EXPECT_EQ(spreadsheet_cell("=1+1"), "'=1+1");
    EXPECT_EQ(spreadsheet_cell("@a\x1b[0m\n"), "'@a\\x1b[0m\\x0a");
    EXPECT_EQ(spreadsheet_cell("-x"), "'-x");
    EXPECT_EQ(spreadsheet_cell("a=b"), "a=b");
}

TEST(SpreadsheetCell, LeavesNumbersAsTheyAre) {
    for (const char* number : {"-1", "+1.5e-3", "-inf", "7"}) {
        EXPECT_EQ(spreadsheet_cell(number), number);
    }
}

TEST(CsvCell, IsQuotedWhereItHasToBe) {
    EXPECT_EQ(csv_cell("a b"), "a b");
    EXPECT_EQ(csv_cell("a,\"b\""), "\"a,\"\"b\"\"\"");
    EXPECT_EQ(csv_cell("a\nb"), "a\\x0ab") << "a cell is one line";
}

TEST(PrintableJson, EscapesWhatActsOnATerminalAndMeansTheSame) {
    EXPECT_EQ(printable_json("{\n  \"a\": \"\x7f\xc2\x9b\xe2\x80\xae\xc3\xa4\"\n}\n"),
              "{\n  \"a\": \"\\u007f\\u009b\\u202e\xc3\xa4\"\n}\n");
    EXPECT_EQ(printable_json("\"\U000e0041\""), "\"\\udb40\\udc41\"");
}

}  // namespace
