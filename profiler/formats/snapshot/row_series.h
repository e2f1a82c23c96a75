#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace profiler {

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

}  // namespace profiler
