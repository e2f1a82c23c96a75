/// A trace as bytes and back: every value survives, and every kind of wrong bytes is refused.
#include "profiler/trace/file/trace_bytes.h"
#include "tests/profiler/trace/random_trace.h"
#include "tests/support/trace_equality.h"

#include <gtest/gtest.h>

#include <string>

namespace profiler {
namespace {

using tests::first_difference;
using tests::RandomTrace;

TEST(TraceBytes, KeepEveryValueOfEveryTable) {
    for (unsigned seed = 0; seed < 5; ++seed) {
        const Trace trace = RandomTrace(seed).make(seed == 4 ? 3000 : 10 * seed);
        const auto back = trace_from_bytes(to_bytes(trace));
        ASSERT_TRUE(back) << back.error().message;
        EXPECT_EQ(first_difference(trace, *back), "") << "seed " << seed;
    }
}

TEST(TraceBytes, AnEmptyTraceIsATrace) {
    const auto back = trace_from_bytes(to_bytes(Trace{})).value();
    EXPECT_EQ(back.strings.size(), 0U);
    EXPECT_TRUE(back.runs.empty());
}

TEST(TraceBytes, CutAnywhereOrTooLongIsAnError) {
    const std::string bytes = to_bytes(RandomTrace(1).make(5));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(trace_from_bytes(std::string_view(bytes).substr(0, size))) << size;
    }
    EXPECT_FALSE(trace_from_bytes(bytes + "x"));
}

TEST(TraceBytes, ACountThatNoMemoryHoldsIsAnError) {
    std::string bytes = to_bytes(RandomTrace(1).make(5));
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = '\xff';  // the number of texts
    EXPECT_FALSE(trace_from_bytes(bytes));
    std::string empty = to_bytes(Trace{});
    for (std::size_t i = 8; i < 16; ++i) empty[i] = '\xff';  // rows of the first table
    EXPECT_FALSE(trace_from_bytes(empty));
}

TEST(TraceBytes, ATextThatComesTwiceIsAnError) {
    Trace trace;
    trace.strings.intern("a");
    trace.strings.intern("b");
    std::string bytes = to_bytes(trace);
    bytes[8 + 8 + 1 + 8] = 'a';  // after the count, the first text and the second's length
    EXPECT_FALSE(trace_from_bytes(bytes));
}

}  // namespace
}  // namespace profiler
