#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/app/json_keys.h"
#include "tests/app/program.h"
#include "tests/profiler/allocator/recorder.h"
#include "tests/profiler/formats/snapshot_bytes.h"
#include "tests/support/trace_builder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>

namespace {

using namespace tests;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

using Info = CommandTest;

TEST_F(Info, OverviewShowsTheMainFigures) {
    const Ran ran = run_well({"info", write_sample(folder_, "sample.tscope")});
    EXPECT_THAT(ran.out,
                HasSubstr("bert-base, 3 layers, no head, B=2 S=16, fp32, recipe original"));
    EXPECT_THAT(ran.out, HasSubstr("peak allocated"));
    EXPECT_THAT(ran.out, HasSubstr("equal to the formula n(16e+2)+T(2e+1)+4Rs."));
    EXPECT_THAT(ran.out, HasSubstr("Diagnostics: nothing to report."));
    EXPECT_THAT(ran.out, Not(HasSubstr("\x1b"))) << "no colours in a file";
    EXPECT_EQ(ran.err, "");
}

TEST_F(Info, JsonHasTheNumbersOfTheAnalysis) {
    const std::string path = write_sample(folder_, "sample.tscope");
    const profiler::Trace trace = make_sample();
    const auto overview = run({"info", path, "--json"}).json();
    EXPECT_EQ(overview["peak_allocated_bytes"], profiler::find_peak(trace).allocated_bytes);
    EXPECT_EQ(overview["kept_bytes"], profiler::build_ledger(trace).total_bytes);
    EXPECT_EQ(overview["closed_form"]["equal"], true);
    EXPECT_EQ(overview["loss"], 0.25);
    const auto peak = run({"info", path, "--peak", "--by", "layer", "--json"}).json();
    int64_t total = 0;
    for (const auto& row : peak["rows"]) total += row["size_bytes"].get<int64_t>();
    EXPECT_EQ(total, overview["peak_allocated_bytes"]);
}

TEST_F(Info, OfAProfilerTraceShowsItsRangesAndThatClassesAreInferred) {
    const std::string sample = write_sample(folder_, "s.tscope");
    const std::string chrome = folder_ / "s.pt.trace.json";
    run_well({"export", sample, "--to", "chrome", "-o", chrome});
    EXPECT_THAT(run({"info", chrome}).out, HasSubstr("## backward ##"));
    EXPECT_TRUE(run({"info", chrome, "--json"}).json()["loss"].is_null()) << "no file has it";
    EXPECT_THAT(run({"info", chrome}).out, Not(HasSubstr("throughput")));
    EXPECT_THAT(run({"info", chrome}).out, Not(HasSubstr("saved for backward")));
    EXPECT_TRUE(run({"info", chrome, "--json"}).json()["kept_bytes"].is_null());
    EXPECT_THAT(run({"info", chrome, "--ledger"}).out, HasSubstr("Saved tensors are not recorded"));
    EXPECT_THAT(run({"info", chrome, "--peak"}).out, HasSubstr("The file has no classes: "));
    EXPECT_THAT(run({"info", sample, "--peak"}).out, Not(HasSubstr("The file has no classes: ")));
    const std::string csv = folder_ / "a.csv";
    run_well({"export", chrome, "--to", "csv", "-o", csv});
    EXPECT_THAT(read_file(csv), AllOf(HasSubstr(",inferred,"), Not(HasSubstr(",recorded,"))));
    run_well({"export", sample, "--to", "csv", "-o", csv});
    EXPECT_THAT(read_file(csv), AllOf(HasSubstr(",recorded,"), Not(HasSubstr(",inferred,"))));
}

/// A snapshot of two GPUs: 1 KiB lies on the first, which is busier, and 4 KiB on the second.
TEST_F(Info, DeviceChoosesAGpuOfASnapshotWithSeveral) {
    PickleBytes out;
    out.op("}(").text("segments").op("](");
    for (const int64_t device : {0, 1}) {
        const int64_t bytes = device == 0 ? 1024 : 4096;
        out.op("}(").entry("device", device).entry("address", 4096).entry("total_size", bytes);
        out.text("blocks").op("](}(").entry("size", bytes).entry("state", "active_allocated");
        out.op("ueu");
    }
    out.op("e").text("device_traces").op("](](}(").entry("action", "snapshot").entry("addr", 0);
    const std::string snapshot = folder_ / "two.pickle";
    std::ofstream(snapshot, std::ios::binary) << out.entry("size", 0).op("ue]eu").finish();
    EXPECT_EQ(run({"info", snapshot, "--json"}).json()["peak_allocated_bytes"], 1024);
    const std::string tscope = folder_ / "two.tscope";
    run_well({"import", snapshot, "-o", tscope});
    for (const std::string& file : {snapshot, tscope}) {
        const auto second = run({"info", file, "--device", "cuda:1", "--json"}).json();
        EXPECT_EQ(second["peak_allocated_bytes"], 4096) << file;
        EXPECT_EQ(second["device"], "cuda:1");
    }
    EXPECT_EQ(run({"replay", snapshot, "--device", "cuda:1", "--json"}).json()["device"], "cuda:1");
    const std::string csv = folder_ / "two.csv";
    run_well({"export", snapshot, "--to", "csv", "-o", csv});
    EXPECT_THAT(read_file(csv), AllOf(HasSubstr(",cuda:0\n"), HasSubstr(",cuda:1\n")));
    run_well({"export", snapshot, "--to", "csv", "-o", csv, "--device", "cuda:1"});
    EXPECT_THAT(read_file(csv), AllOf(Not(HasSubstr(",cuda:0\n")), HasSubstr(",cuda:1\n")));
    EXPECT_THAT(run({"info", snapshot, "--device", "cpu"}).err,
                HasSubstr("has no GPU 'cpu', only"));
    const Ran wrong = run({"info", snapshot, "--device", "cuda:2"});
    EXPECT_EQ(wrong.exit_code, 1);
    EXPECT_THAT(wrong.err, HasSubstr("has no GPU 'cuda:2', only cuda:0, cuda:1 (--device)."));
}

TEST_F(Info, APredictionHasNoLossAndNoThreads) {
    const std::string path = write_sample(folder_, "predicted.tscope", {.is_predicted = true});
    const auto overview = run({"info", path, "--json"}).json();
    EXPECT_TRUE(overview["loss"].is_null());
    EXPECT_TRUE(overview["num_threads"].is_null());
    EXPECT_THAT(run({"info", path}).out, Not(HasSubstr("loss")));
    EXPECT_TRUE(run({"compare", path, "--json"}).json()["rows"][0]["loss"].is_null());
    const std::string csv = folder_ / "steps.csv";
    run_well({"export", path, "--to", "csv", "--table", "steps", "-o", csv});
    EXPECT_THAT(lines_of(csv).at(1), EndsWith(","));
}

TEST_F(Info, LedgerListsEachSavedTensorWithItsClosedForm) {
    const std::string path = write_sample(folder_, "tempo.tscope", {.recipe = "tempo"});
    const Ran table = run({"info", path, "--ledger", "--scope", "encoder.layer.1"});
    EXPECT_THAT(table.out, HasSubstr("module "));
    EXPECT_THAT(table.out, HasSubstr("gelu_output"));
    EXPECT_THAT(table.out, HasSubstr("4en"));
    EXPECT_THAT(table.out, Not(HasSubstr("encoder.layer.0 ")));
    EXPECT_THAT(run({"info", path, "--ledger", "--all"}).out, HasSubstr("category"));
    EXPECT_EQ(run({"info", path, "--saved", "--scope", "encoder.layer.1"}).out, table.out);

    const auto json = run({"info", path, "--ledger", "--json"}).json();
    EXPECT_EQ(json["rows"].size(), 3 * 14u);
    const auto& row = json["rows"][0];
    EXPECT_EQ(row["scope"], "encoder.layer.0");
    EXPECT_EQ(row["tensor"], "hidden_states");
    EXPECT_EQ(row["shape"], (std::vector<int>{2, 16, 64}));
    EXPECT_EQ(row["dtype"], "float32");
    EXPECT_EQ(row["size_bytes"], 2 * 16 * 64 * 4);
    EXPECT_EQ(row["saved_by"], (std::vector<std::string>{"aten::addmm"}));
}

TEST_F(Info, SeveralReportsStandInOneDocument) {
    const auto json =
        run({"info", write_sample(folder_, "s.tscope"), "--ledger", "--peak", "--health", "--json"})
            .json();
    for (const char* report : {"ledger", "peak", "health"})
        EXPECT_TRUE(json[report]["rows"].is_array());
}

TEST_F(Info, OpensThePartialOfAKilledCapture) {
    const std::string partial = folder_ / "killed.tscope.partial";
    std::filesystem::rename(write_sample(folder_, "killed.tscope", {.complete = false}), partial);
    const Ran ran = run_well({"info", partial});
    EXPECT_THAT(ran.out, HasSubstr("incomplete, 2 steps"));
    const auto diagnostics = run({"info", partial, "--health", "--json"}).json();
    EXPECT_EQ(diagnostics["rows"][0]["code"], "incomplete_capture");
}

TEST_F(Info, OfASnapshotCountsItsBlocksSegmentsAndEvents) {
    const std::string file = folder_ / "snapshot.pickle";
    Recorder recorder({});
    run_random(recorder, {.num_steps = 400});
    const auto recording = recorder.recording(40);
    std::ofstream(file, std::ios::binary) << snapshot_bytes(recording);
    const Ran ran = run_well({"info", file});
    EXPECT_THAT(ran.out, HasSubstr("unknown workload\n"));
    EXPECT_THAT(ran.out, HasSubstr("peak allocated"));
    EXPECT_THAT(ran.out, Not(HasSubstr("saved for backward"))) << "a snapshot knows none";
    const std::size_t num_segments = recording.segments.size();
    EXPECT_THAT(ran.out, HasSubstr(fmt::format("Allocator: {} events, ", recording.events.size())));
    EXPECT_THAT(ran.out, HasSubstr(fmt::format("at the end {} segments and ", num_segments)));
    const auto json = run({"info", file, "--json"}).json();
    EXPECT_EQ(json["source"], "imported");
    EXPECT_EQ(json["allocator"]["events"], recording.events.size());
    EXPECT_EQ(json["allocator"]["segments"], num_segments);
    EXPECT_GT(json["allocator"]["live_blocks"], 0);
    EXPECT_TRUE(json["closed_form"].is_null());
}

/// What a snapshot lacks is empty in every report, and no report fails for it.
TEST_F(Info, OfASnapshotGivesEveryReport) {
    const std::string file = folder_ / "snapshot.pickle";
    Recorder recorder({});
    run_random(recorder, {.num_steps = 100});
    std::ofstream(file, std::ios::binary) << snapshot_bytes(recorder.recording());
    EXPECT_THAT(run({"info", file, "--ledger"}).out, HasSubstr("not recorded in this file"));
    EXPECT_THAT(run({"info", file, "--health"}).out, HasSubstr("no ops, modules, saved tensors"));
    for (const char* by : {"class", "layer", "op", "tensor", "line"}) {
        const auto json = run({"info", file, "--peak", "--by", by, "--json"}).json();
        ASSERT_FALSE(json["rows"].empty()) << by;
        EXPECT_EQ(json["rows"][0]["size_bytes"], json["peak_allocated_bytes"]) << by;
    }
    run_well({"compare", file, file});
    for (const char* table : {"allocations", "ledger", "ops", "steps", "sweep"}) {
        const std::string out = folder_ / (std::string(table) + ".csv");
        const Ran ran = run_well({"export", file, "--to", "csv", "--table", table, "-o", out});
        const bool has_rows = table == std::string_view("allocations");
        EXPECT_EQ(ran.err.find("holds only a header") == std::string::npos, has_rows) << table;
    }
    const Ran svg = run_well({"export", file, "--to", "svg", "-o", folder_ / "memory.svg"});
}

/// A snapshot whose allocations come from two lines of a model, through a module of torch.
std::string write_snapshot_with_stacks(const CommandFolder& folder) {
    Recorder recorder({});
    run_random(recorder, {.num_steps = 200});
    auto recording = recorder.recording();
    recording.stacks = std::make_shared<const profiler::RecordedStacks>(profiler::RecordedStacks{
        .texts = {"forward", "/home/me/bert/model.py",
                  "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py"},
        .frames = {{.function = 0, .file = 1, .line = 54},
                   {.function = 0, .file = 2, .line = 125},
                   {.function = 0, .file = 1, .line = 60}},
        .stacks = {
            {.parent = -1, .frame = 0}, {.parent = 0, .frame = 1}, {.parent = -1, .frame = 2}}});
    bool is_first = true;
    for (auto& event : recording.events) {
        if (event.action != profiler::RecordedAction::kAlloc) continue;
        event.stack = is_first ? 2 : 1;
        is_first = false;
    }
    const std::string file = folder / "stacks.pickle";
    std::ofstream(file, std::ios::binary) << snapshot_bytes(recording);
    return file;
}

TEST_F(Info, OfASnapshotShowsTheLinesOfCodeThatAllocated) {
    const std::string file = write_snapshot_with_stacks(folder_);
    const Ran ran = run_well({"info", file, "--peak"});
    EXPECT_THAT(ran.out, HasSubstr("bert/model.py:54 forward"));
    EXPECT_THAT(ran.out, Not(HasSubstr("linear.py"))) << "the line that calls torch is the site";
    EXPECT_THAT(run({"info", file}).out, HasSubstr("bert/model.py:54 forward"));
    EXPECT_THAT(run({"info", file, "--peak", "--by", "class"}).out, Not(HasSubstr("model.py")));
    EXPECT_THAT(run({"info", file, "--health"}).out, HasSubstr("Group the peak by line"));
    EXPECT_THAT(run({"compare", file, "--by", "line"}).out, HasSubstr("bert/model.py:54 forward"));

    const auto json = run({"info", file, "--peak", "--json"}).json();
    EXPECT_EQ(json["by"], "line");
    int64_t total = 0;
    for (const auto& row : json["rows"]) total += row["size_bytes"].get<int64_t>();
    EXPECT_EQ(total, json["peak_allocated_bytes"]);

    const std::string csv = folder_ / "allocations.csv";
    run_well({"export", file, "--to", "csv", "-o", csv});
    const std::vector<std::string> lines = lines_of(csv);
    EXPECT_THAT(lines.at(0), EndsWith(",site,role_source,device"));
    EXPECT_THAT(lines.at(1), EndsWith(",bert/model.py:60 forward,,cuda:0"));
    EXPECT_THAT(lines.at(2), EndsWith(",bert/model.py:54 forward,,cuda:0"));
}

TEST_F(Info, BySiteSaysThatATraceHasNoCallStacks) {
    const std::string file = write_sample(folder_, "sample.tscope");
    const Ran ran = run_well({"info", file, "--peak", "--by", "line"});
    EXPECT_THAT(ran.out, HasSubstr("No call stacks were recorded. "));
    EXPECT_THAT(run({"compare", file, "--by", "line"}).out,
                HasSubstr("No call stacks were recorded. "));
    const auto json = run({"info", file, "--peak", "--by", "line", "--json"}).json();
    ASSERT_EQ(json["rows"].size(), 1u);
    EXPECT_EQ(json["rows"][0]["name"], "no stack");
    EXPECT_EQ(run({"info", file, "--peak", "--json"}).json()["by"], "class");
}

TEST_F(Info, WarnsWhenALayerDiffersFromItsClosedForm) {
    const Ran ran = run({"info", write_sample(folder_, "twice.tscope", {.scale = 2}), "--health"});
    EXPECT_THAT(ran.out, HasSubstr("closed_form_differs"));
}

/// A sample whose second step asks for too much, at a line, with a block that a list keeps.
std::string write_failed(const CommandFolder& folder) {
    profiler::Trace trace = make_sample();
    const auto text = [&](std::string_view value) { return trace.strings.intern(value); };
    const Id<Frame> frame = trace.frames.append({.function = text("<module>"),
                                                 .file = text("/home/me/project/train.py"),
                                                 .line = 14,
                                                 .code = text("loss.backward()")});
    const Id<Stack> stack = trace.stacks.append({.frame = frame});
    const Id<Step> last(trace.steps.size() - 1);
    const Id<Phase> backward(trace.phases.size() - 1);
    trace.steps.set<&Step::kind>(last, StepKind::kBroken);
    trace.runs.set<&profiler::Run::state>(Id<profiler::Run>(0), RunState::kIncomplete);
    trace.failures.append({.error = text("OutOfMemoryError"),
                           .message = text("CUDA out of memory."),
                           .device = Id<Device>(0),
                           .event = trace.phases.get<&Phase::first_event>(backward),
                           .requested_bytes = int64_t{6} << 30,
                           .free_bytes = int64_t{3} << 30,
                           .limit_bytes = int64_t{40} << 30,
                           .step = last,
                           .phase = backward,
                           .stack = stack});
    const Id<Allocation> parameter(0);
    trace.allocations.set<&Allocation::stack>(parameter, stack);
    trace.keepers.append({.allocation = parameter,
                          .kind = KeeperKind::kContainer,
                          .text = text("list `history[3]`, train_leak.py:16"),
                          .file = text("train_leak.py"),
                          .line = 16});
    const std::string path = folder / "failed.tscope";
    EXPECT_TRUE(profiler::write_trace(trace, path));
    return path;
}

TEST_F(Info, SaysFirstThatMemoryRanOut) {
    const std::string file = write_failed(folder_);
    const std::string sentence =
        "Out of memory at train.py:14 in step 2: 6.00 GiB asked, 3.00 GiB free of 40.0 GiB.";
    const Ran ran = run_well({"info", file});
    EXPECT_THAT(ran.out, HasSubstr(sentence));
    EXPECT_LT(ran.out.find(sentence), ran.out.find("peak allocated"));
    EXPECT_THAT(ran.out, HasSubstr("in step 1, forward")) << "the peak, which the two steps have";
    const auto overview = run({"info", file, "--json"}).json();
    EXPECT_EQ(keys_of(overview["failures"][0]), documented("failure"));
    EXPECT_EQ(overview["failures"][0]["sentence"], sentence);
    EXPECT_EQ(overview["failures"][0]["code"], "loss.backward()");
    EXPECT_TRUE(overview["failures"][0]["reserved_bytes"].is_null());
    EXPECT_THAT(run({"info", file, "--health"}).out, HasSubstr("failure_ended"));
}

TEST_F(Info, PeakSaysWhoKeepsTheLargestBlocks) {
    const std::string file = write_failed(folder_);
    EXPECT_THAT(run_well({"info", file, "--peak"}).out,
                HasSubstr("list `history[3]`, train_leak.py:16"));
    const auto kept = run({"info", file, "--peak", "--json"}).json()["keepers"];
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(keys_of(kept[0]), documented("kept block"));
    EXPECT_EQ(kept[0]["size_bytes"], 4096);
    EXPECT_EQ(kept[0]["line"], "project/train.py:14 <module>");
    EXPECT_EQ(keys_of(kept[0]["keepers"][0]), documented("keeper"));
    EXPECT_EQ(kept[0]["keepers"][0]["kind"], "container");
}

TEST_F(Info, GrowthNamesTheLineThatKeepsMoreAfterEachStep) {
    EXPECT_THAT(run_well({"info", write_sample(folder_, "two.tscope"), "--growth"}).out,
                HasSubstr("Growth shows in 3 whole steps or more, and the trace has 2"));
    const std::string steady = write_sample(folder_, "steady.tscope", {.steps = 4});
    EXPECT_THAT(run_well({"info", steady, "--growth"}).out, HasSubstr("Nothing grows"));
    TraceBuilder b;
    for (int step = 0; step < 4; ++step) {
        b.begin_step();
        b.allocate({.bytes = 64 << 20, .op = b.op("aten::ones")});
        b.end_step();
    }
    b.trace().runs.set<&profiler::Run::memory_limit_bytes>(Id<profiler::Run>(0), 640 << 20);
    const std::string file = folder_ / "grows.tscope";
    ASSERT_TRUE(profiler::write_trace(b.finish(), file));
    EXPECT_THAT(run_well({"info", file, "--growth"}).out,
                AllOf(HasSubstr("aten::ones"),
                      HasSubstr("Memory grows by 64.0 MiB a step: in 6 steps more it is full.")));
    const auto json = run({"info", file, "--growth", "--json"}).json();
    ASSERT_EQ(json["rows"].size(), 1U);
    EXPECT_EQ(keys_of(json["rows"][0]), documented("growing line"));
    EXPECT_EQ(json["rows"][0]["bytes_by_step"].size(), 4U);
    EXPECT_EQ(json["rows"][0]["steps_until_full"], 6);
}

/// Numbers are printed in the same way in every locale.
TEST_F(Info, DoesNotDependOnTheLocale) {
    const std::string path =
        write_sample(folder_, "sample.tscope", {.sweep = {{1, {1'500'000}}, {2, {}}}});
    const Ran plain = run({"info", path}, {.environment = {"LC_ALL=C"}});
    for (const char* locale : {"LC_ALL=de_DE.UTF-8", "LC_ALL=C.UTF-8", "LC_ALL=no_SUCH"}) {
        EXPECT_EQ(run({"info", path}, {.environment = {locale}}).out, plain.out);
    }
    EXPECT_THAT(plain.out, HasSubstr("666.67")) << "sequences/s with a point";
    EXPECT_THAT(plain.out, HasSubstr("out of memory"));
    EXPECT_THAT(plain.out, HasSubstr("The largest batch that trained is 1."));
}

/// If the batch that a sweep should trace does not fit, the file has batches but no step.
TEST_F(Info, ASweepWithoutAStepShowsItsBatches) {
    const std::string path =
        write_sample(folder_, "s.tscope", {.sweep = {{1, {1'000'000}}, {2, {}}}, .steps = 0});
    const Ran ran = run_well({"info", path});
    EXPECT_THAT(ran.out, Not(HasSubstr("peak allocated")));
    EXPECT_THAT(ran.out, HasSubstr("The largest batch that trained is 1."));
    EXPECT_EQ(run({"info", path, "--json"}).json()["max_batch_size"], 1);
}

}  // namespace
