#include "kernels/reference/dropout_reference.h"

#include <algorithm>
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

std::vector<double> softmax(const std::vector<double>& logits, int64_t size) {
    std::vector<double> probs(logits.size());
    for (size_t first = 0; first < logits.size(); first += static_cast<size_t>(size)) {
        const size_t last = first + static_cast<size_t>(size);
        double largest = logits[first];
        for (size_t i = first; i < last; ++i) largest = std::max(largest, logits[i]);
        double sum = 0;
        for (size_t i = first; i < last; ++i) sum += probs[i] = std::exp(logits[i] - largest);
        for (size_t i = first; i < last; ++i) probs[i] /= sum;
    }
    return probs;
}

std::vector<double> softmax_dropout_backward(const std::vector<double>& ddropped,
                                             const std::vector<double>& probs,
                                             const std::vector<double>& keep_factor, int64_t size) {
    std::vector<double> dlogits(probs.size());
    for (size_t first = 0; first < probs.size(); first += static_cast<size_t>(size)) {
        const size_t last = first + static_cast<size_t>(size);
        double sum = 0;
        for (size_t i = first; i < last; ++i) sum += ddropped[i] * keep_factor[i] * probs[i];
        for (size_t i = first; i < last; ++i) {
            dlogits[i] = probs[i] * (ddropped[i] * keep_factor[i] - sum);
        }
    }
    return dlogits;
}

}  // namespace kernels::reference
