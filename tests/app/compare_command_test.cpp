#include "profiler/trace/file/trace_file.h"
#include "tests/app/program.h"
#include "tests/profiler/allocator/recorder.h"
#include "tests/profiler/formats/snapshot_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace {

using namespace tests;
using testing::HasSubstr;
using testing::StartsWith;

using CompareCommand = CommandTest;

TEST_F(CompareCommand, PutsRecipesSideBySide) {
    write_sample(folder_, "original.tscope");
    write_sample(folder_, "tempo.tscope", {.recipe = "tempo"});
    const Ran ran = run_well({"compare", folder_.path().string()});
    EXPECT_THAT(ran.out, HasSubstr("peak allocated"));
    EXPECT_THAT(ran.out, HasSubstr("tempo trains the same step in "));
    const auto rows = run({"compare", folder_.path().string(), "--json"}).json()["rows"];
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0]["recipe"], "original");
    EXPECT_EQ(rows[1]["recipe"], "tempo");
    EXPECT_LT(rows[1]["kept_bytes"], rows[0]["kept_bytes"]);
}

TEST_F(CompareCommand, OrdersAFolderAsHelpDoesAndKeepsTheOrderOfFiles) {
    const std::string original = write_sample(folder_, "original.tscope");
    const std::string packed =
        write_sample(folder_, "tempo-packed.tscope", {.recipe = "tempo-packed"});
    const std::string tempo = write_sample(folder_, "tempo.tscope", {.recipe = "tempo"});
    const auto recipes = [](const std::vector<std::string>& files) {
        const auto json = run(joined({"compare", "--json"}, files)).json();
        std::vector<std::string> names;
        for (const auto& row : json["rows"]) names.push_back(row["recipe"]);
        return names;
    };
    EXPECT_THAT(recipes({folder_.path().string()}),
                testing::ElementsAre("original", "tempo", "tempo-packed"));
    EXPECT_THAT(recipes({packed, tempo, original}),
                testing::ElementsAre("original", "tempo-packed", "tempo"));
}

TEST_F(CompareCommand, NamesADamagedFileOfAFolderAndComparesTheOthers) {
    write_sample(folder_, "original.tscope");
    write_sample(folder_, "tempo.tscope", {.recipe = "tempo"});
    const std::string damaged = folder_ / "flash.tscope";
    std::filesystem::copy_file(folder_ / "tempo.tscope", damaged);
    std::filesystem::resize_file(damaged, 5000);
    const std::string path = folder_.path().string();
    const Ran ran = run_well({"compare", path, "--json"});
    EXPECT_THAT(ran.err, HasSubstr("Left out: " + damaged));
    EXPECT_EQ(ran.json()["rows"].size(), 2u);
    EXPECT_EQ(ran.json()["left_out"], nlohmann::json::array({damaged}));
    // A check must not pass because a file is missing from it.
    expect_one_sentence(run({"compare", path, "--fail-if-peak-grows", "200%"}), 1, damaged);
    expect_one_sentence(run({"compare", folder_ / "original.tscope", damaged}), 1, damaged);
}

TEST_F(CompareCommand, BreaksPeaksDown) {
    write_sample(folder_, "original.tscope");
    write_sample(folder_, "tempo.tscope", {.recipe = "tempo"});
    const std::string path = folder_.path().string();
    EXPECT_THAT(run({"compare", path, "--by", "layer"}).out, HasSubstr("encoder.layer.2"));
    for (const char* by : {"class", "layer", "op", "tensor", "line"}) {
        const nlohmann::json compared = run({"compare", path, "--by", by, "--json"}).json();
        for (const auto& row : compared["rows"]) {
            int64_t total = 0;
            for (const auto& group : row["groups"]) total += group["size_bytes"].get<int64_t>();
            EXPECT_EQ(total, row["peak_allocated_bytes"]) << by;
        }
    }
}

