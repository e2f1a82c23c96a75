#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace profiler {

/// Whole numbers in few bytes, for a page: 7 bits a byte, the lowest first, and the highest bit of
/// a byte says that another one follows (LEB128). assets/page/decode.js reads them.
class PackedNumbers {
public:
    void add(uint64_t value);
    /// Small magnitudes stay small: 0, -1, 1, -2 become 0, 1, 2, 3.
    void add_signed(int64_t value);

    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

/// RFC 4648, with padding.
std::string to_base64(std::string_view bytes);

}  // namespace profiler
