#include "profiler/formats/parts/byte_stream.h"
#include "profiler/formats/snapshot/plain_values.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

namespace profiler {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

/// Writes values as Python does. A container's payload is the number of its text.
class Repr : public ValueFold {
public:
    PlainValue text(std::string_view text) override {
        texts_.push_back(fmt::format("'{}'", text));
        return {.kind = ValueKind::kText, .payload = std::ssize(texts_) - 1};
    }
    models::Result<PlainValue> extend(PlainValue container,
                                      std::span<const PlainValue> items) override {
        std::string inside = container.tag == 0 ? "" : inside_of(container);
        const bool is_dict = container.kind == ValueKind::kDict;
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (!inside.empty()) inside += is_dict && i % 2 == 1 ? ": " : ", ";
            inside += of(items[i]);
        }
        texts_.push_back(is_dict ? "{" + inside + "}" : "[" + inside + "]");
        return PlainValue{.kind = container.kind, .tag = 1, .payload = std::ssize(texts_) - 1};
    }
    std::size_t memory_bytes() const override { return texts_.size() * sizeof(std::string); }
    void advance(double) override {}

    std::string of(const PlainValue& value) const {
        switch (value.kind) {
            case ValueKind::kNone:
                return "None";
            case ValueKind::kInteger:
                return std::to_string(value.payload);
            case ValueKind::kReal:
                return fmt::format("{:.3}", std::bit_cast<double>(value.payload));
            case ValueKind::kText:
                return texts_[static_cast<std::size_t>(value.payload)];
            default:
                if (value.tag == 0) return value.kind == ValueKind::kDict ? "{}" : "[]";
                return texts_[static_cast<std::size_t>(value.payload)];
        }
    }

private:
    std::string inside_of(const PlainValue& container) const {
        const std::string whole = of(container);
        return whole.substr(1, whole.size() - 2);
    }
    std::vector<std::string> texts_;
};

std::string read(const std::string& bytes) {
    Repr fold;
    ByteWindow window(bytes);
    const auto value = fold_pickle(window, fold);
    return value ? fold.of(*value) : value.error().message;
}

/// Reads one value of protocol 2.
std::string value_of(const std::string& code) { return read("\x80\x02"s + code + "."); }

TEST(Pickle, ReadsNumbersOfEveryWidth) {
    EXPECT_EQ(value_of("K\xff"), "255");
    EXPECT_EQ(value_of("M\x01\x02"), "513");
    EXPECT_EQ(value_of("J\xff\xff\xff\xff"), "-1");
    EXPECT_EQ(value_of("\x8a\x00"s), "0");
    EXPECT_EQ(value_of("\x8a\x01\x80"s), "-128");
    EXPECT_EQ(value_of("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00"s), std::to_string(INT64_MAX));
    EXPECT_EQ(value_of("\x8b\x02\x00\x00\x00\x00\x01"s), "256");
    EXPECT_EQ(value_of("\x88"), "1");
    EXPECT_EQ(value_of("N"), "None");
    EXPECT_EQ(value_of("G\x3f\xe8\x00\x00\x00\x00\x00\x00"s), "0.75");
}

TEST(Pickle, ReadsNumbersBeyond63BitsAsReals) {
    EXPECT_EQ(value_of("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"s), "1.84e+19");
    EXPECT_EQ(value_of("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00"s), "9.22e+18");
    EXPECT_EQ(value_of("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff"s), "-1.84e+19");
    EXPECT_THAT(value_of("\x8a\xff" + std::string(255, '\x01')), HasSubstr("more than 1023 bits"));
}

TEST(Pickle, ReadsTexts) {
    for (const std::string& code :
         {"X\x02\x00\x00\x00"s + "ab", "\x8c\x02"s + "ab",
          "\x8d\x02\x00\x00\x00\x00\x00\x00\x00"s + "ab", "C\x02"s + "ab"}) {
        EXPECT_EQ(value_of(code), "'ab'");
    }
}

