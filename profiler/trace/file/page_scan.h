#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

/// Reads the rows of an SQLite table from the pages of its b-tree, several times faster than
/// SQLite's virtual machine (docs/dev/measured.md). Private to profiler/trace.
///
/// Source: "Database File Format", sqlite.org/fileformat2.html, sections 1.3, 1.6 and 2.1.
/// It reads what this program writes: finished files with records of integers, reals and NULL,
/// without overflow pages. On everything else, damage above all, it gives up, and the reader uses
/// SQLite instead. It never reads outside its pages and always ends, whatever the file holds.
namespace profiler::sqlite {

/// A file as pages, numbered from 1. A window over the file serves small reads.
class PageFile {
public:
    /// Null when the file cannot be read or its header is not SQLite's.
    static std::unique_ptr<PageFile> open(const std::filesystem::path& path);
    PageFile(const PageFile&) = delete;
    PageFile& operator=(const PageFile&) = delete;
    ~PageFile();

    /// Empty when there is no such page. Valid until the next call. At least kPadding more bytes
    /// behind the page can be read.
    std::span<const uint8_t> page(uint32_t number);
    static constexpr std::size_t kPadding = 8;
    std::size_t page_bytes() const { return page_bytes_; }
    /// Without the reserved tail of a page.
    std::size_t usable_bytes() const { return usable_bytes_; }
    uint32_t num_pages() const { return num_pages_; }

private:
    PageFile() = default;

    int fd_ = -1;
    std::size_t page_bytes_ = 0;
    std::size_t usable_bytes_ = 0;
    uint32_t num_pages_ = 0;
    std::vector<uint8_t> window_;
    uint32_t first_page_ = 0;    // of the window
    uint32_t window_pages_ = 0;  // 0 = empty
};

/// Reads the bytes of one page. Past the end it returns zeros and remembers that it failed.
class ByteReader {
public:
    ByteReader(std::span<const uint8_t> bytes, std::size_t offset)
        : bytes_(bytes), offset_(offset) {}

    bool failed() const { return failed_; }
    std::size_t offset() const { return offset_; }

    /// SQLite's varint: 7 bits per byte, high bits first; the ninth byte holds 8 bits.
    uint64_t varint() {
        uint64_t value = 0;
        for (int i = 0; i < 8; ++i) {
            const uint8_t byte = next();
            value = value << 7 | (byte & 0x7f);
            if (byte < 0x80) return value;
        }
        return value << 8 | next();
    }

    std::span<const uint8_t> take(std::size_t count) {
        if (count > bytes_.size() - offset_ || offset_ > bytes_.size()) {
            failed_ = true;
            return {};
        }
        offset_ += count;
        return bytes_.subspan(offset_ - count, count);
    }

private:
    uint8_t next() {
        if (offset_ >= bytes_.size()) {
            failed_ = true;
            return 0;
        }
        return bytes_[offset_++];
    }

