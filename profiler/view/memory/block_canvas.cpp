#include "profiler/view/memory/block_canvas.h"

#include <algorithm>
#include <cmath>

namespace profiler {

BlockCanvas::BlockCanvas(const BlocksRequest& request, const BlockHistory& history,
                         double max_bytes) {
    static const TimeMap same;
    const TimelineRequest& time = request.time;
    map_ = request.shown == 0 || !time.alignment ? &same : &time.alignment->second;
    const double range_ns = time.end_ns - time.start_ns;
    const bool has_part = request.high_bytes > request.low_bytes;
    low_bytes_ = has_part ? request.low_bytes : 0;
    high_bytes_ = has_part ? request.high_bytes : std::max(max_bytes, 1.0);
    height_px_ = request.height_px;
    if (!(range_ns > 0) || time.width_px <= 0 || height_px_ <= 0 ||
        std::abs(time.start_ns) > 0x1p62 || std::abs(time.end_ns) > 0x1p62) {
        return;  // nothing to draw on
    }
    pixel_bytes_ = (high_bytes_ - low_bytes_) / height_px_;
    column_ns_ = std::max(1.0, std::ceil(range_ns / time.width_px));
    first_ = std::llround(std::floor(time.start_ns / column_ns_));
    columns_ = std::llround(std::ceil(time.end_ns / column_ns_)) - first_;
    for (int64_t i = 0; i <= columns_; ++i) {
        own_ns_.push_back(std::llround(std::clamp(map_->to_own(edge_ns(i)), -0x1p62, 0x1p62)));
        rank_.push_back(history.first_change_at(own_ns_.back()));
    }
}

int64_t BlockCanvas::column_of(uint32_t rank) const {
    return std::upper_bound(rank_.begin(), rank_.end(), rank) - rank_.begin() - 1;
}

double BlockCanvas::share_of_column(int64_t column, int64_t start_ns, int64_t end_ns) const {
    const auto at = static_cast<std::size_t>(std::clamp<int64_t>(column, 0, columns_ - 1));
    const int64_t first = std::max(start_ns, own_ns_[at]);
    const int64_t last = std::min(end_ns, own_ns_[at + 1]);
    const int64_t width = std::max<int64_t>(1, own_ns_[at + 1] - own_ns_[at]);
    return last > first ? static_cast<double>(last - first) / static_cast<double>(width) : 0;
}

}  // namespace profiler
