#pragma once

#include "models/config/result.h"
#include "profiler/formats/parts/byte_stream.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

/// A file of any size through a window of a few hundred KiB.
namespace profiler {

class ByteWindow {
public:
    static constexpr std::size_t kStepBytes = std::size_t{1} << 18;

    /// `bytes` must outlive the window.
    explicit ByteWindow(std::string_view bytes);
    /// `progress` gets the share read after each step; returning false stops.
    ByteWindow(ByteStream stream, std::size_t size_bytes, std::function<bool(double)> progress);

    const char* data() const { return at_; }
    std::size_t size() const { return static_cast<std::size_t>(end_ - at_); }
    void skip(std::size_t count) { at_ += count; }

    /// Moves on until at least `count` bytes, or all that are left, are in the window. False: the
    /// file has fewer, or stopped() says why.
    bool fetch(std::size_t count);

    /// Where the window begins in the file, and the size of the file.
    std::size_t offset() const { return end_offset_ - size(); }
    std::size_t size_bytes() const { return size_bytes_; }

    /// The disk failed, or the user cancelled: a whole sentence.
    const std::optional<models::Error>& stopped() const { return stopped_; }

private:
    const char* at_ = nullptr;
    const char* end_ = nullptr;
    std::size_t end_offset_ = 0;
    std::size_t size_bytes_ = 0;
    std::optional<ByteStream> stream_;  // none: the whole file lies in memory
    std::vector<char> buffer_;
    std::function<bool(double)> progress_;
    std::optional<models::Error> stopped_;
};

}  // namespace profiler
