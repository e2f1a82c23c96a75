#include "profiler/capture/processor_share.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

namespace profiler {
namespace {

TEST(ProcessorShare, OfAProcessThatWaitsIsSmall) {
    ProcessorShare processor;
    processor.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    processor.end();
    EXPECT_LT(processor.share(), 0.5);
}

TEST(ProcessorShare, CountsOnlyBetweenBeginAndEnd) {
    ProcessorShare processor;
    processor.begin();
    for (const std::clock_t start = std::clock(); std::clock() - start < CLOCKS_PER_SEC / 10;) {
    }
    processor.end();
    const double share = processor.share();
    EXPECT_GT(share, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(processor.share(), share);
    processor.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    processor.end();
    EXPECT_LT(processor.share(), share) << "both stretches count";
}

TEST(NoteBusyMachine, IsAddedOnceAndOnlyWhereTheShareIsSmall) {
    Trace trace;
    note_busy_machine(trace, 0.95);
    EXPECT_TRUE(trace.diagnostics.empty());
    note_busy_machine(trace, 0.42);
    note_busy_machine(trace, 0.3);
    ASSERT_EQ(trace.diagnostics.size(), 1U);
    const Diagnostic note = trace.diagnostics[Id<Diagnostic>(0)];
    EXPECT_EQ(trace.text(note.code), kMachineBusy);
    EXPECT_EQ(note.severity, Severity::kWarning);
    EXPECT_NE(trace.text(note.explanation).find("42 %"), std::string_view::npos);
}

}  // namespace
}  // namespace profiler
