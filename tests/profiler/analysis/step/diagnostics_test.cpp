#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/step_report.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

namespace {

using namespace tests;

std::vector<std::string> codes(const Trace& trace) {
    std::vector<std::string> codes;
    for (const auto& item : report_diagnostics(trace, report_step(trace)))
        codes.push_back(item.code);
    return codes;
}

TEST(ReportDiagnostics, IsSilentAboutAWholeCapture) {
    TraceBuilder b;
    b.begin_step();
    b.free(b.allocate({.bytes = 8, .op = b.op("aten::add")}));
    EXPECT_TRUE(codes(b.finish()).empty());
}

TEST(ReportDiagnostics, PutsErrorsFirst) {
    TraceBuilder b;
    b.begin_step();
    b.allocate({.bytes = 8, .category = Category::kUnknown});
    b.free(b.allocate({.bytes = 8, .op = b.op("aten::add")}));
    b.trace().allocations.set<&Allocation::free_requested_event>(Id<Allocation>(1), 0);
    b.end_step();
    b.trace().diagnostics.append({.code = b.text("dropped_records"),
                                  .severity = Severity::kWarning,
                                  .count = 3,
                                  .explanation = b.text("Three records were lost.")});
    b.trace().runs.set<&Run::state>(Id<profiler::Run>(0), RunState::kIncomplete);
    const Trace trace = b.finish();
    EXPECT_EQ(codes(trace), (std::vector<std::string>{"freed_before_allocated", "dropped_records",
                                                      "incomplete_capture", "unknown_role_at_peak",
                                                      "allocations_without_op"}));
    for (const auto& item : report_diagnostics(trace, report_step(trace)))
        EXPECT_EQ(item.explanation.back(), '.');
}

TEST(ReportDiagnostics, SaysWhenThereAreNoSteps) {
    EXPECT_EQ(codes(TraceBuilder().finish()), (std::vector<std::string>{"no_steps"}));
}

TEST(Diagnostics, CountsInTheUnitOfTheItem) {
    EXPECT_EQ(count_text({.count = 1204}), "1,204 times");
    EXPECT_EQ(count_text({.count = 1}), "once");
    EXPECT_EQ(count_text({.count = 13'631'488, .unit = DiagnosticUnit::kBytes}), "13,631,488 B");
    EXPECT_EQ(count_text({.count = 2, .unit = DiagnosticUnit::kSteps}), "2 steps");
    EXPECT_EQ(count_text({.count = 7, .unit = DiagnosticUnit::kEvents}), "7 events");
    EXPECT_EQ(count_text({.count = 0}), "");
}

}  // namespace
