#include "profiler/trace/file/page_scan.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <string_view>

namespace profiler::sqlite {
namespace {

constexpr std::size_t kWindowBytes = 512 << 10;
constexpr std::string_view kMagic("SQLite format 3\0", 16);

bool read_fully(int fd, std::span<uint8_t> bytes, int64_t offset) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = pread(fd, bytes.data() + done, bytes.size() - done,
                                    offset + static_cast<int64_t>(done));
        if (count <= 0) return false;
        done += static_cast<std::size_t>(count);
    }
    return true;
}

}  // namespace

PageFile::~PageFile() {
    if (fd_ >= 0) close(fd_);
}

std::unique_ptr<PageFile> PageFile::open(const std::filesystem::path& path) {
    std::unique_ptr<PageFile> file(new PageFile);
    file->fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::array<uint8_t, 100> header{};
    if (file->fd_ < 0 || !read_fully(file->fd_, header, 0)) return {};
    if (!std::equal(kMagic.begin(), kMagic.end(), header.begin(),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; })) {
        return {};
    }
    const std::size_t size = static_cast<std::size_t>(header[16] << 8 | header[17]);
    file->page_bytes_ = size == 1 ? 65536 : size;
    if (file->page_bytes_ < 512 || (file->page_bytes_ & (file->page_bytes_ - 1)) != 0) return {};
    if (header[20] > 32) return {};  // usable size is at least 480 bytes (section 1.3.4)
    file->usable_bytes_ = file->page_bytes_ - header[20];
    const off_t end = lseek(file->fd_, 0, SEEK_END);
    file->num_pages_ = static_cast<uint32_t>(static_cast<std::size_t>(std::max<off_t>(end, 0)) /
                                             file->page_bytes_);
    return file;
}

std::span<const uint8_t> PageFile::page(uint32_t number) {
    if (number < 1 || number > num_pages_) return {};
    const bool inside = number >= first_page_ && number - first_page_ < window_pages_;
    if (!inside) {
        const std::size_t wanted = std::max<std::size_t>(kWindowBytes / page_bytes_, 1);
        const std::size_t there = num_pages_ - number + 1;
        first_page_ = number;
        window_pages_ = static_cast<uint32_t>(std::min(wanted, there));
        const std::size_t num_bytes = window_pages_ * page_bytes_;
        window_.resize(num_bytes + kPadding);
        if (!read_fully(fd_, std::span(window_).first(num_bytes),
                        static_cast<int64_t>(number - 1) * static_cast<int64_t>(page_bytes_))) {
            window_pages_ = 0;
            return {};
        }
    }
    return std::span(window_).subspan((number - first_page_) * page_bytes_, page_bytes_);
}

}  // namespace profiler::sqlite
