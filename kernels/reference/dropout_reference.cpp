#include "kernels/reference/dropout_reference.h"

#include <array>
#include <cmath>

namespace kernels::reference {
namespace {

/// Philox4x32-10 as the paper states it. Written a second time, so that an error in philox.h shows.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t left = 0xD2511F53ull * counter[0];
        const uint64_t right = 0xCD9E8D57ull * counter[2];
        counter = {
            static_cast<uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(right),
            static_cast<uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(left)};
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return counter;
}

}  // namespace

std::vector<bool> dropout_keep(const DropoutKey& key, double dropout_p, int64_t count) {
    const uint32_t threshold = static_cast<uint32_t>(std::round((1 - dropout_p) * 65536));
    const std::array<uint32_t, 2> words = {static_cast<uint32_t>(key.seed),
                                           static_cast<uint32_t>(key.seed >> 32) ^ key.rank};
    std::vector<bool> keep(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
        const auto group = static_cast<uint32_t>(i / 8);
        const auto numbers = philox({group, key.step, key.layer, key.site}, words);
        const uint32_t word = numbers[static_cast<size_t>(i % 8 / 2)];
        const uint32_t half = i % 2 == 0 ? word & 0xFFFF : word >> 16;
        keep[static_cast<size_t>(i)] = half < threshold;
    }
    return keep;
}

std::vector<double> dropout(const std::vector<double>& x, const std::vector<bool>& keep,
                            double dropout_p) {
    const double q = std::round((1 - dropout_p) * 65536) / 65536;
    std::vector<double> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) y[i] = keep[i] ? x[i] / q : 0.0;
    return y;
}

}  // namespace kernels::reference
