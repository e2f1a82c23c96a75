#include "profiler/protocol/virtual_gpu_process.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/app/json_keys.h"
#include "tests/app/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

/// The whole CUDA capture on a virtual GPU: torch's CUDA code, the caching allocator, CUPTI's
/// records, their join to ops, and the file.
namespace {

using namespace tests;
using profiler::Id;
using profiler::Trace;
using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kContextBytes = kGiB / 2;
constexpr int64_t kPageBytes = 2 << 20;  // the driver's, and a small segment

class VirtualGpuCapture : public CommandTest {
protected:
    void SetUp() override { see_card_of(40 * kGiB); }

    void see_card_of(int64_t total_bytes) {
        const profiler::VirtualCard card{.name = "An A100",
                                         .capability = {8, 0},
                                         .total_bytes = total_bytes,
                                         .context_bytes = kContextBytes,
                                         .sm_count = 108,
                                         .l2_bytes = 40 << 20};
        const auto environment =
            profiler::virtual_gpu_environment(TEMPOSCOPE_BINARY_DIR "/virtual_gpu", {card});
        ASSERT_TRUE(environment) << environment.error().message;
        surroundings_.environment = *environment;
    }

    Ran capture(const std::vector<std::string>& more, const std::string& command = "capture") {
        const bool has_batch = std::find(more.begin(), more.end(), "--batch") != more.end();
        const std::string step = " --model bert-base --layers 2 --hidden 64 --heads 2 --seq 32" +
                                 std::string(has_batch ? "" : " --batch 4");
        return run(joined(words(command + step + " --steps 2 --device cuda --overwrite"), more),
                   surroundings_);
    }
    Trace trace_of(const std::vector<std::string>& more) {
        const std::string file = folder_ / "trace.tscope";
        const Ran ran = capture(joined(more, {"-o", file}));
        EXPECT_EQ(ran.exit_code, 0) << ran.err;
        auto trace = profiler::read_trace(file);
        EXPECT_TRUE(trace.has_value()) << trace.error().message;
        return trace ? std::move(*trace) : Trace();
    }

    /// The points of a sweep, by batch.
    std::map<int64_t, profiler::SweepPoint> sweep_of(const std::string& name,
                                                     const std::vector<std::string>& more) {
        const std::string file = folder_ / (name + ".tscope");
        const Ran ran = capture(joined({"--recipe", "original", "-o", file}, more), "sweep");
        EXPECT_EQ(ran.exit_code, 0) << ran.err;
        const auto trace = profiler::read_trace(file);
        std::map<int64_t, profiler::SweepPoint> points;
        for (std::size_t i = 0; trace && i < trace->sweep_points.size(); ++i) {
            const auto point = trace->sweep_points[Id<profiler::SweepPoint>(i)];
            points[point.batch_size] = point;
        }
        return points;
    }