TEST(Pickle, ReadsContainersAndTheirMemo) {
    // {"a": [1, 2], "b": (same list,)}
    EXPECT_EQ(value_of("}(X\x01\x00\x00\x00"s + "a](K\x01K\x02" + "eq\x00"s + "X\x01\x00\x00\x00"s +
                       "bh\x00\x85u"s),
              "{'a': [1, 2], 'b': [[1, 2]]}");
    EXPECT_EQ(value_of("]q\x00(K\x01"s + "eh\x00\x86"s), "[[1], [1]]")
        << "memoized while it was empty";
}

/// CPython appends in batches of 1000; a file is read in steps.
TEST(Pickle, GrowsListsInBatchesAndAcrossSteps) {
    std::string code = "]";
    std::string expected;
    for (int batch = 0; batch < 3; ++batch) {
        code += "(";
        for (int i = 0; i < 1'000; ++i) {
            code += "M"s + static_cast<char>(i & 255) + static_cast<char>(i >> 8);
            expected += (expected.empty() ? "" : ", ") + std::to_string(i);
        }
        code += "e";
    }
    EXPECT_EQ(value_of(code), "[" + expected + "]");
    const std::string text(ByteWindow::kStepBytes - 10, 'x');
    const std::string size{'X', static_cast<char>(text.size() & 255),
                           static_cast<char>(text.size() >> 8 & 255),
                           static_cast<char>(text.size() >> 16), '\0'};
    EXPECT_EQ(value_of(size + text + "K\x07\x86"), "['" + text + "', 7]");
}

/// The reader must not follow it forever.
TEST(Pickle, ReadsValuesThatContainThemselves) {
    EXPECT_EQ(value_of("]q\x00h\x00"s + "a"), "[[]]");
}

TEST(Pickle, LeavesOutTextsThatAreNoNames) {
    const std::string size{'X', '\0', '\0', '\x20', '\0'};  // 2 MiB
    EXPECT_EQ(value_of(size + std::string(2 << 20, 'x') + "K\x07\x86"), "[None, 7]");
}

TEST(Pickle, StopsAtThreeTimesItsSize) {
    const std::string bytes = "\x80\x02("s + std::string(20 << 20, 'N');
    EXPECT_THAT(read(bytes), HasSubstr("more than three times its size"));
}

TEST(Pickle, NamesTheInstructionsThatItRefuses) {
    EXPECT_THAT(read("\x80\x02"
                     "cos\nsystem\n."),
                testing::AllOf(HasSubstr("byte 2"), HasSubstr("GLOBAL builds Python objects")));
    EXPECT_THAT(read("\x80\x04\x93."), HasSubstr("STACK_GLOBAL"));
    EXPECT_THAT(read("\x80\x02NN"
                     "R."),
                HasSubstr("byte 4: the instruction REDUCE"));
    EXPECT_THAT(read("\x80\x02\xfe."), HasSubstr("0xfe is not an instruction"));
    EXPECT_THAT(read("\x80\x06N."), HasSubstr("protocol 6"));
    EXPECT_THAT(read("\x80\x01N."), HasSubstr("protocol 1"));
}

TEST(Pickle, SaysWhereAFileEndsTooEarly) {
    EXPECT_THAT(read(""), HasSubstr("byte 0: the file is truncated"));
    EXPECT_THAT(read("\x80\x02N"), HasSubstr("byte 3: the file is truncated"));
    EXPECT_THAT(read("\x80\x02X\xff\xff\xff\x7f"
                     "ab"),
                HasSubstr("byte 2: the file is truncated"));
    EXPECT_THAT(read("\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), HasSubstr("truncated"));
}

TEST(Pickle, RefusesWhatTheStackDoesNotHold) {
    for (const char* code : {"a.", "Na.", "NNa.", "s.", "e.", "(e.", "Ne.", "t.", "\x85.", "0.",
                             "1.", "q", "(.", "NN.", ".", "](N.", "}(Nu.", "(Nd."}) {
        EXPECT_NE(read("\x80\x02"s + code), "None") << code;
    }
    EXPECT_THAT(read("\x80\x02h\x00."s), HasSubstr("used before it is made"));
    EXPECT_THAT(read("\x80\x02Nr\xff\xff\xff\x7f."), HasSubstr("memo key is too large"));
}

TEST(Pickle, RefusesNestingBombs) {
    EXPECT_THAT(read("\x80\x02"s + std::string(5'000, '(')), HasSubstr("nested too deep"));
}

}  // namespace
}  // namespace profiler
