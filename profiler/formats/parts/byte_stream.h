#pragma once

#include "models/config/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct gzFile_s;

namespace profiler {

/// The bytes of a file from the first to the last, unpacked where the file is gzip. It holds a few
/// hundred KiB, whatever the size of the file.
class ByteStream {
public:
    /// Errors: as check_readable (trace/readable_file.h).
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

}  // namespace profiler
