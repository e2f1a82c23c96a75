#include "profiler/formats/parts/byte_window.h"

#include <algorithm>
#include <cstring>

namespace profiler {

ByteWindow::ByteWindow(std::string_view bytes)
    : at_(bytes.data()), end_(bytes.data()), size_bytes_(bytes.size()) {}

ByteWindow::ByteWindow(ByteStream stream, std::size_t size_bytes,
                       std::function<bool(double)> progress)
    : size_bytes_(size_bytes), stream_(std::move(stream)), progress_(std::move(progress)) {}

bool ByteWindow::fetch(std::size_t count) {
    if (count <= size()) return true;
    if (stopped_ || end_offset_ == size_bytes_) return false;
    const std::size_t left = size();
    const std::size_t step =
        std::min(std::max(count - left, kStepBytes), size_bytes_ - end_offset_);
    if (!stream_) {
        end_ += step;
        end_offset_ += step;
        return count <= size();
    }
    if (progress_ && !progress_(stream_->share_read())) {
        stopped_ = models::fail("Reading {} was cancelled.", stream_->path().string()).value();
        return false;
    }
    if (at_ != nullptr) std::memmove(buffer_.data(), at_, left);
    buffer_.resize(std::max(buffer_.size(), left + step));
    const auto got = stream_->read(buffer_.data() + left, step);
    if (!got) stopped_ = got.error();
    at_ = buffer_.data();
    end_ = at_ + left + got.value_or(0);
    end_offset_ += got.value_or(0);
    return count <= size();
}

}  // namespace profiler
