#pragma once

#include "kernels/dropout.h"
#include "tests/kernels/kernel_test_support.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <cstddef>
#include <string>
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

template <typename T>
class CudaKernels : public testing::Test {
protected:
    void SetUp() override {
        int count = 0;
        const cudaError_t error = cudaGetDeviceCount(&count);
        if (error != cudaSuccess || count == 0)
            GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(error);
    }
    /// A stream that the default stream does not wait for.
    cudaStream_t stream() {
        static cudaStream_t side = [] {
            cudaStream_t s = nullptr;
            cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
            return s;
        }();
        return side;
    }
    void wait() { ASSERT_EQ(cudaStreamSynchronize(stream()), cudaSuccess); }
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
