/// One trace file per format version, stored with a description of its content.
/// To write the file of the current version again (tests/golden/README.md):
///     TEMPOSCOPE_REGENERATE_GOLDEN=1 build/bin/tests/trace_test --gtest_filter='*GoldenTrace.*'
#include "profiler/trace/file/trace_file.h"
#include "tests/support/synthetic_trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace profiler {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(TEMPOSCOPE_SOURCE_DIR) / "tests/golden";

template <typename T>
double as_number(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
        return static_cast<double>(value);
    } else {
        return value.value;
    }
}

/// One line per column that a file of this version has: table, column, rows, sum of the values, sum
/// weighted by row number.
std::string summarize(const Trace& trace, int version) {
    std::string text = fmt::format("string {}\n", trace.strings.size());
    Trace::for_each_table(trace, [&]<typename Row>(std::string_view name, const Table<Row>& table) {
        if (table_since<Row>() > version) return;
        table.for_each_column([&](const auto& column, const auto& values) {
            if (column.since > version) return;
            double sum = 0;
            double weighted = 0;
            for (std::size_t row = 0; row < values.size(); ++row) {
                sum += as_number(values[row]);
                weighted += as_number(values[row]) * static_cast<double>(row % 97);
            }
            text +=
                fmt::format("{} {} {} {} {}\n", name, column.name, values.size(), sum, weighted);
        });
    });
    return text;
}

/// A line with its text, around it one without: each allocation has one of the two stacks.
void add_stacks(Trace& trace) {
    const auto outer = trace.frames.append({.function = trace.strings.intern("train"),
                                            .file = trace.strings.intern("train.py"),
                                            .line = 7});
    const auto inner = trace.frames.append({.function = trace.strings.intern("forward"),
                                            .file = trace.strings.intern("model.py"),
                                            .line = 12,
                                            .code = trace.strings.intern("y = self.dense(x)")});
    const auto around = trace.stacks.append({.frame = outer});
    const auto whole = trace.stacks.append({.parent = around, .frame = inner});
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        trace.allocations.set<&Allocation::stack>(Id<Allocation>(i), i % 3 == 0 ? around : whole);
    }
}

/// One collective with a kernel, one without.
void add_collectives(Trace& trace) {
    const auto group = trace.communicators.append({.name = trace.strings.intern("0"),
                                                   .description = trace.strings.intern("default"),
                                                   .num_ranks = 2,
                                                   .ranks = trace.strings.intern("[0, 1]")});
    const auto kernel = trace.kernels.append(
        {.name = trace.strings.intern("ncclDevKernel_Broadcast_RING_LL"), .op = Id<Op>(7)});
    trace.collectives.append({.op = Id<Op>(7),
                              .kernel = kernel,
                              .communicator = group,
                              .kind = CollectiveKind::kBroadcast,
                              .dtype = DType::kBFloat16,
                              .in_bytes = 4096,
                              .out_bytes = 4096,
                              .start_ns = 70,
                              .end_ns = 90});
    trace.collectives.append({.op = Id<Op>(9),
                              .communicator = group,
                              .kind = CollectiveKind::kSend,
                              .dtype = DType::kFloat32,
                              .in_bytes = 1024,
                              .peer = 1,
                              .start_ns = 100,
                              .end_ns = 180});
}

/// The program ran out of memory in its last step, and a list keeps the first block.
void add_failure(Trace& trace) {
    const auto text = [&](std::string_view value) { return trace.strings.intern(value); };
    trace.runs.set<&Run::command>(Id<Run>(0), text(R"(["python","train.py"])"));
    trace.runs.set<&Run::folder>(Id<Run>(0), text("/home/user/project"));
    trace.runs.set<&Run::environment>(Id<Run>(0), text(R"({"CUDA_VISIBLE_DEVICES":"0"})"));
    const Id<Step> last(trace.steps.size() - 1);
    trace.steps.set<&Step::kind>(Id<Step>(0), StepKind::kFirst);
    trace.steps.set<&Step::kind>(last, StepKind::kBroken);
    trace.failures.append({.error = text("OutOfMemoryError"),
                           .message = text("CUDA out of memory."),
                           .device = Id<Device>(0),
                           .event = 900,
                           .time_ns = 5000,
                           .requested_bytes = int64_t{6} << 30,
                           .allocated_bytes = int64_t{30} << 30,
                           .reserved_bytes = int64_t{35} << 30,
                           .free_bytes = int64_t{3} << 30,
                           .limit_bytes = int64_t{38} << 30,
                           .step = last,
                           .op = Id<Op>(9),
                           .stack = Id<Stack>(1),
                           .outcome = FailureOutcome::kCaught});
    trace.keepers.append({.allocation = Id<Allocation>(0),
                          .event = 900,
                          .kind = KeeperKind::kContainer,
                          .text = text("list `history[0]`, train.py:16 (<module>)"),
                          .file = text("train.py"),
                          .line = 16});
    trace.value_reads.append({.stack = Id<Stack>(1),
                              .op = text("aten::nonzero"),
                              .kind = ValueReadKind::kSize,
                              .count = 3,
                              .answer = text("zeros")});
}

std::string read_text(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

class GoldenTrace : public testing::TestWithParam<int> {};

TEST_P(GoldenTrace, OpensWithWhatItHeld) {
    const auto file = kFolder / fmt::format("trace_v{}.tscope", GetParam());
    const auto expected = kFolder / fmt::format("trace_v{}.txt", GetParam());
    const bool is_current = GetParam() == kTraceFormatVersion;
    if (std::getenv("TEMPOSCOPE_REGENERATE_GOLDEN") != nullptr && is_current) {
        Trace trace = tests::make_synthetic_trace(
            {.num_allocations = 500, .num_layers = 2, .batch_size = 2, .seq_len = 128});
        add_stacks(trace);
        add_collectives(trace);
        add_failure(trace);
        ASSERT_TRUE(write_trace(trace, file));
        std::ofstream(expected) << summarize(trace, GetParam());
    }
    const auto trace = read_trace(file);
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(summarize(*trace, GetParam()), read_text(expected));
    EXPECT_EQ(trace->text(trace->run().model), "synthetic");
}

INSTANTIATE_TEST_SUITE_P(Versions, GoldenTrace, testing::Range(1, kTraceFormatVersion + 1));

}  // namespace
}  // namespace profiler
