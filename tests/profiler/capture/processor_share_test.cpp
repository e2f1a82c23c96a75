#include "profiler/capture/processor_share.h"

#include <gtest/gtest.h>

#include <chrono>
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
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(processor.share(), 1);
}

TEST(NoteBusyMachine, IsAddedOnceAndOnlyWhereTheShareIsSmall) {
    Trace trace;
    note_busy_machine(trace, 0.95);
    EXPECT_TRUE(trace.health.empty());
    note_busy_machine(trace, 0.42);
    note_busy_machine(trace, 0.3);
    ASSERT_EQ(trace.health.size(), 1U);
    const HealthNote note = trace.health[Id<HealthNote>(0)];
    EXPECT_EQ(trace.text(note.code), kMachineBusy);
    EXPECT_EQ(note.severity, Severity::kWarning);
    EXPECT_NE(trace.text(note.explanation).find("42 %"), std::string_view::npos);
}

}  // namespace
}  // namespace profiler
