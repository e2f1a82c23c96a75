// Goal: the CUDA passes with sums of columns equal the double-precision reference, with packs and
// one element at a time.

#include "kernels/residual_layernorm.h"
#include "tests/kernels/column_passes_cases.h"
#include "tests/kernels/cuda_kernels.h"

#include <algorithm>
#include <functional>
#include <memory>

namespace kernels {
namespace {

using test::DeviceTensor;

template <typename T>
class CudaColumnPasses : public test::CudaKernels<T> {};
TYPED_TEST_SUITE(CudaColumnPasses, test::CudaTypes);

/// Runs a pass on copies of its tensors. `shift` moves them off the addresses of packs.
struct OnDevice {
    static inline size_t shift = 0;

    static int64_t num_partials(int64_t num_rows) { return layer_norm_cuda_num_partials(num_rows); }

    /// Device copies of an argument's tensors; results go back when the object dies. `unit`: a mask
    /// that is stored as T starts at a multiple of its size.
    class Copies {
    public:
        template <typename T>
        void in(const T*& tensor, int64_t count, size_t unit = 1) {
            if (tensor) tensor = copy(const_cast<T*>(tensor), count, unit, false);
        }
        template <typename T>
        void out(T*& tensor, int64_t count, size_t unit = 1) {
            if (tensor) tensor = copy(tensor, count, unit, true);
        }
        ~Copies() {
            cudaDeviceSynchronize();
            for (const auto& finish : finish_) finish();
        }

    private:
        template <typename T>
        T* copy(T* host, int64_t count, size_t unit, bool is_result) {
            const auto values = std::vector<T>(host, host + count);
            auto device = std::make_shared<DeviceTensor<T>>(values, shift * unit);
            finish_.emplace_back([device, host, is_result] {
                if (is_result) std::ranges::copy(device->read(), host);
            });
            return device->data();
        }
        std::vector<std::function<void()>> finish_;
    };

    template <typename T>
    static int64_t bytes_of_mask(MaskKind kind, int64_t count) {
        return mask_bytes(kind, count, sizeof(T));
    }

    template <typename T>
    static void run(BiasDropoutForwardArgs<T> a, int64_t num_rows) {
        const int64_t count = num_rows * a.num_columns;
        Copies copies;
        copies.in(a.x, count);
        copies.in(a.bias, a.num_columns);
        copies.in(a.residual, count);
        copies.out(a.biased, count);
        copies.out(a.y, count);
        copies.out(a.mask, bytes_of_mask<T>(a.mask_kind, count), sizeof(T));
        launch_bias_dropout_forward(a, num_rows, nullptr);
    }
    template <typename T>
    static void run(BiasDropoutBackwardArgs<T> a, int64_t num_rows) {
        const int64_t count = num_rows * a.num_columns;
        Copies copies;
        copies.in(a.dy, count);
        copies.in(a.x, count);
        copies.in(a.bias, a.num_columns);
        copies.in(a.mask, bytes_of_mask<T>(a.mask_kind, count), sizeof(T));
        copies.out(a.dx, count);
        copies.out(a.partials, 2 * a.num_columns * num_partials(num_rows));
        launch_bias_dropout_backward(a, num_rows, nullptr);
    }
    template <typename T>
    static void run(BiasHeadsForwardArgs<T> a, int64_t num_rows) {
        const int64_t size = a.shape.num_columns();
        Copies copies;
        copies.in(a.x, num_rows * size);
        copies.in(a.bias, size);
        for (T*& part : a.heads) copies.out(part, num_rows * size / kHeadParts);
        launch_bias_heads_forward(a, num_rows, nullptr);
    }
    template <typename T>
    static void run(BiasHeadsBackwardArgs<T> a, int64_t num_rows) {
        const int64_t size = a.shape.num_columns();
        Copies copies;
        for (const T*& part : a.dheads) copies.in(part, num_rows * size / kHeadParts);
        copies.out(a.dx, num_rows * size);
        copies.out(a.partials, 2 * size * num_partials(num_rows));
        launch_bias_heads_backward(a, num_rows, nullptr);
    }
    template <typename T>
    static void run(ScaleShiftBackwardArgs<T> a, int64_t num_rows) {
        const int64_t count = num_rows * a.num_columns;
        const int64_t sums = 2 * a.num_columns * num_partials(num_rows);
        Copies copies;
        copies.in(a.dy, count);
        copies.in(a.dresidual, count);
        copies.in(a.normalized, count);
        copies.in(a.gamma, a.num_columns);
        copies.in(a.dlinear, count);
        copies.out(a.dnormalized, count);
        copies.out(a.partials, sums);
        copies.out(a.bias_partials, sums);
        launch_scale_shift_backward(a, num_rows, nullptr);
    }
};

TYPED_TEST(CudaColumnPasses, EqualTheReferenceAtEveryAddress) {
    for (const size_t shift : {0, 1}) {
        SCOPED_TRACE(shift);
        OnDevice::shift = shift;
        test::check_all_column_passes<OnDevice, TypeParam>();
    }
}

}  // namespace
}  // namespace kernels