TEST_F(CompareCommand, JoinsACaptureAndItsSweep) {
    const std::string capture = write_sample(folder_, "capture.tscope");
    const std::string sweep =
        write_sample(folder_, "sweep.tscope", {.sweep = {{4, {2'000'000}}, {5, {}}}});
    const auto rows = run({"compare", capture, sweep, "--json"}).json()["rows"];
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0]["max_batch_size"], 4);
    EXPECT_EQ(rows[0]["best_throughput_sequences_per_s"], 2000);
    EXPECT_EQ(rows[0]["curve"][1]["outcome"], "out_of_memory");
    EXPECT_EQ(rows[0]["files"].size(), 2u);
}

TEST_F(CompareCommand, FailsWhenAPeakGrowsBeyondWhatIsAllowed) {
    const std::string before = write_sample(folder_, "before.tscope");
    const std::string after = write_sample(folder_, "after.tscope", {.scale = 2});
    const Ran grown = run({"compare", before, after, "--fail-if-peak-grows", "2%", "--json"});
    EXPECT_EQ(grown.exit_code, 4);
    EXPECT_THAT(grown.err, StartsWith("temposcope: the peak of original (after) is "));
    EXPECT_EQ(grown.json()["rows"].size(), 2u) << "the comparison is printed all the same";
    run_well({"compare", before, after, "--fail-if-peak-grows", "200 %"});
    run_well({"compare", after, before, "--fail-if-peak-grows", "0"});
    run_well({"compare", before, before, "--fail-if-peak-grows", "0%"});
}

/// The check works on files of other tools as well: what CI compares need not be captures.
TEST_F(CompareCommand, ChecksThePeaksOfSnapshotsAndProfilerTraces) {
    const std::string before = write_sample(folder_, "before.tscope");
    const std::string after = write_sample(folder_, "after.tscope", {.scale = 2});
    for (const auto& [format, end] : std::vector<std::pair<std::string, std::string>>{
             {"snapshot", ".pickle"}, {"chrome", ".pt.trace.json"}}) {
        const std::string a = folder_ / ("a" + end), b = folder_ / ("b" + end);
        run_well({"export", before, "--to", format, "-o", a});
        run_well({"export", after, "--to", format, "-o", b});
        const Ran grown = run({"compare", a, b, "--fail-if-peak-grows", "2%"});
        EXPECT_EQ(grown.exit_code, 4) << grown.out << grown.err;
        EXPECT_THAT(grown.err, HasSubstr("% is allowed"));
        EXPECT_EQ(run({"compare", b, a, "--fail-if-peak-grows", "2%"}).exit_code, 0) << format;
        EXPECT_EQ(run({"compare", before, a, "--fail-if-peak-grows", "2%"}).exit_code, 0) << format;
    }
}

TEST_F(CompareCommand, ShowsTheLargestChangesOfTheGroupsOfTwoFilesFirst) {
    const std::string a = write_sample(folder_, "a.tscope");
    const std::string b = write_sample(folder_, "b.tscope", {.recipe = "tempo"});
    const Ran ran = run({"compare", a, b, "--by", "class"});
    EXPECT_THAT(ran.out, HasSubstr("Change"));
    const std::size_t table = ran.out.find("At the peak");
    ASSERT_NE(table, std::string::npos);
    EXPECT_LT(ran.out.find("activation", table), ran.out.find("parameter", table))
        << "parameters are the same in both";
}

/// A sample whose allocations were made, in turn, on two lines of files in `folder`.
std::string write_sample_with_lines(const CommandFolder& files, const std::string& name,
                                    const std::string& folder, int64_t line_of_head) {
    profiler::Trace trace = make_sample();
    const auto stack_of = [&](const std::string& file, int64_t line, std::string_view code) {
        const auto frame = trace.frames.append({.function = trace.strings.intern("forward"),
                                                .file = trace.strings.intern(folder + file),
                                                .line = line,
                                                .code = trace.strings.intern(code)});
        return trace.stacks.append({.frame = frame});
    };
    const std::array stacks{stack_of("/train.py", 12, "h = net(x)"),
                            stack_of("/model.py", line_of_head, "return self.head(h)"),
                            stack_of("/model.py", line_of_head + 1, "return h * 2")};
    std::size_t next = 0;
    for (const auto block : trace.allocations.ids()) {
        trace.allocations.set<&profiler::Allocation::stack>(block, stacks[next++ % stacks.size()]);
    }
    const std::string path = files / name;
    EXPECT_TRUE(profiler::write_trace(trace, path));
    return path;
}

