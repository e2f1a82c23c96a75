#pragma once

#include "models/config/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct gzFile_s;

namespace profiler {

/// The bytes of a file from the first to the last, unpacked where the file is gzip. It holds a few
/// hundred KiB, whatever the size of the file.
class ByteStream {
public:
    /// Errors: as check_readable (trace/file/readable_file.h).
    static models::Result<ByteStream> open(const std::filesystem::path& path);

    /// Reads up to `size` bytes; fewer only at the end of the file.
    /// Errors: the disk fails; a gzip file is damaged or ends too early.
    models::Result<std::size_t> read(char* into, std::size_t size);

    /// The share of the file, as it lies on the disk, that was read, in [0, 1].
    double share_read() const;

    const std::filesystem::path& path() const { return path_; }

private:
    struct Close {
        void operator()(gzFile_s* file) const;
    };
    std::filesystem::path path_;
    std::unique_ptr<gzFile_s, Close> file_;
    std::uintmax_t size_bytes_ = 0;
};

/// The beginning of a file as its reader sees it: `first_bytes`, unpacked where they are gzip.
std::string unpacked_beginning(std::string_view first_bytes);

/// Reads a file into memory, at most `limit` bytes.
/// Errors: as check_readable (trace/file/readable_file.h). Throws std::bad_alloc.
models::Result<std::string> read_file_bytes(
    const std::filesystem::path& path, std::size_t limit = std::numeric_limits<std::size_t>::max());

/// A file of any size through a window of a few hundred KiB.
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