    std::span<const uint8_t> bytes_;
    std::size_t offset_;
    bool failed_ = false;
};

/// One record: the serial type of each column, followed by the values.
struct Record {
    int64_t row_id = 0;
    std::span<const uint8_t> types;  // one byte per column, all below 10
    std::span<const uint8_t> body;
};

constexpr std::array<uint8_t, 10> kSerialBytes{0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
constexpr uint8_t kSerialNull = 0;
constexpr uint8_t kSerialReal = 7;

/// The integer of a serial type other than NULL and real; `bytes` starts at its value. Always reads
/// 8 bytes (PageFile::kPadding): big-endian, the value is in the first of them.
inline int64_t serial_integer(uint8_t type, const uint8_t* bytes) {
    static_assert(std::endian::native == std::endian::little);
    const int num_bits = 8 * kSerialBytes[type];
    if (num_bits == 0) return type == 9 ? 1 : 0;  // types 8 and 9 are the constants 0 and 1
    uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return static_cast<int64_t>(__builtin_bswap64(word)) >> (64 - num_bits);
}

/// Calls `visit(const Record&) -> bool` for each row of the table with this root page, in id order.
/// Returns false when it gave up, or when `visit` returned false.
template <typename Visit>
class TableScan {
public:
    TableScan(PageFile& file, std::size_t num_columns, Visit visit)
        : file_(file), num_columns_(num_columns), visit_(std::move(visit)) {}

    bool run(uint32_t root) { return scan_page(root, 0); }

private:
    static constexpr int kMaxDepth = 20;  // as SQLite's own limit for cursors
    static constexpr uint8_t kInterior = 0x05;
    static constexpr uint8_t kLeaf = 0x0d;

    static std::size_t big_endian_16(std::span<const uint8_t> bytes, std::size_t offset) {
        return static_cast<std::size_t>(bytes[offset] << 8 | bytes[offset + 1]);
    }
    static uint32_t big_endian_32(std::span<const uint8_t> bytes, std::size_t offset) {
        return static_cast<uint32_t>(big_endian_16(bytes, offset) << 16 |
                                     big_endian_16(bytes, offset + 2));
    }

    bool scan_page(uint32_t number, int depth) {
        if (depth > kMaxDepth || ++num_visited_ > file_.num_pages()) return false;
        const auto page = file_.page(number);
        if (page.empty()) return false;
        const std::size_t header = number == 1 ? 100 : 0;  // page 1 begins with the file header
        if (page[header] == kLeaf) return scan_leaf(page, header);
        if (page[header] != kInterior) return false;
        // The window moves while the children are visited.
        const std::vector<uint8_t> copy(page.begin(), page.end());
        return scan_interior(copy, header, depth);
    }

    bool scan_interior(std::span<const uint8_t> page, std::size_t header, int depth) {
        const std::size_t num_cells = big_endian_16(page, header + 3);
        if (header + 12 + 2 * num_cells > file_.usable_bytes()) return false;
        for (std::size_t i = 0; i < num_cells; ++i) {
            const std::size_t cell = big_endian_16(page, header + 12 + 2 * i);
            if (cell + 4 > file_.usable_bytes()) return false;
            if (!scan_page(big_endian_32(page, cell), depth + 1)) return false;
        }
        return scan_page(big_endian_32(page, header + 8), depth + 1);
    }

    bool scan_leaf(std::span<const uint8_t> page, std::size_t header) {
        const auto usable = page.first(file_.usable_bytes());
        const std::size_t num_cells = big_endian_16(page, header + 3);
        if (header + 8 + 2 * num_cells > usable.size()) return false;
        for (std::size_t i = 0; i < num_cells; ++i) {
            if (!scan_cell(usable, big_endian_16(page, header + 8 + 2 * i))) return false;
        }
        return true;
    }

    bool scan_cell(std::span<const uint8_t> usable, std::size_t offset) {
        ByteReader reader(usable, offset);
        const uint64_t payload_bytes = reader.varint();
        Record record;
        record.row_id = static_cast<int64_t>(reader.varint());
        // Larger records use overflow pages (section 1.6), which rows of numbers never need.
        if (payload_bytes > usable.size() - 35) return false;
        const std::size_t record_start = reader.offset();
        const uint64_t header_bytes = reader.varint();
        if (header_bytes != num_columns_ + 1 || header_bytes > payload_bytes) return false;
        record.types = reader.take(num_columns_);
        if (reader.failed() || reader.offset() - record_start != header_bytes) return false;
        std::size_t body_bytes = 0;
        for (const uint8_t type : record.types) {
            if (type >= kSerialBytes.size()) return false;
            body_bytes += kSerialBytes[type];
        }
        if (body_bytes + header_bytes != payload_bytes) return false;
        record.body = reader.take(body_bytes);
        return !reader.failed() && visit_(record);
    }

    PageFile& file_;
    std::size_t num_columns_;
    Visit visit_;
    uint32_t num_visited_ = 0;
};

}  // namespace profiler::sqlite
