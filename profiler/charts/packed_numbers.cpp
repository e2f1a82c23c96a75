#include "profiler/charts/packed_numbers.h"

#include <cstddef>

namespace profiler {

void PackedNumbers::add(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
}

void PackedNumbers::add_signed(int64_t value) {
    const auto magnitude = static_cast<uint64_t>(value) << 1;
    add(value < 0 ? ~magnitude : magnitude);
}

std::string to_base64(std::string_view bytes) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t group = 0;  // three bytes, or what is left, as 24 bits
        for (std::size_t j = 0; j < 3; ++j) {
            group = group << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0U);
        }
        for (std::size_t j = 0; j < 4; ++j) {
            const bool is_padding = i + j > bytes.size();
            text.push_back(is_padding ? '=' : kDigits[group >> (18 - 6 * j) & 63]);
        }
    }
    return text;
}

}  // namespace profiler
