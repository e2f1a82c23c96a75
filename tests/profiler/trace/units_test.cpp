#include "profiler/trace/units.h"

#include <gtest/gtest.h>

#include <clocale>
#include <limits>
#include <locale>

namespace profiler {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(FormatBytes, ShowsThreeDigitsInBinaryUnits) {
    EXPECT_EQ(format_bytes(0), "0 B");
    EXPECT_EQ(format_bytes(512), "512 B");
    EXPECT_EQ(format_bytes(1023), "1023 B");
    EXPECT_EQ(format_bytes(1024), "1.00 KiB");
    EXPECT_EQ(format_bytes(14 << 20), "14.0 MiB");
    EXPECT_EQ(format_bytes(int64_t{49} << 29), "24.5 GiB");
    EXPECT_EQ(format_bytes(123 << 20), "123 MiB");
    EXPECT_EQ(format_bytes(1000 << 20), "1000 MiB");
}

TEST(FormatBytes, MovesToTheNextUnitWhenRoundingReachesIt) {
    EXPECT_EQ(format_bytes((1 << 20) - 1), "1.00 MiB");
    EXPECT_EQ(format_bytes((1 << 30) - 1), "1.00 GiB");
    EXPECT_EQ(format_bytes(10'234), "9.99 KiB");
    EXPECT_EQ(format_bytes(10'239), "10.0 KiB");
}

TEST(FormatBytes, CoversTheWholeRange) {
    EXPECT_EQ(format_bytes(-(3 << 29)), "-1.50 GiB");
    EXPECT_EQ(format_bytes(kMax), "8.00 EiB");
    EXPECT_EQ(format_bytes(kMin), "-8.00 EiB");
}

TEST(FormatExactBytes, GroupsDigits) {
    EXPECT_EQ(format_exact_bytes(14'769'152), "14,769,152 B");
    EXPECT_EQ(format_exact_bytes(7), "7 B");
}

TEST(FormatAmount, ChoosesThePrefixBySize) {
    EXPECT_EQ(format_amount(0), "0");
    EXPECT_EQ(format_amount(512), "512");
    EXPECT_EQ(format_amount(512, "words"), "512 words");
    EXPECT_EQ(format_amount(0.5, "flop"), "0.50 flop");
    EXPECT_EQ(format_amount(4'194'304), "4.19 M");
    EXPECT_EQ(format_amount(25.77e9, "flop"), "25.8 Gflop");
    EXPECT_EQ(format_amount(312e12, "flop/s"), "312 Tflop/s");
    EXPECT_EQ(format_amount(335.69e9, "flop", 5), "335.69 Gflop");
    EXPECT_EQ(format_amount(-2039e9, "B/s"), "-2.04 TB/s");
}

TEST(FormatAmount, MovesToTheNextPrefixWhenRoundingReachesIt) {
    EXPECT_EQ(format_amount(999), "999");
    EXPECT_EQ(format_amount(999.6), "1.00 k");
    EXPECT_EQ(format_amount(9996), "10.0 k");
    EXPECT_EQ(format_amount(999'600), "1.00 M");
    EXPECT_EQ(format_amount(999.99e9, "flop", 5), "999.99 Gflop");
    EXPECT_EQ(format_amount(999.999e9, "flop", 5), "1.0000 Tflop");
}

TEST(FormatCount, GroupsDigitsOfEveryLength) {
    EXPECT_EQ(format_count(0), "0");
    EXPECT_EQ(format_count(999), "999");
    EXPECT_EQ(format_count(1000), "1,000");
    EXPECT_EQ(format_count(1'004'229), "1,004,229");
    EXPECT_EQ(format_count(-123), "-123");
    EXPECT_EQ(format_count(-123'456), "-123,456");
    EXPECT_EQ(format_count(kMin), "-9,223,372,036,854,775,808");
}

TEST(FormatDuration, ChoosesTheUnit) {
    EXPECT_EQ(format_duration(0), "0 ns");
    EXPECT_EQ(format_duration(850), "850 ns");
    EXPECT_EQ(format_duration(1'500), "1.50 µs");
    EXPECT_EQ(format_duration(2'030'000), "2.03 ms");
    EXPECT_EQ(format_duration(7'620'000'000), "7.62 s");
    EXPECT_EQ(format_duration(999'999'999), "1.00 s");
    EXPECT_EQ(format_duration(3'723'000'000'000), "3723 s");
}

TEST(FormatPercent, ShowsOneDecimalAndTheSignOnRequest) {
    EXPECT_EQ(format_percent(0.209), "20.9 %");
    EXPECT_EQ(format_percent(0.209, true), "+20.9 %");
    EXPECT_EQ(format_percent(-0.05, true), "-5.0 %");
    EXPECT_EQ(format_percent(-0.0001, true), "0.0 %");
    EXPECT_EQ(format_percent(std::numeric_limits<double>::quiet_NaN()), "n/a");
}

TEST(ParseBytes, ReadsBinaryAndDecimalUnitsInAnyCase) {
    EXPECT_EQ(parse_bytes("16GiB"), int64_t{16} << 30);
    EXPECT_EQ(parse_bytes("512 MiB"), 512 << 20);
    EXPECT_EQ(parse_bytes(" 1.5gib "), int64_t{3} << 29);
    EXPECT_EQ(parse_bytes("4096"), 4096);
    EXPECT_EQ(parse_bytes("11GB"), 11'000'000'000);
    EXPECT_EQ(parse_bytes("0"), 0);
    EXPECT_EQ(parse_bytes("9223372036854775807"), kMax);
}

TEST(ParseBytes, RefusesWithTheReason) {
    for (const char* text : {"", " ", "-1GiB", "+1", "GiB", "16 apples", "1e3", "0x10", "inf",
                             "nan", ".5GiB", "1.2.3", "16G"}) {
        const auto size = parse_bytes(text);
        ASSERT_FALSE(size) << text << " = " << *size;
        EXPECT_NE(size.error().message.find("is not a size"), std::string::npos)
            << size.error().message;
    }
    for (const char* text : {"9223372036854775808", "8388608TiB", "99999999999999999999999TiB"}) {
        const auto size = parse_bytes(text);
        ASSERT_FALSE(size) << text << " = " << *size;
        EXPECT_NE(size.error().message.find("too large"), std::string::npos)
            << size.error().message;
    }
}

/// Decimal comma, dot as digit grouping: what a German locale does.
struct CommaLocale : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

TEST(Units, DoNotDependOnTheLocale) {
    const std::locale before =
        std::locale::global(std::locale(std::locale::classic(), new CommaLocale));
    EXPECT_EQ(format_bytes(int64_t{49} << 29), "24.5 GiB");
    EXPECT_EQ(format_count(1'004'229), "1,004,229");
    EXPECT_EQ(format_percent(0.209), "20.9 %");
    EXPECT_EQ(parse_bytes("1.5GiB"), int64_t{3} << 29);
    std::locale::global(before);
}

}  // namespace
}  // namespace profiler