    Surroundings surroundings_;
};

/// Codes of the diagnostics that are warnings or errors.
std::vector<std::string> problems_of(const Trace& trace) {
    std::vector<std::string> codes;
    for (std::size_t i = 0; i < trace.diagnostics.size(); ++i) {
        const profiler::Diagnostic row = trace.diagnostics[Id<profiler::Diagnostic>(i)];
        if (row.severity == profiler::Severity::kInfo) continue;
        codes.emplace_back(trace.text(row.code));
    }
    return codes;
}

/// The most that segments took at a time.
int64_t peak_reserved_bytes(const Trace& trace) {
    std::vector<profiler::AllocatorEvent> events;
    for (std::size_t i = 0; i < trace.allocator_events.size(); ++i) {
        events.push_back(trace.allocator_events[Id<profiler::AllocatorEvent>(i)]);
    }
    std::sort(events.begin(), events.end(),
              [](const auto& a, const auto& b) { return a.event < b.event; });
    int64_t reserved = 0;
    int64_t peak = 0;
    for (const profiler::AllocatorEvent& event : events) {
        using Action = profiler::AllocatorAction;
        if (event.action == Action::kSegmentAlloc) reserved += event.size_bytes;
        if (event.action == Action::kSegmentFree) reserved -= event.size_bytes;
        peak = std::max(peak, reserved);
    }
    return peak;
}

/// With the warm-up that is the default: its backward pass comes before the recorded one.
TEST_F(VirtualGpuCapture, RecordsAStepAfterAWarmUp) {
    const Trace trace = trace_of({"--recipe", "original"});
    EXPECT_EQ(trace.run().source, profiler::Source::kPredicted);
    EXPECT_EQ(problems_of(trace), std::vector<std::string>());
    EXPECT_EQ(trace.steps.size(), 2U);
    EXPECT_GT(trace.saves.size(), 0U);
    ASSERT_GT(trace.kernels.size(), 50U);
    const auto ops = trace.kernels.column<&profiler::Kernel::op>();
    EXPECT_TRUE(std::all_of(ops.begin(), ops.end(), [](Id<profiler::Op> op) { return op.valid(); }))
        << "kernels without an op";
}

TEST_F(VirtualGpuCapture, ExportsItsKernels) {
    const Trace trace = trace_of({"--recipe", "original"});
    const std::string csv = folder_ / "kernels.csv";
    run_well({"export", folder_ / "trace.tscope", "--to", "csv", "--table", "kernels", "-o", csv});
    const std::vector<std::string> lines = lines_of(csv);
    EXPECT_EQ(lines.at(0),
              "name,op,scope,stream,start_ns,end_ns,grid,block,registers_per_thread,"
              "shared_memory_bytes,device");
    EXPECT_EQ(lines.size(), 1 + trace.kernels.size());
    EXPECT_THAT(lines, testing::Contains(HasSubstr(",aten::native_layer_norm,encoder.layer.0.")));
}

/// Kernels load with their first launch: most in the warm-up, whose ops are not recorded. Without
/// one the ops of the step load them.
TEST_F(VirtualGpuCapture, ListsTheModulesThatOpsLoaded) {
    const Trace trace = trace_of({"--recipe", "original", "--warmup", "0"});
    const auto software = nlohmann::json::parse(trace.text(trace.run().software));
    std::set<std::string> ops;
    for (const auto& module : software.at("modules")) ops.insert(module.at("op"));
    EXPECT_TRUE(ops.contains("aten::native_layer_norm"));
    EXPECT_GT(software.at("modules").size(), 20U);
}

TEST_F(VirtualGpuCapture, NamesMatrixProductsByTheirSizes) {
    const Trace trace = trace_of({"--recipe", "original", "--precision", "bf16"});
    std::set<std::string> products;
    for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
        const std::string name(
            trace.text(trace.kernels.get<&profiler::Kernel::name>(Id<profiler::Kernel>(i))));
        if (name.starts_with("gemm ")) products.insert(name);
    }
    // H = 64, B S = 128: the output projection of the attention, and its weight's gradient
    EXPECT_TRUE(products.contains("gemm bf16*bf16->bf16 tn 64x128x64 compute f32 epilogue bias"));
    EXPECT_TRUE(products.contains("gemm bf16*bf16->bf16 nt 64x64x128 compute f32"));
}

/// Tempo's LayerNorm looks at its weights on the host. They are ones, not zeros.
TEST_F(VirtualGpuCapture, KnowsTheWeightsThatFillsMade) {
    const Trace trace = trace_of({"--recipe", "tempo"});
    for (std::size_t i = 0; i < trace.diagnostics.size(); ++i) {
        EXPECT_NE(trace.text(trace.diagnostics.get<&profiler::Diagnostic::code>(
                      Id<profiler::Diagnostic>(i))),
                  "layer_norm_keeps_normalized");
    }
}

/// Every batch of a sweep finds the memory as a fresh process does.
TEST_F(VirtualGpuCapture, TheLargestBatchOfASweepDoesNotDependOnTheBatchesBefore) {
    const auto searched = sweep_of("searched", {"--memory-limit", "600MiB"});
    int64_t largest = 0;
    for (const auto& [batch, point] : searched) {
        if (point.outcome == profiler::SweepOutcome::kOk) largest = std::max(largest, batch);
    }
    ASSERT_GT(largest, 4);
    for (const int64_t batch : {largest, largest + 1}) {
        const Ran alone = capture({"--recipe", "original", "--memory-limit", "600MiB", "--batch",
                                   std::to_string(batch), "-o", folder_ / "alone.tscope"});
        EXPECT_EQ(alone.exit_code, batch == largest ? 0 : 3) << batch << alone.err;
    }
}

