#include "tests/app/program.h"
#include "tests/profiler/allocator/recorder.h"
#include "tests/profiler/formats/snapshot_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace {

using namespace tests;
using testing::AllOf;
using testing::HasSubstr;

using Replay = CommandTest;

std::string write_snapshot(const CommandFolder& folder, std::size_t first_event = 40) {
    Recorder recorder({});
    run_random(recorder, {.num_steps = 400});
    const std::string path = folder / "snapshot.pickle";
    std::ofstream(path, std::ios::binary)
        << snapshot_bytes(recorder.recording(std::min(first_event, recorder.num_events())));
    return path;
}

void expect_usage_error(const std::vector<std::string>& arguments, const std::string& part) {
    expect_one_sentence(run(arguments), 2, part);
}

TEST_F(Replay, OfASnapshotFindsEveryRecordedAddress) {
    const std::string file = write_snapshot(folder_);
    const Ran ran = run_well({"replay", file});
    EXPECT_THAT(ran.out, AllOf(HasSubstr("Replayed exactly as recorded"), HasSubstr("100.0 %"),
                               HasSubstr("default settings"), HasSubstr("as recorded")));
    const auto json = run({"replay", file, "--json"}).json();
    EXPECT_EQ(json["address_match_rate"], 1.0);
    EXPECT_EQ(json["segment_event_matches"], json["segment_events"]);
    EXPECT_EQ(json["final_state_matches"], true);
    EXPECT_EQ(json["rows"].size(), 1u);
    EXPECT_EQ(json["rows"][0]["start"], "recorded");
    EXPECT_EQ(json["peak_reserved_bytes"], json["rows"][0]["peak_reserved_bytes"]);
    EXPECT_GT(json["peak_allocated_bytes"], 0);
}

TEST_F(Replay, OfASnapshotWithoutHistoryReportsNoMatchRate) {
    const Ran ran = run_well({"replay", write_snapshot(folder_, 1'000'000)});
    EXPECT_THAT(ran.out, AllOf(HasSubstr("has no history"), HasSubstr("_record_memory_history"),
                               testing::Not(HasSubstr("100.0 %"))));
}

TEST_F(Replay, SaysThatAFileRecordsNoSegmentEvents) {
    Recorder recorder({});
    recorder.free(recorder.allocate(512));  // its segment stays
    const std::size_t first_event = recorder.num_events();
    recorder.free(recorder.allocate(512));
    const std::string path = folder_ / "snapshot.pickle";
    std::ofstream(path, std::ios::binary) << snapshot_bytes(recorder.recording(first_event));
    const Ran ran = run_well({"replay", path});
    EXPECT_THAT(ran.out, HasSubstr("  the file records no segment events, equal segments"));
    EXPECT_THAT(ran.out, HasSubstr("info counts the requested bytes"));
}

TEST_F(Replay, ShowsOtherSettingsBesideTheRecordedOnes) {
    const auto json = run({"replay", write_snapshot(folder_), "--alloc-conf",
                           "expandable_segments:True,roundup_power2_divisions:4", "--json"})
                          .json();
    ASSERT_EQ(json["rows"].size(), 3u);
    EXPECT_EQ(json["rows"][1]["settings"], "");
    EXPECT_EQ(json["rows"][1]["start"], "empty");
    EXPECT_EQ(json["rows"][2]["settings"], "expandable_segments:True,roundup_power2_divisions:4");
    EXPECT_EQ(json["peak_reserved_bytes"], json["rows"][2]["peak_reserved_bytes"]);
    EXPECT_EQ(json["address_match_rate"], 1.0) << "still of the recording";
}

TEST_F(Replay, SaysWhereMemoryRunsOutUnderALimit) {
    const std::string file = write_snapshot(folder_);
    const Ran ran = run({"replay", file, "--memory-limit", "60MiB"});
    EXPECT_EQ(ran.exit_code, 0) << "it was asked for";
    EXPECT_THAT(ran.out, HasSubstr("Out of memory with default settings and 60.0 MiB after"));
    EXPECT_THAT(ran.out, testing::ContainsRegex("allocations; the first [0-9,]+ were there when "
                                                "the recording began\\. A"));
    const auto json = run({"replay", file, "--memory-limit", "60MiB", "--json"}).json();
    const auto& oom = json["rows"].back()["out_of_memory"];
    EXPECT_GT(oom["asked_bytes"], oom["free_bytes"]);
    EXPECT_GE(oom["asked_bytes"], oom["requested_bytes"]);
    EXPECT_LE(oom["reserved_bytes"], 60 << 20);
    EXPECT_EQ(json["rows"].back()["fits"], false);
    EXPECT_TRUE(json["rows"][0]["out_of_memory"].is_null());
    EXPECT_TRUE(json["rows"][0]["fits"].is_null()) << "nothing fails to fit without a limit";
}

