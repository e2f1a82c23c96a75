#include "profiler/formats/pickle.h"
#include "tests/profiler/formats/snapshot_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profiler {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

/// Reads one value of protocol 2.
class OneValue {
public:
    explicit OneValue(const std::string& code) : bytes_("\x80\x02"s + code + ".") {
        auto read = Pickle::read(bytes_);
        EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
        if (read) pickle_ = std::move(*read);
    }
    const Pickle* operator->() const { return &pickle_; }
    std::optional<int64_t> integer() const { return pickle_.integer(pickle_.root()); }

private:
    std::string bytes_;
    Pickle pickle_;
};

std::string problem(const std::string& bytes) {
    const auto read = Pickle::read(bytes);
    return read ? "no problem" : read.error().message;
}

TEST(Pickle, ReadsNumbersOfEveryWidth) {
    EXPECT_EQ(OneValue("K\xff").integer(), 255);
    EXPECT_EQ(OneValue("M\x01\x02").integer(), 513);
    EXPECT_EQ(OneValue("J\xff\xff\xff\xff").integer(), -1);
    EXPECT_EQ(OneValue("\x8a\x00"s).integer(), 0);
    EXPECT_EQ(OneValue("\x8a\x01\x80"s).integer(), -128);
    EXPECT_EQ(OneValue("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00"s).integer(), INT64_MAX);
    EXPECT_EQ(OneValue("\x8b\x02\x00\x00\x00\x00\x01"s).integer(), 256);
    EXPECT_EQ(OneValue("\x88").integer(), 1);
    EXPECT_EQ(OneValue("N").integer(), std::nullopt);
    const OneValue real("G\x3f\xe8\x00\x00\x00\x00\x00\x00"s);
    EXPECT_EQ(real->real(real->root()), 0.75);
}

TEST(Pickle, ReadsTexts) {
    for (const std::string& code :
         {"X\x02\x00\x00\x00"s + "ab", "\x8c\x02"s + "ab",
          "\x8d\x02\x00\x00\x00\x00\x00\x00\x00"s + "ab", "C\x02"s + "ab"}) {
        const OneValue value(code);
        EXPECT_EQ(value->text(value->root()), "ab");
    }
}

TEST(Pickle, ReadsContainersAndTheirMemo) {
    // {"a": [1, 2], "b": (same list,)}
    const OneValue value("}(X\x01\x00\x00\x00"s + "a](K\x01K\x02" + "eq\x00"s +
                         "X\x01\x00\x00\x00"s + "bh\x00\x85u"s);
    const auto root = value->root();
    EXPECT_EQ(value->kind(root), PickleKind::kDict);
    EXPECT_EQ(value->size(root), 2u);
    const auto list = value->find(root, "a");
    const auto tuple = value->find(root, "b");
    ASSERT_TRUE(list && tuple);
    EXPECT_EQ(value->size(*list), 2u);
    EXPECT_EQ(value->integer(value->element(*list, 1)), 2);
    EXPECT_EQ(value->element(*tuple, 0), *list) << "the same value, not a copy";
    EXPECT_FALSE(value->find(root, "c"));
}

/// CPython appends in batches of 1000.
TEST(Pickle, GrowsListsInBatches) {
    std::string code = "]";
    for (int batch = 0; batch < 50; ++batch) {
        code += "(";
        for (int i = 0; i < 1'000; ++i)
            code += "M"s + static_cast<char>(i & 255) + static_cast<char>(i >> 8);
        code += "e";
    }
    const OneValue value(code);
    ASSERT_EQ(value->size(value->root()), 50'000u);
    for (std::size_t i = 0; i < 50'000; i += 777) {
        EXPECT_EQ(value->integer(value->element(value->root(), i)),
                  static_cast<int64_t>(i % 1'000));
    }
}

TEST(Pickle, NamesTheInstructionsThatItRefuses) {
    EXPECT_THAT(problem("\x80\x02"
                        "cos\nsystem\n."),
                testing::AllOf(HasSubstr("byte 2"), HasSubstr("GLOBAL builds Python objects")));
    EXPECT_THAT(problem("\x80\x04\x93."), HasSubstr("STACK_GLOBAL"));
    EXPECT_THAT(problem("\x80\x02NN"
                        "R."),
                HasSubstr("byte 4: the instruction REDUCE"));
    EXPECT_THAT(problem("\x80\x02\xfe."), HasSubstr("0xfe is not an instruction"));
    EXPECT_THAT(problem("\x80\x06N."), HasSubstr("protocol 6"));
    EXPECT_THAT(problem("\x80\x01N."), HasSubstr("protocol 1"));
}

TEST(Pickle, SaysWhereAFileEndsTooEarly) {
    EXPECT_THAT(problem(""), HasSubstr("byte 0: the file is truncated"));
    EXPECT_THAT(problem("\x80\x02N"), HasSubstr("byte 3: the file is truncated"));
    EXPECT_THAT(problem("\x80\x02X\xff\xff\xff\x7f"
                        "ab"),
                HasSubstr("byte 2: the file is truncated"));
    EXPECT_THAT(problem("\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), HasSubstr("truncated"));
}

TEST(Pickle, RefusesWhatTheStackDoesNotHold) {
    for (const char* code : {"a.", "Na.", "NNa.", "s.", "e.", "(e.", "Ne.", "t.", "\x85.", "0.",
                             "1.", "q", "(.", "NN.", ".", "](N.", "}(Nu.", "(Nd."}) {
        EXPECT_NE(problem("\x80\x02"s + code), "no problem") << code;
    }
    EXPECT_THAT(problem("\x80\x02h\x00."s), HasSubstr("used before it is made"));
    EXPECT_THAT(problem("\x80\x02Nr\xff\xff\xff\x7f."), HasSubstr("memo key is too large"));
}

TEST(Pickle, RefusesNumbersBeyond64Bits) {
    EXPECT_THAT(problem("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s),
                HasSubstr("64 bits"));
    EXPECT_THAT(problem("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00."s),
                HasSubstr("63 bits"));
}

TEST(Pickle, RefusesNestingBombs) {
    EXPECT_THAT(problem("\x80\x02"s + std::string(5'000, '(')), HasSubstr("nested too deep"));
}

/// A value may contain itself. The reader must not follow it forever.
TEST(Pickle, ReadsCycles) {
    const OneValue value("]q\x00h\x00"s + "a");
    EXPECT_EQ(value->element(value->root(), 0), value->root());
}

}  // namespace
}  // namespace profiler
