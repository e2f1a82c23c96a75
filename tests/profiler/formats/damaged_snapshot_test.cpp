/// The snapshot reader and the replay on damaged files. Each file gives one sentence with the file
/// and the offset, or a recording that the replay survives. Nothing crashes.
#include "profiler/allocator/replay.h"
#include "profiler/allocator/simulation.h"
#include "profiler/formats/snapshot/pytorch_snapshot.h"
#include "profiler/formats/snapshot/recorded_trace.h"
#include "tests/profiler/allocator/recorder.h"
#include "tests/profiler/formats/snapshot_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace profiler {
namespace {

using testing::HasSubstr;

std::string sound_bytes() {
    tests::Recorder recorder({});
    tests::run_random(recorder, {.num_steps = 120, .num_streams = 2, .empty_cache_every = 40});
    return tests::snapshot_bytes(recorder.recording(30));
}

/// True when the reader accepted the bytes.
bool read_and_replay(const std::string& bytes) {
    const auto snapshot = parse_pytorch_snapshot(bytes, "s.pickle");
    if (!snapshot) {
        EXPECT_THAT(snapshot.error().message, HasSubstr("s.pickle"));
        EXPECT_THAT(snapshot.error().message, HasSubstr("byte "));
        EXPECT_TRUE(snapshot.error().message.ends_with('.')) << snapshot.error().message;
        EXPECT_EQ(snapshot.error().message.find('\n'), std::string::npos);
        return false;
    }
    const AllocatorRecording& recording = snapshot->main();
    const AllocatorSettings settings = settings_of(recording.settings);
    const auto report = replay(recording, settings);
    if (!report) return true;
    EXPECT_LE(report->address_matches, report->allocations);
    const auto trace = trace_of({recording});
    if (!trace) return true;
    const auto stream = stream_to_failure(*trace, profiled_device(*trace));
    EXPECT_TRUE(stream.has_value());
    if (stream) simulate(*stream, {.settings = settings, .memory_limit_bytes = int64_t{1} << 30});
    return true;
}

TEST(DamagedSnapshot, TheSoundOneIsReplayedExactly) {
    const auto snapshot = parse_pytorch_snapshot(sound_bytes(), "s.pickle").value();
    EXPECT_TRUE(replay(snapshot.main(), {})->is_exact());
}

TEST(DamagedSnapshot, TruncatedFilesAreRefusedAtEveryLength) {
    const std::string whole = sound_bytes();
    for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 2'000) {
        ASSERT_FALSE(read_and_replay(whole.substr(0, size))) << size;
    }
}

/// A dictionary of 90,000 entries, listed 200,000 times as an event. Searching it each time would
/// take hours.
TEST(DamagedSnapshot, AWideDictionaryThatIsRepeatedCostsNothing) {
    tests::PickleBytes wide;
    wide.op("}(").text("segments").op("]").text("device_traces").op("](](}(");
    for (int i = 0; i < 90'000; ++i) {
        wide.op("M").op(std::string{static_cast<char>(i), static_cast<char>(i >> 8)}).op("N");
    }
    wide.op("uq").op(std::string(1, '\0'));
    for (int i = 0; i < 200'000; ++i) wide.op("h").op(std::string(1, '\0'));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(read_and_replay(wide.op("eeu").finish()));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(DamagedSnapshot, DeeplyNestedJsonIsRefused) {
    for (const auto& [begin, end] : {std::pair("[", "]"), std::pair(R"({"a":)", "}")}) {
        constexpr int kLevels = 300'000;
        std::string json = R"({"segments": )";
        for (int i = 0; i < kLevels; ++i) json += begin;
        // simdjson 3.12 sees the missing end before the depth.
        EXPECT_FALSE(parse_pytorch_snapshot(json, "s.json"));
        json += '1';
        for (int i = 0; i < kLevels; ++i) json += end;
        const auto snapshot = parse_pytorch_snapshot(json + '}', "s.json");
        ASSERT_FALSE(snapshot);
        EXPECT_THAT(snapshot.error().message, HasSubstr("values lie more than 1000 deep"));
    }
}

TEST(DamagedSnapshot, EveryErrorSaysWhatToDo) {
    const std::string whole = sound_bytes();
    for (const std::string& bytes : {whole.substr(0, whole.size() / 2), std::string("\x80\x02N."),
                                     std::string("\x80\x02"
                                                 "cos\nsystem\n.")}) {
        const auto snapshot = parse_pytorch_snapshot(bytes, "s.pickle");
        ASSERT_FALSE(snapshot);
        EXPECT_THAT(snapshot.error().message,
                    testing::EndsWith("; copy it again, or dump it again with "
                                      "torch.cuda.memory._dump_snapshot."));
    }
}

TEST(DamagedSnapshot, MutatedFilesAreErrorsOrSurvive) {
    const std::string whole = sound_bytes();
    std::mt19937 random(20261121);
    int accepted = 0;
    for (int round = 0; round < 4'000; ++round) {
        std::string mutant = whole;
        const int changes = 1 + static_cast<int>(random() % 6);
        for (int i = 0; i < changes; ++i) {
            const std::size_t at = random() % mutant.size();
            const char values[] = {
                0,   1,   '\x7f', '\x80', '\xff',
                '.', '(', 'e',    'h',    static_cast<char>(mutant[at] ^ (1 << random() % 8))};
            mutant[at] = values[random() % std::size(values)];
        }
        if (random() % 8 == 0) mutant.erase(random() % mutant.size(), random() % 40);
        if (random() % 8 == 0) mutant.insert(random() % mutant.size(), whole, random() % 2'000, 60);
        accepted += read_and_replay(mutant) ? 1 : 0;
    }
    EXPECT_GT(accepted, 300) << "changed values of sound files should still be read";
}

/// Mutated values, unlike mutated bytes, reach the replay itself.
TEST(DamagedSnapshot, RecordingsThatMakeNoSenseAreErrorsOrSurvive) {
    std::mt19937_64 random(7);
    tests::Recorder recorder({});
    tests::run_random(recorder, {.num_steps = 150, .num_streams = 2, .empty_cache_every = 30});
    int replayed = 0;
    for (int round = 0; round < 3'000; ++round) {
        AllocatorRecording mutant = recorder.recording(random() % recorder.num_events());
        for (int i = 0; i < 1 + static_cast<int>(random() % 3) && !mutant.events.empty(); ++i) {
            RecordedEvent& event = mutant.events[random() % mutant.events.size()];
            switch (random() % 5) {
                case 0:
                    event.action = static_cast<RecordedAction>(random() % 9);
                    break;
                case 1:
                    event.address = static_cast<int64_t>(random() % (uint64_t{1} << 57));
                    break;
                case 2:
                    event.size_bytes = static_cast<int64_t>(random() % (uint64_t{1} << 44));
                    break;
                case 3:
                    event.stream = static_cast<int64_t>(random() % 4);
                    break;
                default:
                    std::swap(event, mutant.events[random() % mutant.events.size()]);
            }
        }
        const auto report = replay(mutant, settings_of(mutant.settings));
        replayed += report ? 1 : 0;
    }
    EXPECT_GT(replayed, 100);
}

}  // namespace
}  // namespace profiler
