#include "profiler/allocator/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profiler {
namespace {

using testing::HasSubstr;

AllocatorSettings parsed(std::string_view text) {
    const auto settings = parse_alloc_conf(text);
    EXPECT_TRUE(settings.has_value()) << text << ": " << (settings ? "" : settings.error().message);
    return settings.value_or(AllocatorSettings{});
}

std::array<int64_t, kRoundupIntervals> divisions(std::initializer_list<int64_t> first,
                                                 int64_t rest) {
    std::array<int64_t, kRoundupIntervals> values{};
    values.fill(rest);
    std::copy(first.begin(), first.end(), values.begin());
    return values;
}

TEST(AllocConf, EmptyTextIsTheDefaults) {
    EXPECT_EQ(parsed(""), AllocatorSettings{});
    EXPECT_EQ(parsed("  "), AllocatorSettings{});
}

TEST(AllocConf, ReadsEverySettingOfDeviceMemory) {
    const AllocatorSettings settings = parsed(
        "expandable_segments:True, max_split_size_mb:128, max_non_split_rounding_mb:96, "
        "large_segment_size_mb:64, garbage_collection_threshold:0.8, "
        "per_process_memory_fraction:0.5, roundup_power2_divisions:4");
    EXPECT_TRUE(settings.expandable_segments);
    EXPECT_EQ(settings.max_split_bytes, 128 * kMiB);
    EXPECT_EQ(settings.max_non_split_rounding_bytes, 96 * kMiB);
    EXPECT_EQ(settings.large_segment_bytes, 64 * kMiB);
    EXPECT_EQ(settings.gc_threshold, 0.8);
    EXPECT_EQ(settings.memory_fraction, 0.5);
    EXPECT_EQ(settings.roundup_power2_divisions, divisions({}, 4));
}

TEST(AllocConf, TheLargeSegmentIsTheLeastValueAndTheDefaultOfTwoOthers) {
    EXPECT_EQ(parsed("large_segment_size_mb:40").max_non_split_rounding_bytes, 40 * kMiB);
    EXPECT_EQ(parsed("max_split_size_mb:15,large_segment_size_mb:12").max_split_bytes, 15 * kMiB);
    EXPECT_FALSE(parse_alloc_conf("max_split_size_mb:30,large_segment_size_mb:40"));
    EXPECT_FALSE(parse_alloc_conf("large_segment_size_mb:40,max_non_split_rounding_mb:30"));
}

/// The tables come from the parser of torch 2.11.0 (AcceleratorAllocatorConfig of its libc10).
TEST(AllocConf, DivisionListsHoldForTheirIntervalAndTheFirstForAllBelow) {
    EXPECT_EQ(parsed("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]").roundup_power2_divisions,
              divisions({1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4}, 8));
    EXPECT_EQ(parsed("roundup_power2_divisions:[4:8]").roundup_power2_divisions,
              divisions({8, 8, 8}, 0));
    EXPECT_EQ(parsed("roundup_power2_divisions:[64:8,1:2]").roundup_power2_divisions,
              divisions({2, 8, 8, 8, 8, 8, 8}, 0));
    // Without a size before it, ">" begins behind the first interval.
    EXPECT_EQ(parsed("roundup_power2_divisions:[>:2]").roundup_power2_divisions, divisions({0}, 2));
    // Sizes beyond the table set its last interval, so a closing ">" has nothing to fill.
    EXPECT_EQ(parsed("roundup_power2_divisions:[1048576:2,>:4]").roundup_power2_divisions,
              divisions({}, 2));
    EXPECT_EQ(parsed("roundup_power2_divisions:[]").roundup_power2_divisions, divisions({}, 0));
}

TEST(AllocConf, SettingsOfPinnedMemoryHaveNoEffect) {
    EXPECT_EQ(parsed("pinned_use_cuda_host_register:True,pinned_num_register_threads:8,"
                     "pinned_use_background_threads:True,pinned_reserve_segment_size_mb:16,"
                     "release_lock_on_cudamalloc:True,graph_capture_record_stream_reuse:True,"
                     "backend:native"),
              AllocatorSettings{});
}

/// Since torch 2.12, 2.13 and 2.15.
TEST(AllocConf, NewerSettingsThatOnlyChangeAddressesOrPinnedMemoryHaveNoEffect) {
    EXPECT_EQ(parsed("throw_on_cudamalloc_oom:True,pinned_free_catch_all:False,"
                     "pinned_max_round_threshold_mb:64,pinned_max_cached_size_mb:256,"
                     "expandable_segments_reserve:40G,"
                     "expandable_segments_reserve_by_class:[comm:1G,other:0.5],"
                     "max_split_size_mb:64"),
              AllocatorSettings{.max_split_bytes = 64 * kMiB});
}

/// The parser of torch 2.11.0 accepts all of these.
TEST(AllocConf, IsAsLenientAsTorch) {
    EXPECT_TRUE(parsed("expandable_segments,True").expandable_segments);
    EXPECT_TRUE(parsed("expandable_segments:True,").expandable_segments);
    EXPECT_EQ(parsed("max_split_size_mb:64MB").max_split_bytes, 64 * kMiB);
    EXPECT_EQ(parsed("max_split_size_mb:-1").max_split_bytes, kUnlimitedBytes);
    EXPECT_EQ(parsed("max_split_size_mb:+25").max_split_bytes, 25 * kMiB);
    EXPECT_EQ(parsed("roundup_power2_divisions:[256:4]]").roundup_power2_divisions,
              divisions({4, 4, 4, 4, 4, 4, 4, 4, 4}, 0));
    EXPECT_EQ(parsed("max_split_size_mb : 20").max_split_bytes, 20 * kMiB);
    EXPECT_EQ(parsed("garbage_collection_threshold:.5x").gc_threshold, 0.5);
}

/// The parser of torch 2.11.0 refuses all of these.
TEST(AllocConf, RefusesWhatTorchRefusesInOneSentence) {
    for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
             {"expandable_segment:True", "'expandable_segment' is not an allocator setting"},
             {"expandable_segments:true", "True or False"},
             {"expandable_segments:1", "True or False"},
             {"expandable_segments:", "has no value"},
             {"expandable_segments", "has no value"},
             {"expandable_segments:True;max_split_size_mb:64", "True or False"},
             {"max_split_size_mb:19", "at least 20"},
             {"max_split_size_mb:many", "not a number"},
             {"max_split_size_mb:99999999999999999999", "too large"},
             {"max_split_size_mb:1e3", "at least 20"},
             {"max_split_size_mb:[1,2]", "not a number"},
             {"expandable_segments:[True]", "True or False"},
             {"pinned_reserve_segment_size_mb:0", "greater than 0"},
             {"max_non_split_rounding_mb:19", "at least 20"},
             {"large_segment_size_mb:10", "at least 11"},
             {"garbage_collection_threshold:0", "between 0 and 1"},
             {"garbage_collection_threshold:1", "between 0 and 1"},
             {"garbage_collection_threshold:nan", "between 0 and 1"},
             {"per_process_memory_fraction:1.5", "[0, 1]"},
             {"per_process_memory_fraction:-0.5", "[0, 1]"},
             {"roundup_power2_divisions:3", "power of two"},
             {"roundup_power2_divisions:0", "power of two"},
             {"roundup_power2_divisions:[256:3]", "powers of two"},
             {"roundup_power2_divisions:[100:4]", "powers of two"},
             {"roundup_power2_divisions:[256:4", "closing bracket"},
             {"expandable_segments_reserve_by_class:[comm:1G", "closing bracket"},
             {"roundup_power2_divisions:[256", "has no value"},
             {"pinned_num_register_threads:3", "power of two"},
             {"pinned_num_register_threads:256", "at most 128"},
             {"backend:other", "native or cudaMallocAsync"},
             {",expandable_segments:True", "is not an allocator setting"}}) {
        const auto settings = parse_alloc_conf(text);
        ASSERT_FALSE(settings.has_value()) << text;
        EXPECT_THAT(settings.error().message, HasSubstr(part)) << text;
        EXPECT_TRUE(settings.error().message.ends_with('.')) << text;
    }
}

