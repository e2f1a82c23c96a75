#pragma once

#include "tests/kernels/kernel_devices.h"
#include "tests/kernels/kernel_test_support.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

// Shared parts of the tests of CUDA kernels.

namespace kernels::test {

/// A tensor on the device that starts `shift` elements after an aligned address.
template <typename T>
class DeviceTensor {
public:
    explicit DeviceTensor(const std::vector<T>& values, size_t shift = 0)
        : count_(values.size()), shift_(shift) {
        EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&base_), (count_ + shift_ + 1) * sizeof(T)),
                  cudaSuccess);
        EXPECT_EQ(cudaMemcpy(data(), values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
                  cudaSuccess);
    }
    explicit DeviceTensor(size_t count, size_t shift = 0)
        : DeviceTensor(std::vector<T>(count), shift) {}
    DeviceTensor(const DeviceTensor&) = delete;
    DeviceTensor& operator=(const DeviceTensor&) = delete;
    ~DeviceTensor() { cudaFree(base_); }

    T* data() { return base_ + shift_; }
    std::vector<T> read() {
        std::vector<T> values(count_);
        EXPECT_EQ(cudaMemcpy(values.data(), data(), count_ * sizeof(T), cudaMemcpyDeviceToHost),
                  cudaSuccess);
        return values;
    }

private:
    T* base_ = nullptr;
    size_t count_, shift_;
};

inline const DropoutKey kKey = {
    .seed = 0x123456789ull, .rank = 1, .step = 9, .layer = 3, .site = 1};

/// A stream that the default stream does not wait for.
inline cudaStream_t side_stream() {
    static cudaStream_t side = [] {
        cudaStream_t s = nullptr;
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        return s;
    }();
    return side;
}

/// During its lifetime OnDevice moves the tensors that a kernel reads and writes, and its masks, so
/// many elements off the addresses of packs.
struct Shift {
    Shift(size_t in, size_t out, size_t mask) { now = {in, out, mask}; }
    ~Shift() { now = {}; }
    static inline struct Elements {
        size_t in, out, mask;
    } now = {};
};

/// Device copies of an argument's tensors; results go back when the object dies. Tensors at one
/// address share a copy: the kernel works in place.
class Copies {
public:
    ~Copies() {
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        for (const auto& finish : finish_) finish();
    }
    template <typename T>
    void take(const T*& tensor, int64_t count) {
        if (tensor) tensor = copy(const_cast<T*>(tensor), count, Shift::now.in, false);
    }
    template <typename T>
    void take(T*& tensor, int64_t count) {
        if (tensor) tensor = copy(tensor, count, Shift::now.out, true);
    }
    template <typename Either>
        requires requires(Either tensor) { tensor.wide; }
    void take(Either& tensor, int64_t count) {
        take(tensor.narrow, count);
        take(tensor.wide, count);
    }
    template <typename Parts>
        requires std::is_array_v<Parts>
    void take(Parts& parts, int64_t count) {
        for (auto& part : parts) take(part, count / kHeadParts);
    }
    void take_mask(const uint8_t*& mask, int64_t count, size_t shift) {
        if (mask) mask = copy(const_cast<uint8_t*>(mask), count, shift, false);
    }
    void take_mask(uint8_t*& mask, int64_t count, size_t shift) {
        if (mask) mask = copy(mask, count, shift, true);
    }

private:
    template <typename T>
    T* copy(T* host, int64_t count, size_t shift, bool is_result) {
        auto& known = copies_[host];
        if (!known) {
            known = std::make_shared<DeviceTensor<T>>(std::vector<T>(host, host + count), shift);
        }
        auto device = std::static_pointer_cast<DeviceTensor<T>>(known);
        if (is_result) finish_.push_back([=] { std::ranges::copy(device->read(), host); });
        return device->data();
    }
    std::map<const void*, std::shared_ptr<void>> copies_;
    std::vector<std::function<void()>> finish_;
};

/// Runs any kernel by the type of its arguments on copies of their tensors, over all elements or
/// rows, on a stream of its own.
struct OnDevice {
    static int64_t num_partials(int64_t num_rows) { return layer_norm_cuda_num_partials(num_rows); }

