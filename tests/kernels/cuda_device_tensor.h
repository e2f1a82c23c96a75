#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <cstddef>
#include <vector>

namespace kernels::test {

/// A tensor on the device, `shift` elements behind an aligned address.
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

}  // namespace kernels::test
