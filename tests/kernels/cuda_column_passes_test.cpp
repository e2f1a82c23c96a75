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
        void in(Source<T>& tensor, int64_t count) {
            in(tensor.narrow, count);
        }
        template <typename T>
        void out(T*& tensor, int64_t count, size_t unit = 1) {
            if (tensor) tensor = copy(tensor, count, unit, true);
        }
        template <typename T>
        void out(Target<T>& tensor, int64_t count) {
            out(tensor.narrow, count);
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
    static void run(BiasDropoutForwardArgs<T> a, int64_t num_rows) {
        const int64_t count = num_rows * a.num_columns;
        Copies copies;
        copies.in(a.x, count);
        copies.in(a.bias, a.num_columns);
        copies.in(a.residual, count);
        copies.out(a.biased, count);
        copies.out(a.y, count);
        copies.out(a.mask, mask_bytes<T>(a.mask_kind, count), sizeof(T));
        launch_bias_dropout_forward(a, num_rows, nullptr);
    }
    template <typename T>
    static void run(BiasDropoutBackwardArgs<T> a, int64_t num_rows) {
        const int64_t count = num_rows * a.num_columns;
        Copies copies;
        copies.in(a.dy, count);
        copies.in(a.x, count);
        copies.in(a.bias, a.num_columns);
        copies.in(a.mask, mask_bytes<T>(a.mask_kind, count), sizeof(T));
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

    template <typename T>
    static void run(ResidualLayerNormForwardArgs<T> a, int64_t num_rows) {
        const int64_t count = num_rows * a.hidden_size;
        Copies copies;
        copies.in(a.x, count);
        copies.in(a.bias, a.hidden_size);
        copies.in(a.residual, count);
        copies.in(a.gamma, a.hidden_size);
        copies.in(a.beta, a.hidden_size);
        copies.out(a.y, count);
        copies.out(a.biased, count);
        copies.out(a.normalized, count);
        copies.out(a.centered, count);
        copies.out(a.rstd, num_rows);
        copies.out(a.mask, mask_bytes<T>(a.mask_kind, count), sizeof(T));
        launch_residual_layer_norm_forward(a, num_rows, nullptr);
    }
    template <typename T>
    static void run(ResidualLayerNormBackwardArgs<T> a, int64_t num_rows) {
        const int64_t count = num_rows * a.hidden_size;
        Copies copies;
        copies.in(a.dy, count);
        copies.in(a.saved, count);
        copies.in(a.rstd, num_rows);
        copies.in(a.mask, mask_bytes<T>(a.mask_kind, count), sizeof(T));
        copies.out(a.dx, count);
        copies.out(a.dresidual, count);
        launch_residual_layer_norm_backward(a, num_rows, nullptr);
    }
};

TYPED_TEST(CudaColumnPasses, EqualTheReferenceAtEveryAddress) {
    for (const size_t shift : {0, 1}) {
        SCOPED_TRACE(shift);
        OnDevice::shift = shift;
        test::check_all_column_passes<OnDevice, TypeParam>();
    }
}

template <typename T>
class CudaSubstationNorm : public test::CudaKernels<T> {};
TYPED_TEST_SUITE(CudaSubstationNorm, test::CudaTypes);

/// Bias, dropout, residual and LayerNorm with all that Substation keeps, and backward from that.
TYPED_TEST(CudaSubstationNorm, EqualsTheCpu) {
    using T = TypeParam;
    OnDevice::shift = 0;
    const int64_t num_rows = 7, size = 264, count = num_rows * size;
    const auto x = test::normal<T>(count, 1), residual = test::normal<T>(count, 2),
               dy = test::normal<T>(count, 3), gamma = test::normal<T>(size, 4, 1, 0.1),
               beta = test::normal<T>(size, 5, 0, 0.3), bias = test::normal<T>(size, 6);
    struct Kept {
        explicit Kept(size_t n)
            : y(n), biased(n), normalized(n), centered(n), dx(n), dresidual(n) {}
        std::vector<T> y, biased, normalized, centered, dx, dresidual;
        std::vector<StatOf<T>> rstd = std::vector<StatOf<T>>(7);
        std::vector<uint8_t> mask;
    };
    for (const double p : {0.0, 0.3}) {
        const auto run = [&](bool on_device) {
            Kept kept(x.size());
            kept.mask.resize(x.size() * sizeof(T));
            const ResidualLayerNormForwardArgs<T> args{.x = x.data(),
                                                       .bias = bias.data(),
                                                       .residual = residual.data(),
                                                       .gamma = gamma.data(),
                                                       .beta = beta.data(),
                                                       .y = kept.y.data(),
                                                       .biased = kept.biased.data(),
                                                       .normalized = kept.normalized.data(),
                                                       .centered = kept.centered.data(),
                                                       .rstd = kept.rstd.data(),
                                                       .mask = kept.mask.data(),
                                                       .mask_kind = MaskKind::kElement,
                                                       .dropout_p = p,
                                                       .key = test::kPassKey,
                                                       .hidden_size = size};
            const ResidualLayerNormBackwardArgs<T> back{.dy = dy.data(),
                                                        .saved = kept.centered.data(),
                                                        .rstd = kept.rstd.data(),
                                                        .mask = kept.mask.data(),
                                                        .dx = kept.dx.data(),
                                                        .dresidual = kept.dresidual.data(),
                                                        .save = LayerNormSave::kCentered,
                                                        .mask_kind = MaskKind::kElement,
                                                        .dropout_p = p,
                                                        .key = test::kPassKey,
                                                        .hidden_size = size};
            if (on_device) {
                OnDevice::run(args, num_rows);
                OnDevice::run(back, num_rows);
            } else {
                residual_layer_norm_forward(args, 0, num_rows);
                residual_layer_norm_backward(back, num_rows, 0, layer_norm_num_partials(num_rows));
            }
            return kept;
        };
        const Kept cpu = run(false), cuda = run(true);
        EXPECT_EQ(cuda.mask, cpu.mask);
        EXPECT_TRUE(test::same_bits(cuda.biased, cpu.biased));
        const double u = test::kRoundoff<T>, c = test::kComputeRoundoff<T>;
        test::expect_near(cuda.y, cpu.y, 0, 100 * c + u, "y");
        test::expect_near(cuda.normalized, cpu.normalized, 0, 100 * c + u, "normalized");
        test::expect_near(cuda.centered, cpu.centered, 0, 100 * c + u, "centered");
        test::expect_near(cuda.dresidual, cpu.dresidual, 0, 400 * c + 8 * u, "dresidual");
        test::expect_near(cuda.dx, cpu.dx, 0, 400 * c + 16 * u, "dx");
    }
}

}  // namespace
}  // namespace kernels