TEST_F(CompareCommand, JoinsTheLinesOfACopyInAnotherFolder) {
    const std::string a = write_sample_with_lines(folder_, "a.tscope", "/me/nanoGPT", 88);
    const std::string b = write_sample_with_lines(folder_, "b.tscope", "C:\\me\\edited", 91);
    const std::string out = run({"compare", a, b, "--by", "line"}).out;
    EXPECT_THAT(out, HasSubstr("\ntrain.py:12 forward "));
    EXPECT_THAT(out, HasSubstr("nanoGPT/model.py:88 forward, now edited/model.py:91 forward"));
    EXPECT_THAT(out, HasSubstr("nanoGPT/model.py:89 forward, now edited/model.py:92 forward"));
}

std::string failure_of(const std::vector<std::string>& files) {
    const Ran ran = run(joined({"compare", "--fail-if-peak-grows", "2%", "--json"}, files));
    expect_one_sentence(ran, 1);
    return ran.err;
}

/// A check that has nothing to compare must not pass.
TEST_F(CompareCommand, FailsWhenThereIsNoPeakToCheck) {
    const std::string capture = write_sample(folder_, "capture.tscope");
    const std::string sweep =
        write_sample(folder_, "sweep.tscope",
                     {.recipe = "tempo", .sweep = {{1, {1'000'000}}, {2, {}}}, .steps = 0});
    const std::string empty =
        write_sample(folder_, "empty.tscope", {.recipe = "tempo", .complete = false, .steps = 0});
    EXPECT_THAT(failure_of({sweep, capture}), HasSubstr("sweep.tscope has no captured step"));
    EXPECT_THAT(failure_of({empty, capture}), HasSubstr("empty.tscope has no captured step"));
    EXPECT_THAT(failure_of({capture, sweep}), HasSubstr("sweep.tscope has no captured step"));
    EXPECT_THAT(failure_of({capture, empty}), HasSubstr("empty.tscope has no captured step"));
    EXPECT_THAT(failure_of({capture}), HasSubstr("needs two captures"));
}

TEST_F(CompareCommand, FailsToCheckPeaksOfDifferentSteps) {
    const std::string before = write_sample(folder_, "before.tscope");
    const std::string after = write_sample(folder_, "after.tscope", {.batch_size = 3});
    EXPECT_THAT(failure_of({before, after}), HasSubstr("differ in batch size (2 and 3)"));
    EXPECT_EQ(run({"compare", before, after}).exit_code, 0) << "without the check a note says so";
}

/// A file may say how large its batch was, but not all of its workload.
TEST_F(CompareCommand, FailsToCheckPeaksOfStepsThatAreKnownToDiffer) {
    profiler::Trace trace = make_sample({.batch_size = 3});
    trace.runs.set<&profiler::Run::workload>(profiler::Id<profiler::Run>(0), {});
    const std::string after = folder_ / "after.tscope";
    ASSERT_TRUE(profiler::write_trace(trace, after));
    const std::string before = write_sample(folder_, "before.tscope");
    EXPECT_THAT(failure_of({before, after}), HasSubstr("differ in batch size (2 and 3)"));

    trace.runs.set<&profiler::Run::batch_size>(profiler::Id<profiler::Run>(0), 0);
    ASSERT_TRUE(profiler::write_trace(trace, after));
    run_well({"compare", before, after, "--fail-if-peak-grows", "100%"});
}

/// A capture replaces the traced step of a sweep of the same recipe.
TEST_F(CompareCommand, FailsToCheckAgainstAStepThatAnotherFileReplaced) {
    const std::string sweep =
        write_sample(folder_, "sweep.tscope", {.sweep = {{1, {1'000'000}}, {2, {}}}});
    const std::string capture = write_sample(folder_, "capture.tscope", {.scale = 2});
    EXPECT_THAT(failure_of({sweep, capture}), HasSubstr("name a capture first"));
}