/// A snapshot of a program that ran out of memory although in one piece its cache would have done,
/// and the same as a trace.
TEST_F(Replay, OfAProgramThatRanOutOfMemorySaysWhichSettingsFit) {
    const std::string snapshot = folder_ / "oom.pickle";
    std::ofstream(snapshot, std::ios::binary) << snapshot_bytes(out_of_memory_recording(9));
    const std::string trace = folder_ / "oom.tscope";
    run_well({"import", snapshot, "-o", trace});
    for (const std::string& file : {snapshot, trace}) {
        const Ran ran = run_well({"replay", file});
        EXPECT_THAT(ran.out,
                    HasSubstr("The program ran out of memory when it asked for 18.0 MiB."));
        EXPECT_THAT(ran.out, testing::ContainsRegex("default settings .*96.0 MiB .*does not fit"));
        EXPECT_THAT(ran.out, testing::ContainsRegex("expandable_segments:True .*96.0 MiB .* fits"));
        EXPECT_THAT(ran.out, HasSubstr("20.0 MiB cached in 2 pieces, the largest 10.0 MiB"));
        const auto rows = run({"replay", file, "--json"}).json()["rows"];
        EXPECT_EQ(rows[0]["fits"], false);
        EXPECT_EQ(rows[0]["start"], "recorded");
        EXPECT_EQ(rows[0]["memory_limit_bytes"], 96 << 20);
        EXPECT_EQ(rows[0]["out_of_memory"]["reserved_bytes"], 80 << 20);
        EXPECT_EQ(rows[0]["refused_request"]["is_served"], false);
        EXPECT_EQ(rows[0]["refused_request"]["cached_pieces"], 2);
        const auto asked =
            run({"replay", file, "--alloc-conf", "expandable_segments:True", "--json"}).json();
        ASSERT_EQ(asked["rows"].size(), 2u);
        EXPECT_EQ(asked["rows"][1]["fits"], true);
        EXPECT_EQ(asked["rows"][1]["refused_request"]["is_served"], true);
        EXPECT_EQ(asked["peak_reserved_bytes"], asked["rows"][1]["peak_reserved_bytes"]);
        EXPECT_EQ(
            run({"replay", file, "--memory-limit", "98MiB", "--json"}).json()["rows"][1]["fits"],
            true);
    }
}

/// Replays a step measured on the CPU as if a CUDA GPU had allocated it.
TEST_F(Replay, OfATracePlacesItsAllocations) {
    const std::string file = write_sample(folder_, "cpu.tscope");
    const auto json = run({"replay", file, "--json"}).json();
    EXPECT_EQ(json["source"], "trace");
    EXPECT_TRUE(json["address_matches"].is_null());
    EXPECT_GT(json["events"], 0);
    EXPECT_GE(json["peak_reserved_bytes"], json["peak_allocated_bytes"]);
    EXPECT_EQ(run({"replay", file, "--alloc-conf", "expandable_segments:True", "--json"})
                  .json()["rows"]
                  .size(),
              2u);
    EXPECT_THAT(run({"replay", file}).out, HasSubstr("as a CUDA device would have placed it"));

    const std::string snapshot = folder_ / "cpu.pickle";  // has no segments either
    run_well({"export", file, "--to", "snapshot", "-o", snapshot});
    EXPECT_EQ(run_well({"replay", snapshot, "--json"}).json()["rows"], json["rows"]);
}

TEST_F(Replay, RefusesSettingsThatTorchRefuses) {
    expect_usage_error({"replay", "x", "--alloc-conf", "expandable_segment:True"},
                       "not an allocator setting");
    expect_usage_error({"replay", "x", "--alloc-conf", "max_split_size_mb:3"}, "at least 20");
    expect_usage_error({"replay", "x", "--alloc-conf", "per_process_memory_fraction:0.5"},
                       "--memory-limit");
    expect_usage_error({"replay", "x", "--memory-limit", "0"}, "16GiB");
    expect_usage_error({"replay", "x", "--memory-limit", "much"}, "not a size");
}

TEST_F(Replay, NamesFilesThatItCannotRead) {
    const auto expect_failure = [&](const std::string& bytes, const std::string& part) {
        const std::string path = folder_ / "bad.pickle";
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
        const Ran ran = run({"replay", path, "--json"});
        expect_one_sentence(ran, 1, part);
        EXPECT_THAT(ran.err, HasSubstr("bad.pickle"));
    };
    expect_failure("Dear diary,",
                   "is neither a Temposcope trace (.tscope) nor a PyTorch memory snapshot");
    expect_failure("", "begins no pickle");
    expect_failure("\x80\x04}(", "byte 4: the file is truncated");
    expect_failure(
        "\x80\x02"
        "cos\nsystem\n.",
        "GLOBAL builds Python objects");
    AllocatorRecording contradictory;
    contradictory.events = {{.action = RecordedAction::kAlloc, .address = 512, .size_bytes = 512}};
    contradictory.segments = {{.address = 2 * kMiB,
                               .size_bytes = 2 * kMiB,
                               .is_small = true,
                               .blocks = {{.address = 2 * kMiB, .size_bytes = 2 * kMiB}}}};
    expect_failure(snapshot_bytes(contradictory), "event 0 (alloc of 512 bytes");
    EXPECT_THAT(run({"replay", folder_ / "missing.pickle"}).err, HasSubstr("missing.pickle"));
}

}  // namespace