TEST(AllocConf, OtherAllocatorsAreNotSimulated) {
    EXPECT_THAT(parse_alloc_conf("backend:cudaMallocAsync").error().message,
                HasSubstr("not simulated"));
}

TEST(AllocConf, TextAndSettingsGoRound) {
    for (const char* text :
         {"", "expandable_segments:True", "max_split_size_mb:128,garbage_collection_threshold:0.6",
          "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", "roundup_power2_divisions:8",
          "large_segment_size_mb:64,max_non_split_rounding_mb:80,"
          "per_process_memory_fraction:0.25"}) {
        EXPECT_EQ(parsed(to_text(parsed(text))), parsed(text)) << text;
    }
    EXPECT_EQ(to_text(AllocatorSettings{}), "");
    EXPECT_EQ(to_text(parsed("expandable_segments:True")), "expandable_segments:True");
}

TEST(AllocConf, RecordedFieldsOverrideTheRecordedText) {
    const RecordedSettings recorded{.alloc_conf = "max_split_size_mb:64,large_segment_size_mb:40",
                                    .max_split_bytes = 128 * kMiB,
                                    .gc_threshold = 0.7,
                                    .expandable_segments = true,
                                    .roundup_power2_divisions = {4, 8}};
    const AllocatorSettings settings = settings_of(recorded);
    EXPECT_EQ(settings.max_split_bytes, 128 * kMiB);
    EXPECT_EQ(settings.large_segment_bytes, 40 * kMiB);
    EXPECT_EQ(settings.gc_threshold, 0.7);
    EXPECT_TRUE(settings.expandable_segments);
    EXPECT_EQ(settings.roundup_power2_divisions, divisions({4, 8}, 0));
    EXPECT_EQ(settings_of({.alloc_conf = "of a later version:1"}), AllocatorSettings{});
}

}  // namespace
}  // namespace profiler
