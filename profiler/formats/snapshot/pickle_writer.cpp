#include "profiler/formats/snapshot/pickle_writer.h"

#include <bit>

namespace profiler {

PickleWriter::PickleWriter(OutputFile& file) : file_(file) { code("\x80\x04"); }

void PickleWriter::little_endian(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) byte(static_cast<char>(value >> (8 * i) & 0xff));
}

void PickleWriter::flush() {
    file_.write(buffer_);
    buffer_.clear();
}

void PickleWriter::integer(int64_t value) {
    const auto bits = static_cast<uint64_t>(value);
    if (value >= 0 && value < 0x100) {
        byte('K');
        little_endian(bits, 1);
    } else if (value >= 0 && value < 0x10000) {
        byte('M');
        little_endian(bits, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        byte('J');
        little_endian(bits, 4);
    } else {  // two's complement, in as few bytes as hold it with its sign
        int count = 5;
        while (count < 8 && value >> (8 * count - 1) != (value < 0 ? -1 : 0)) ++count;
        byte('\x8a');
        byte(static_cast<char>(count));
        little_endian(bits, count);
    }
}

void PickleWriter::real(double value) {
    byte('G');
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 7; i >= 0; --i) byte(static_cast<char>(bits >> (8 * i) & 0xff));  // big end first
}

void PickleWriter::text(std::string_view value) {
    if (value.size() < 0x100) {
        byte('\x8c');
        little_endian(value.size(), 1);
    } else {
        byte('X');
        little_endian(value.size(), 4);
    }
    code(value);
}

void PickleWriter::text(PickleText& value) { text(value.text, value.memo); }

void PickleWriter::text(std::string_view value, PickleMemo& memo) {
    if (again(memo)) return;
    text(value);
    memoize(memo);
}

void PickleWriter::memoize(PickleMemo& memo) {
    byte('\x94');
    memo.key = next_memo_++;
}

bool PickleWriter::again(const PickleMemo& memo) {
    if (memo.key < 0) return false;
    const bool is_short = memo.key < 0x100;
    byte(is_short ? 'h' : 'j');
    little_endian(static_cast<uint64_t>(memo.key), is_short ? 1 : 4);
    return true;
}

void PickleWriter::begin_list() {
    byte(']');
    items_[++depth_ % kDeepest] = 0;
}

void PickleWriter::next_item() {
    std::size_t& items = items_[depth_ % kDeepest];
    if (items == kBatch) {
        byte('e');
        items = 0;
        flush();
    }
    if (items++ == 0) byte('(');
}

void PickleWriter::end_list() {
    if (items_[depth_-- % kDeepest] > 0) byte('e');
    if (depth_ <= 1) flush();
}

void PickleWriter::pair(int64_t first, int64_t second) {
    integer(first);
    integer(second);
    byte('\x86');
}

}  // namespace profiler
