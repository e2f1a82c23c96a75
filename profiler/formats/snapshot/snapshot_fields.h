#pragma once

#include "profiler/formats/snapshot/plain_values.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
    kHostSegments,
    kHostTraces,
    kIsExpandable,
    kLine,
    kMaxRoundThreshold,
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
    kTemposcope,
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
                                                                   "host_segments",
                                                                   "host_traces",
                                                                   "is_expandable",
                                                                   "line",
                                                                   "max_round_threshold",
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
                                                                   "temposcope",
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

/// Rows that were read and wait for the list that they are in, and such lists. Rows have numbers
/// in the order of the file, so the rows of a list follow each other.
template <typename Row>
class RowSeries {
public:
    int64_t add(const Row& row, double share_read) {
        make_room(waiting_, 1, share_read);
        waiting_.push_back(row);
        return next_++;
    }
    int64_t next() const { return next_; }

    /// Moves the rows from `first` to the one added last to the end of a list; -1: to a new list.
    /// Returns the number of the list. Nothing when `first` no longer waits.
    std::optional<int64_t> move_to_list(int64_t list, int64_t first, double share_read) {
        const int64_t count = next_ - first;
        if (count < 0 || count > std::ssize(waiting_)) return std::nullopt;
        if (list < 0) {
            list = std::ssize(lists_);
            lists_.emplace_back();
        }
        std::vector<Row>& rows = lists_[static_cast<std::size_t>(list)];
        if (rows.empty() && count == std::ssize(waiting_)) {
            std::swap(rows, waiting_);
        } else {
            make_room(rows, static_cast<std::size_t>(count), share_read);
            rows.insert(rows.end(), std::make_move_iterator(waiting_.end() - count),
                        std::make_move_iterator(waiting_.end()));
        }
        waiting_.clear();
        return list;
    }

    /// A list that was taken is empty, and so is -1.
    std::vector<Row> take(int64_t list) {
        if (list < 0) return {};
        return std::exchange(lists_[static_cast<std::size_t>(list)], {});
    }

    std::size_t memory_bytes() const {
        std::size_t count = waiting_.size();
        for (const auto& rows : lists_) count += rows.size();
        return count * sizeof(Row) + lists_.size() * sizeof(std::vector<Row>);
    }

private:
    /// Rows are expected to go on as they came so far, so that they are moved once and not doubled.
    /// The share is that before the last step, so at the start it says little.
    static void make_room(std::vector<Row>& rows, std::size_t count, double share_read) {
        constexpr std::size_t kFewRows = 1000;
        constexpr double kLeastShare = 0.001;
        const std::size_t needed = rows.size() + count;
        if (needed <= rows.capacity()) return;
        const double expected = static_cast<double>(needed) / std::max(share_read, kLeastShare);
        rows.reserve(needed < kFewRows
                         ? std::max(needed, 2 * rows.size())
                         : std::max(2 * rows.size(), static_cast<std::size_t>(expected * 1.02)));
    }

    std::vector<Row> waiting_;
    std::vector<std::vector<Row>> lists_;
    int64_t next_ = 0;
};

}  // namespace profiler::snapshot