/// A limit of just what the step reserves is enough, and a page less is not. So it is too where the
/// share of the device that torch is given rounds down.
TEST_F(VirtualGpuCapture, ALimitIsExactToThePage) {
    const int64_t reserved = peak_reserved_bytes(trace_of({"--recipe", "original"}));
    ASSERT_GT(reserved, 0);
    const auto loses_a_byte = [&](int64_t total) {
        const double share = static_cast<double>(reserved) / static_cast<double>(total);
        return static_cast<int64_t>(share * static_cast<double>(total)) < reserved;
    };
    int64_t total = 2 * kGiB;
    while (!loses_a_byte(total)) total += kPageBytes;
    see_card_of(total);
    const auto reserved_under = [&](int64_t limit_bytes) {
        return peak_reserved_bytes(
            trace_of({"--recipe", "original", "--memory-limit", std::to_string(limit_bytes)}));
    };
    EXPECT_EQ(reserved_under(kContextBytes + reserved), reserved);
    const Ran less = capture({"--recipe", "original", "--memory-limit",
                              std::to_string(kContextBytes + reserved - kPageBytes), "-o",
                              folder_ / "less.tscope"});
    if (less.exit_code == 0) {  // after a retry that released cached segments
        const auto trace = profiler::read_trace(folder_ / "less.tscope");
        ASSERT_TRUE(trace.has_value());
        EXPECT_LT(peak_reserved_bytes(*trace), reserved);
    } else {
        EXPECT_EQ(less.exit_code, 3) << less.err;
    }
}

TEST_F(VirtualGpuCapture, DoctorFindsEverything) {
    const Ran ran = run({"doctor", "--json"}, surroundings_);
    const auto json = ran.json();
    std::set<std::string> names;
    for (const auto& check : json["rows"]) {
        names.insert(check["name"]);
        // These two are of the user's environment.
        if (check["name"] == "display" || check["name"] == "your torch") continue;
        EXPECT_EQ(check["status"], "ok") << check;
    }
    EXPECT_TRUE(names.contains("simulated GPU"));
}

/// Without a virtual GPU in the environment: the command makes one of its own.
TEST_F(VirtualGpuCapture, APredictedCaptureRunsTorchsOwnCode) {
    const std::string file = folder_ / "predicted.tscope";
    const std::string step = "capture --model bert-base --layers 1 --batch 8 --seq 128";
    run_well(joined(words(step + " --recipe original --device predict:a100-80gb -o"), {file}));
    const auto trace = profiler::read_trace(file);
    ASSERT_TRUE(trace.has_value());
    EXPECT_EQ(trace->run().source, profiler::Source::kPredicted);
    // The trace has the kernels that torch launched, each within its op, with modelled times.
    ASSERT_GT(trace->kernels.size(), 50U);
    int64_t products_ns = 0;
    for (std::size_t i = 0; i < trace->kernels.size(); ++i) {
        const auto kernel = trace->kernels[Id<profiler::Kernel>(i)];
        const std::string_view name = trace->text(kernel.name);
        ASSERT_TRUE(kernel.op.valid()) << name;
        EXPECT_GE(kernel.start_ns, trace->ops.get<&profiler::Op::start_ns>(kernel.op)) << name;
        if (name.starts_with("gemm ")) products_ns += kernel.end_ns - kernel.start_ns;
    }
    EXPECT_GT(products_ns, 0);
}

/// A plan says which attention kernel torch chooses and which scratch ops take, and that is what a
/// predicted capture records.
TEST_F(VirtualGpuCapture, APlanListsWhatOpsRun) {
    const std::string file = folder_ / "flash.tscope";
    const std::string step =
        " --model bert-base --layers 1 --recipe flash --precision amp-bf16 --seq 128 --batch 8";
    run_well(joined(words("capture --device predict:a100-80gb" + step + " -o"), {file}));
    const auto captured = run({"info", file, "--ops", "--json"}).json();
    const auto plan_ops = words("plan --gpu a100-80gb --ops" + step);
    const auto plan = run(joined(plan_ops, {"--json"})).json();
    const auto ops = plan["rows"][0]["ops"];
    EXPECT_EQ(ops, captured["rows"]);
    EXPECT_EQ(keys_of(ops[0]), documented("op usage"));
    EXPECT_EQ(keys_of(ops[0]["kernels"][0]), documented("op kernel"));
    std::map<std::string, nlohmann::json> by_name;
    for (const auto& op : ops) by_name[op["op"]] = op;
    EXPECT_THAT(by_name["aten::_flash_attention_forward"]["kernels"].dump(),
                HasSubstr("flash_fwd_kernel"));
    // Only the real reduction takes scratch: a buffer and its semaphores.
    EXPECT_GT(by_name["aten::sum"]["scratch_bytes"], 0);
    EXPECT_THAT(run(plan_ops).out,
                HasSubstr("Ops of bert-base, flash, amp-bf16, sequence length 128, batch 8"));
}

}  // namespace
