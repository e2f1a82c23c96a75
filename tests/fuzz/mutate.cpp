#include "tests/fuzz/fuzz_target.h"

#include <algorithm>
#include <array>
#include <random>

namespace tests {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t end) {
    return end == 0 ? 0 : static_cast<std::size_t>(random() % end);
}

void flip_bit(std::string& bytes, Random& random) {
    if (bytes.empty()) return;
    char& byte = bytes[below(random, bytes.size())];
    byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << below(random, 8)));
}

void set_number(std::string& bytes, Random& random) {
    constexpr std::array<uint64_t, 8> kForgotten{0,          1,          0x7f,       0xff,
                                                 0x7fffffff, 0xffffffff, 1ULL << 62, ~uint64_t{0}};
    const std::size_t width = std::size_t{1} << below(random, 4);
    if (bytes.size() < width) return;
    const std::size_t at = below(random, bytes.size() - width + 1);
    const uint64_t value = kForgotten[below(random, kForgotten.size())];
    const bool big_endian = below(random, 2) == 0;  // SQLite's numbers are
    for (std::size_t i = 0; i < width; ++i) {
        const std::size_t shift = 8 * (big_endian ? width - 1 - i : i);
        bytes[at + i] = static_cast<char>(value >> shift & 0xff);
    }
}

void set_byte(std::string& bytes, Random& random) {
    if (bytes.empty()) return;
    bytes[below(random, bytes.size())] = static_cast<char>(random());
}

void cut(std::string& bytes, Random& random) {
    const std::size_t at = below(random, bytes.size() + 1);
    if (below(random, 4) == 0) {
        bytes.resize(at);
    } else {
        bytes.erase(at, below(random, 64));
    }
}

void repeat(std::string& bytes, Random& random) {
    const std::size_t from = below(random, bytes.size() + 1);
    const std::string part = bytes.substr(from, below(random, 256));
    bytes.insert(below(random, bytes.size() + 1), part);
}

void splice(std::string& bytes, const std::string& other, Random& random) {
    const std::size_t from = below(random, other.size() + 1);
    const std::string part = other.substr(from, below(random, 4096));
    const std::size_t at = below(random, bytes.size() + 1);
    bytes.replace(at, std::min(part.size(), bytes.size() - at), part);
}

}  // namespace

std::string mutate(const std::vector<std::string>& seeds, uint64_t random_seed) {
    Random random(random_seed);
    std::string bytes = seeds[below(random, seeds.size())];
    for (std::size_t changes = 1 + below(random, 8); changes > 0; --changes) {
        switch (below(random, 6)) {
            case 0:
                flip_bit(bytes, random);
                break;
            case 1:
                set_number(bytes, random);
                break;
            case 2:
                set_byte(bytes, random);
                break;
            case 3:
                cut(bytes, random);
                break;
            case 4:
                repeat(bytes, random);
                break;
            default:
                splice(bytes, seeds[below(random, seeds.size())], random);
                break;
        }
    }
    return bytes;
}

}  // namespace tests