    template <template <typename> typename Args, typename T>
    static void run(Args<T> a, int64_t num_rows) {
        int64_t size = 1;  // of a row
        if constexpr (requires { a.num_columns; }) size = a.num_columns;
        if constexpr (requires { a.hidden_size; }) size = a.hidden_size;
        if constexpr (requires { a.num_keys; }) size = a.num_keys;
        if constexpr (requires { a.shape; }) size = a.shape.num_columns();
        const int64_t count = num_rows * size, sums = 2 * size * num_partials(num_rows);
        Copies copies;
        if constexpr (requires { a.x; }) copies.take(a.x, count);
        if constexpr (requires { a.residual; }) copies.take(a.residual, count);
        if constexpr (requires { a.scores; }) copies.take(a.scores, count);
        if constexpr (requires { a.dy; }) copies.take(a.dy, count);
        if constexpr (requires { a.ddropped; }) copies.take(a.ddropped, count);
        if constexpr (requires { a.dsum; }) copies.take(a.dsum, count);
        if constexpr (requires { a.dlinear; }) copies.take(a.dlinear, count);
        if constexpr (requires { a.dheads; }) copies.take(a.dheads, count);
        if constexpr (requires { a.saved; }) copies.take(a.saved, count);
        if constexpr (requires { a.y; }) copies.take(a.y, count);
        if constexpr (requires { a.sum; }) copies.take(a.sum, count);
        if constexpr (requires { a.biased; }) copies.take(a.biased, count);
        if constexpr (requires { a.normalized; }) copies.take(a.normalized, count);
        if constexpr (requires { a.centered; }) copies.take(a.centered, count);
        if constexpr (requires { a.probs; }) copies.take(a.probs, count);
        if constexpr (requires { a.dropped; }) copies.take(a.dropped, count);
        if constexpr (requires { a.heads; }) copies.take(a.heads, count);
        if constexpr (requires { a.dx; }) copies.take(a.dx, count);
        if constexpr (requires { a.dresidual; }) copies.take(a.dresidual, count);
        if constexpr (requires { a.dnormalized; }) copies.take(a.dnormalized, count);
        if constexpr (requires { a.dscores; }) copies.take(a.dscores, count);
        if constexpr (requires { a.bias_size; }) size = a.bias_size;
        if constexpr (requires { a.bias; }) copies.take(a.bias, size);
        if constexpr (requires { a.gamma; }) copies.take(a.gamma, size);
        if constexpr (requires { a.beta; }) copies.take(a.beta, size);
        if constexpr (requires { a.rstd; }) copies.take(a.rstd, num_rows);
        if constexpr (requires { a.partials; }) copies.take(a.partials, sums);
        if constexpr (requires { a.bias_partials; }) copies.take(a.bias_partials, sums);
        if constexpr (requires { a.additive_mask; }) {
            copies.take(a.additive_mask, a.rows_per_mask ? count / a.rows_per_mask : 0);
        }
        if constexpr (requires { a.mask; }) {  // one that is stored as T stays aligned to T
            copies.take_mask(a.mask, mask_bytes<T>(a.mask_kind, count),
                             Shift::now.mask * sizeof(T));
        }
        cudaDeviceSynchronize();
        launch(a, num_rows, side_stream());
    }

    template <typename T>
    static void reduce(const std::vector<StatOf<T>>& partials, int64_t num_rows, int64_t size,
                       T* dgamma, T* dbeta) {
        const StatOf<T>* sums = partials.data();
        Copies copies;
        copies.take(sums, static_cast<int64_t>(partials.size()));
        copies.take(dgamma, size);
        copies.take(dbeta, size);
        cudaDeviceSynchronize();
        launch(LayerNormReduceArgs<T>{sums, dgamma, dbeta, num_partials(num_rows), size}, size,
               side_stream());
    }
};

template <typename T>
class CudaKernels : public testing::Test {
protected:
    void SetUp() override {
        int count = 0;
        const cudaError_t error = cudaGetDeviceCount(&count);
        if (error != cudaSuccess || count == 0)
            GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(error);
    }
};
using CudaTypes = testing::Types<float, double, Half, BFloat16>;

/// Expects each element to agree within `relative` and two roundings of T of its size, plus
/// `absolute`.
template <typename T>
void expect_near(const std::vector<T>& got, const std::vector<T>& expected, double relative,
                 double absolute, const std::string& what) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
        const double e = to_double(expected[i]);
        ASSERT_NEAR(to_double(got[i]), e, std::abs(e) * (relative + 2 * kRoundoff<T>)+absolute)
            << what << " element " << i;
    }
}

}  // namespace kernels::test
