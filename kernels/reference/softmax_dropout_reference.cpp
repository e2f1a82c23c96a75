#include "kernels/reference/softmax_dropout_reference.h"

#include <algorithm>
#include <cmath>

namespace kernels::reference {

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
