#include "profiler/formats/parts/byte_stream.h"

#include "profiler/trace/file/readable_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>

namespace profiler {

namespace fs = std::filesystem;

void ByteStream::Close::operator()(gzFile_s* file) const { gzclose_r(file); }

models::Result<ByteStream> ByteStream::open(const fs::path& path) {
    if (auto readable = check_readable(path); !readable) {
        return tl::unexpected(readable.error());
    }
    ByteStream stream;
    std::error_code error;
    stream.path_ = path;
    stream.size_bytes_ = fs::file_size(path, error);
    stream.file_.reset(gzopen(path.c_str(), "rb"));
    if (error || !stream.file_) return cannot_read(path, error ? error.value() : errno);
    gzbuffer(stream.file_.get(), 1 << 18);
    return stream;
}

models::Result<std::size_t> ByteStream::read(char* into, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
        const auto wanted = static_cast<unsigned>(std::min<std::size_t>(size - done, INT_MAX));
        const int got = gzread(file_.get(), into + done, wanted);
        if (got > 0) done += static_cast<std::size_t>(got);
        int code = Z_OK;
        gzerror(file_.get(), &code);
        if (code == Z_ERRNO) return cannot_read(path_, errno);
        if (code == Z_MEM_ERROR) throw std::bad_alloc();
        if (got < 0 || code == Z_BUF_ERROR) {
            return models::fail(
                "{} cannot be unpacked: it is {}; copy it again, or write it again.",
                path_.string(), code == Z_BUF_ERROR ? "a truncated gzip file" : "damaged");
        }
        if (static_cast<unsigned>(got) < wanted) break;
    }
    return done;
}

double ByteStream::share_read() const {
    if (size_bytes_ == 0) return 1;
    const auto at = std::max<z_off_t>(gzoffset(file_.get()), 0);
    return std::min(1.0, static_cast<double>(at) / static_cast<double>(size_bytes_));
}

std::string unpacked_beginning(std::string_view first_bytes) {
    constexpr std::size_t kMostBytes = 1 << 14;
    if (!first_bytes.starts_with("\x1f\x8b")) return std::string(first_bytes);
    z_stream stream{};
    if (inflateInit2(&stream, 15 + 16) != Z_OK) return {};
    std::string unpacked(kMostBytes, '\0');
    std::string packed(first_bytes);
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
    stream.avail_out = static_cast<uInt>(unpacked.size());
    inflate(&stream, Z_SYNC_FLUSH);
    unpacked.resize(kMostBytes - stream.avail_out);
    inflateEnd(&stream);
    return unpacked;
}

namespace fs = std::filesystem;

models::Result<std::string> read_file_bytes(const fs::path& path, std::size_t limit) {
    if (auto readable = check_readable(path); !readable) {
        return tl::unexpected(readable.error());
    }
    std::error_code error;
    const auto size = std::min<std::uintmax_t>(fs::file_size(path, error), limit);
    std::ifstream file(path, std::ios::binary);
    if (error || !file) return cannot_read(path, error ? error.value() : errno);
    constexpr std::size_t kPadding = 64;  // that a parser may want behind the end
    std::string bytes;
    bytes.reserve(static_cast<std::size_t>(size) + kPadding);
    bytes.resize(static_cast<std::size_t>(size));
    file.read(bytes.data(), static_cast<std::streamsize>(size));
    if (file.bad()) return cannot_read(path, errno);
    bytes.resize(static_cast<std::size_t>(file.gcount()));
    return bytes;
}

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