TEST_F(CompareCommand, GivesBoundsOfTheMaximumBatchOfAnUnfinishedSweep) {
    const std::string sweep =
        write_sample(folder_, "sweep.tscope", {.sweep = {{8, {1'000'000}}, {16, {}}}});
    EXPECT_THAT(run({"compare", sweep}).out, HasSubstr("≥ 8, < 16"));
    EXPECT_THAT(run({"info", sweep}).out, HasSubstr("at least 8, below 16"));
    for (const auto& json : {run({"compare", sweep, "--json"}).json()["rows"][0],
                             run({"info", sweep, "--json"}).json()}) {
        EXPECT_TRUE(json["max_batch_size"].is_null());
        EXPECT_EQ(json["max_batch_size_at_least"], 8);
        EXPECT_EQ(json["max_batch_size_below"], 16);
    }
}

/// The check compares with the first file, even if `original` is shown first.
TEST_F(CompareCommand, ChecksGrowthAgainstTheFirstFile) {
    const std::string tempo = write_sample(folder_, "tempo.tscope", {.recipe = "tempo"});
    const std::string original = write_sample(folder_, "original.tscope");
    EXPECT_EQ(run({"compare", tempo, original, "--fail-if-peak-grows", "2%"}).exit_code, 4);
    run_well({"compare", original, tempo, "--fail-if-peak-grows", "2%"});
}

TEST_F(CompareCommand, WritesChartsInEachFormat) {
    const std::string sample = write_sample(folder_, "original.tscope");
    const Ran ran = run_well({"compare", sample, "--charts", folder_ / "charts/deep", "--format",
                              "svg,svg,png,pdf", "--json"});
    const auto charts = ran.json()["charts"];
    ASSERT_EQ(charts.size(), 3u);
    for (const auto& chart : charts) {
        EXPECT_GT(std::filesystem::file_size(chart.get<std::string>()), 1000u) << chart;
    }
    EXPECT_TRUE(std::filesystem::exists(folder_ / "charts/deep/comparison.pdf"));
}

TEST_F(CompareCommand, ShowsThePeakOfEachPhase) {
    const std::string a = write_sample(folder_, "a.tscope");
    const std::string b = write_sample(folder_, "b.tscope", {.recipe = "tempo", .scale = 2});
    const std::string snapshot = folder_ / "c.pickle";
    run_well({"export", a, "--to", "snapshot", "-o", snapshot});
    const Ran ran = run_well({"compare", a, b, snapshot, "--phases"});
    const auto heading = ran.out.find("Peak of each phase");
    ASSERT_NE(heading, std::string::npos);
    const std::string table = ran.out.substr(heading);
    EXPECT_THAT(table, HasSubstr("forward    428 KiB  588 KiB  +37.1 %"));
    const auto json = run({"compare", a, b, snapshot, "--json"}).json();
    ASSERT_EQ(json["rows"].size(), 3u);
    EXPECT_EQ(json["rows"][2]["peak_by_phase"]["forward"],
              json["rows"][0]["peak_by_phase"]["forward"])
        << "the marks of the phases are in the snapshot";
    int64_t highest = 0;
    for (const auto& [phase, bytes] : json["rows"][0]["peak_by_phase"].items()) {
        if (!bytes.is_null()) highest = std::max(highest, bytes.get<int64_t>());
    }
    EXPECT_EQ(highest, json["rows"][0]["peak_allocated_bytes"].get<int64_t>());
    Recorder recorder({});
    run_random(recorder, {.num_steps = 40});
    const std::string unmarked = folder_ / "unmarked.pickle";
    std::ofstream(unmarked, std::ios::binary) << snapshot_bytes(recorder.recording(0));
    EXPECT_THAT(run({"compare", unmarked, unmarked, "--phases"}).out,
                HasSubstr("No file has phases"));
}

TEST_F(CompareCommand, ASnapshotWithoutHistoryHasNoPeakToCheck) {
    Recorder recorder({});
    run_random(recorder, {.num_steps = 40});
    profiler::AllocatorRecording recording = recorder.recording(0);
    recording.events.clear();
    const std::string end = folder_ / "end.pickle";
    std::ofstream(end, std::ios::binary) << snapshot_bytes(recording);
    const std::string same = folder_ / "same.pickle";
    std::filesystem::copy_file(end, same);
    const Ran ran = run({"compare", end, same, "--fail-if-peak-grows", "1%"});
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.err, HasSubstr("shows one moment only"));
}

}  // namespace
