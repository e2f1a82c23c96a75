#pragma once

#include "profiler/formats/snapshot/plain_values.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The keys of a snapshot's dictionaries, and the entries of one of them.
namespace profiler::snapshot {

/// What is wrong with a value: thrown by what is in this file, and caught by SnapshotFold, because
/// the dictionaries are deep and each level may find something.
struct Problem {
    std::string text;
};

[[noreturn]] void stop(std::string text);

/// The tag of a text: one of these keys, or kFirstAction + its RecordedAction.
enum Word : uint8_t {
    kOtherText,
    kAction,
    kAddr,
    kAddress,
    kAllocatorSettings,
    kAllocConf,
    kBlocks,
    kCompileContext,
    kDevice,
    kDeviceFree,
    kDeviceTraces,
    kExpandableSegments,
    kExternalAnnotations,
    kFilename,
    kFrames,
    kGcThreshold,
    kHistory,
    kHostTraces,
    kIsExpandable,
    kLine,
    kMaxSplitSize,
    kName,
    kPoolId,
    kRealSize,
    kRequestedSize,
    kRoundupDivisions,
    kSegmentPoolId,
    kSegments,
    kSegmentType,
    kSize,
    kStage,
    kState,
    kStream,
    kTimeUs,
    kTotalSize,
    kUserMetadata,
    kFirstAction
};
inline constexpr std::array<std::string_view, kFirstAction> kWords{"",
                                                                   "action",
                                                                   "addr",
                                                                   "address",
                                                                   "allocator_settings",
                                                                   "PYTORCH_CUDA_ALLOC_CONF",
                                                                   "blocks",
                                                                   "compile_context",
                                                                   "device",
                                                                   "device_free",
                                                                   "device_traces",
                                                                   "expandable_segments",
                                                                   "external_annotations",
                                                                   "filename",
                                                                   "frames",
                                                                   "garbage_collection_threshold",
                                                                   "history",
                                                                   "host_traces",
                                                                   "is_expandable",
                                                                   "line",
                                                                   "max_split_size",
                                                                   "name",
                                                                   "pool_id",
                                                                   "real_size",
                                                                   "requested_size",
                                                                   "roundup_power2_divisions",
                                                                   "segment_pool_id",
                                                                   "segments",
                                                                   "segment_type",
                                                                   "size",
                                                                   "stage",
                                                                   "state",
                                                                   "stream",
                                                                   "time_us",
                                                                   "total_size",
                                                                   "user_metadata"};

/// The tag of a text.
uint8_t word_of(std::string_view text);

/// The entries of a dictionary by key. Of two with one key the last counts.
class Fields {
public:
    explicit Fields(std::span<const PlainValue> entries) {
        for (std::size_t i = 0; i < entries.size(); i += 2) {
            const PlainValue& key = entries[i];
            if (key.kind != ValueKind::kText || key.tag == kOtherText || key.tag >= kFirstAction) {
                continue;
            }
            present_ |= uint64_t{1} << key.tag;
            values_[key.tag] = &entries[i + 1];
        }
    }

    bool has(Word key) const { return (present_ >> key & 1) != 0; }
    const PlainValue& operator[](Word key) const {
        static constexpr PlainValue kNone{};
        return has(key) ? *values_[key] : kNone;
    }

    std::optional<int64_t> optional_integer(Word key) const { return integer_of((*this)[key]); }
    int64_t integer_or(Word key, int64_t otherwise) const {
        return optional_integer(key).value_or(otherwise);
    }
    /// Throws a Problem when there is none, or one outside [0, limit].
    int64_t integer(Word key) const;
    int64_t within(Word key, int64_t limit) const;

private:
    static_assert(kFirstAction <= 64);
    uint64_t present_ = 0;
    std::array<const PlainValue*, kFirstAction> values_;  // of the keys that are present
};

}  // namespace profiler::snapshot
