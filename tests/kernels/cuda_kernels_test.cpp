// Goal: each CUDA kernel gives the results of its CPU twin: masks and Philox dropout with the same
// bits, the rest within the roundings of the compute type; also with arguments left out (no gamma,
// beta, dx or partial sums), without dropout and with p = 1, and at any length and address. Built
// twice: cuda_kernels_test needs a GPU (without one, each test is skipped and says so);
// cuda_on_cpu_test runs the same kernels as fibers.

#include "tests/kernels/cuda_kernels.h"
#include "tests/kernels/gelu_error.h"

namespace kernels {
namespace {

using test::expect_near;
using test::kKey;
using test::OnCpu;
using test::OnDevice;
using test::Shift;

template <typename T>
class CudaKernels : public test::CudaKernels<T> {};
TYPED_TEST_SUITE(CudaKernels, test::CudaTypes);

const MaskKind kMaskKinds[] = {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone};

template <typename T>
std::vector<uint8_t> mask_for(MaskKind kind, const std::vector<T>& x) {
    return std::vector<uint8_t>(
        static_cast<size_t>(mask_bytes<T>(kind, static_cast<int64_t>(x.size()))));
}

/// Twice `results`, filled by `run(device, results)` on the CPU and on CUDA.
template <typename Results, typename Run>
void run_on_both(Results& cpu, Results& cuda, Run run) {
    run(OnCpu(), cpu);
    run(OnDevice(), cuda);
}

// --- element by element -------------------------------------------------------------------------

const std::vector<int64_t> kCounts = {1, 7, 8, 9, 255, 256, 257, 2047, 2048, 2049, 100003};

/// Backward of x is forward again.
template <typename T>
void expect_dropout_of_the_cpu(int64_t count, double p, MaskKind kind) {
    SCOPED_TRACE(count);
    const auto x = test::normal<T>(count, 1);
    struct Results {
        std::vector<T> y, dx;
        std::vector<uint8_t> mask;
    };
    Results cpu{.y = std::vector<T>(x.size()), .dx = cpu.y, .mask = mask_for(kind, x)}, cuda = cpu;
    run_on_both(cpu, cuda, [&](auto device, Results& to) {
        device.run(DropoutForwardArgs<T>{.x = x.data(),
                                         .y = to.y.data(),
                                         .mask = to.mask.data(),
                                         .mask_kind = kind,
                                         .dropout_p = p,
                                         .key = kKey},
                   count);
        device.run(DropoutBackwardArgs<T>{.dy = x.data(),
                                          .dx = to.dx.data(),
                                          .mask = to.mask.data(),
                                          .mask_kind = kind,
                                          .dropout_p = p,
                                          .key = kKey},
                   count);
    });
    ASSERT_TRUE(test::same_bits(cuda.y, cpu.y));
    ASSERT_TRUE(test::same_bits(cuda.dx, cpu.y));
    ASSERT_EQ(cuda.mask, cpu.mask);
    if (p == 0 || p == 1) {
        ASSERT_TRUE(test::same_bits(cuda.y, p == 0 ? x : std::vector<T>(x.size())));
    }
}

TYPED_TEST(CudaKernels, DropoutEqualsTheCpuBitForBit) {
    for (const MaskKind kind : kMaskKinds) {
        for (const int64_t count : kCounts) {
            for (const size_t shift : {0, 1}) {
                const Shift shifted(shift, shift, 0);
                expect_dropout_of_the_cpu<TypeParam>(count, 0.1, kind);
            }
        }
        for (const double p : {0.0, 1.0}) expect_dropout_of_the_cpu<TypeParam>(777, p, kind);
    }
}

TYPED_TEST(CudaKernels, GeluDerivativeIsAsGoodAsTheStoredOutputAllows) {
    using T = TypeParam;
    for (const GeluKind kind : {GeluKind::kErf, GeluKind::kTanh}) {
        const auto x = test::gelu_points<T>(kind);
        const auto count = static_cast<int64_t>(x.size());
        for (const MaskKind mask_kind : {MaskKind::kByte, MaskKind::kBit}) {
            std::vector<T> y(x.size()), ones(x.size(), from_double<T>(1));
            auto mask = mask_for(mask_kind, x);
            OnDevice::run(InplaceGeluForwardArgs<T>{.x = x.data(),
                                                    .y = y.data(),
                                                    .mask = mask.data(),
                                                    .mask_kind = mask_kind,
                                                    .kind = kind},
                          count);
            OnDevice::run(InplaceGeluBackwardArgs<T>{.dy = ones.data(),
                                                     .y = y.data(),
                                                     .mask = mask.data(),
                                                     .dx = ones.data(),
                                                     .mask_kind = mask_kind,
                                                     .kind = kind},
                          count);
            const auto error = test::measure_gelu_error(kind, x, ones);
            EXPECT_LE(error.excess, 1.05 * error.floor) << "worst at x = " << error.worst_x;
            const double x_min = reference::gelu_minimum_x(kind);
            for (int64_t i = 0; i < count; ++i) {
                const double value = to_double(x[static_cast<size_t>(i)]);
                if (value == x_min) continue;
                ASSERT_EQ(test::mask_at(mask, mask_kind, i), value > x_min);
            }
        }
    }
}

/// In place without a bias.
template <typename T>
void expect_gelu_of_the_cpu(const std::vector<T>& x, const std::vector<T>& bias) {
    struct Results {
        std::vector<T> y;
        std::vector<uint8_t> mask;
    };
    Results cpu{.y = x, .mask = mask_for(MaskKind::kBit, x)}, cuda = cpu;
    run_on_both(cpu, cuda, [&](auto device, Results& to) {
        device.run(InplaceGeluForwardArgs<T>{.x = bias.empty() ? to.y.data() : x.data(),
                                             .y = to.y.data(),
                                             .mask = to.mask.data(),
                                             .bias = bias.empty() ? nullptr : bias.data(),
                                             .bias_size = static_cast<int64_t>(bias.size())},
                   static_cast<int64_t>(x.size()));
    });
    const double c = test::kComputeRoundoff<T>;
    expect_near(cuda.y, cpu.y, 8 * c, 0.2 * c + test::kTiny<T>, "y");
    EXPECT_EQ(cuda.mask, cpu.mask);
}

TYPED_TEST(CudaKernels, GeluOfOddLengthsAndShiftsEqualsTheCpu) {
    for (const int64_t count : kCounts) {
        for (const size_t shift : {0, 1}) {
            const Shift shifted(shift, shift, 0);
            expect_gelu_of_the_cpu<TypeParam>(test::normal<TypeParam>(count, 2, 0, 2), {});
        }
    }
}

/// Packs of the bias that divide a tile, that do not, one alone, and sizes without packs.
TYPED_TEST(CudaKernels, GeluWithBiasEqualsTheCpu) {
    for (const int64_t size : {1, 4, 7, 8, 24, 256, 264, 1000, 3072}) {
        const auto x = test::normal<TypeParam>((size < 256 ? 999 : 9) * size, 1);
        expect_gelu_of_the_cpu(x, test::normal<TypeParam>(size, 2));
    }
}

TYPED_TEST(CudaKernels, GeluBackwardOfOddLengthsAndShiftsEqualsTheCpu) {
    using T = TypeParam;
    for (const int64_t count : {1, 7, 255, 256, 257, 2049, 2304}) {
        for (const GeluKind kind : {GeluKind::kErf, GeluKind::kTanh}) {
            const auto x = test::normal<T>(count, 1, 0, 2), dy = test::normal<T>(count, 2);
            std::vector<T> y(x.size());
            auto mask = mask_for(MaskKind::kBit, x);
            OnCpu::run(
                InplaceGeluForwardArgs<T>{
                    .x = x.data(), .y = y.data(), .mask = mask.data(), .kind = kind},
                count);
            for (const size_t shift : {0, 1}) {
                const Shift shifted(shift, 0, 0);
                std::vector<T> cpu(x.size()), cuda(x.size());
                run_on_both(cpu, cuda, [&](auto device, std::vector<T>& dx) {
                    device.run(InplaceGeluBackwardArgs<T>{.dy = dy.data(),
                                                          .y = y.data(),
                                                          .mask = mask.data(),
                                                          .dx = dx.data(),
                                                          .kind = kind},
                               count);
                });
                // 16-bit types take fits with an error of 6e-5 on CUDA.
                const double fit = sizeof(T) == 2 ? 3e-4 : 1e-5;
                expect_near(cuda, cpu, fit, fit, "dx");
            }
        }
    }
}

// --- rows of LayerNorm --------------------------------------------------------------------------

struct NormCase {
    int64_t num_rows = 0, size = 0;
    LayerNormSave save = LayerNormSave::kOutput;  // kNormalized: forward writes x̂, too
    bool has_gamma = true, has_beta = true, subtract_mean = true;
    bool separately = false;         // dx, dgamma and dbeta by calls of their own
    double mean = 0, deviation = 1;  // of x
    double sum_terms = 2000;         // roundings of dgamma and dbeta
};

/// X is the type of x, the parameters and their gradients.
template <typename T, typename X = T>
void expect_norm_of_the_cpu(const NormCase& of) {
    using S = StatOf<T>;
    SCOPED_TRACE(testing::Message() << of.num_rows << " x " << of.size);
    const auto rows = static_cast<size_t>(of.num_rows), h = static_cast<size_t>(of.size);
    const bool from_output = of.save == LayerNormSave::kOutput;
    const auto x = test::normal<X>(of.num_rows * of.size, 1, of.mean, of.deviation),
               gamma = test::normal<X>(of.size, 3, 1, 0.1),
               beta = test::normal<X>(of.size, 4, 0, 0.3);
    const auto dy = test::normal<T>(of.num_rows * of.size, 2);
    struct Results {
        std::vector<T> y, normalized;
        std::vector<S> rstd;
        std::vector<X> dx, dgamma, dbeta;
    };
    Results cpu{.y = std::vector<T>(dy.size()),
                .normalized = cpu.y,
                .rstd = std::vector<S>(rows),
                .dx = std::vector<X>(dy.size()),
                .dgamma = std::vector<X>(h),
                .dbeta = cpu.dgamma};
    Results cuda = cpu;
    run_on_both(cpu, cuda, [&](auto device, Results& to) {
        device.run(
            LayerNormForwardArgs<T>{.x = x.data(),
                                    .gamma = of.has_gamma ? gamma.data() : nullptr,
                                    .beta = of.has_beta ? beta.data() : nullptr,
                                    .y = to.y.data(),
                                    .normalized = from_output ? nullptr : to.normalized.data(),
                                    .rstd = to.rstd.data(),
                                    .hidden_size = of.size,
                                    .eps = 1e-5,
                                    .subtract_mean = of.subtract_mean},
            of.num_rows);
    });
    run_on_both(cpu, cuda, [&](auto device, Results& to) {
        std::vector<S> partials(2 * h * static_cast<size_t>(device.num_partials(of.num_rows)));
        LayerNormBackwardArgs<T> args{.dy = dy.data(),
                                      .saved = (from_output ? cpu.y : cpu.normalized).data(),
                                      .gamma = of.has_gamma ? gamma.data() : nullptr,
                                      .beta = of.has_beta ? beta.data() : nullptr,
                                      .rstd = cpu.rstd.data(),
                                      .dx = to.dx.data(),
                                      .partials = of.separately ? nullptr : partials.data(),
                                      .save = of.save,
                                      .hidden_size = of.size,
                                      .subtract_mean = of.subtract_mean};
        device.run(args, of.num_rows);
        X *dgamma = to.dgamma.data(), *dbeta = of.subtract_mean ? to.dbeta.data() : nullptr;
        if (of.separately) {
            args.dx = nullptr;
            args.partials = partials.data();
            device.run(args, of.num_rows);
            device.template reduce<X>(partials, of.num_rows, of.size, dgamma, nullptr);
            dgamma = nullptr;
        }
        device.template reduce<X>(partials, of.num_rows, of.size, dgamma, dbeta);
    });
    const double c = test::kComputeRoundoff<T>, u = test::kRoundoff<T>;
    const double of_dx = std::is_same_v<T, X> ? 400 * c + 2 * u : 400 * c;
    expect_near(cuda.y, cpu.y, 0, 100 * c + u, "y");
    expect_near(cuda.normalized, cpu.normalized, 0, 100 * c + u, "normalized");
    expect_near(cuda.rstd, cpu.rstd, 40 * c, 0, "rstd");
    expect_near(cuda.dx, cpu.dx, 0, of_dx, "dx");
    expect_near(cuda.dgamma, cpu.dgamma, 0, of.sum_terms * c, "dgamma");
    expect_near(cuda.dbeta, cpu.dbeta, 0, of.sum_terms * c, "dbeta");
}

/// Rows in registers: several warps to a row, several rows to a block, and more rows than partials.
/// With 1840 and 240 rows large cards also have more blocks than partials. Then rows of any length.
const std::vector<std::pair<int64_t, int64_t>> kRowShapes = {
    {1, 3},    {5, 8},    {7, 65},   {70, 512}, {9, 1024}, {230, 1600}, {1840, 264},
    {3, 4096}, {5, 4104}, {3, 8192}, {3, 8200}, {5, 5001}, {240, 2056}};

TYPED_TEST(CudaKernels, LayerNormEqualsTheCpu) {
    for (const auto& [num_rows, size] : kRowShapes) {
        for (const LayerNormSave save : {LayerNormSave::kOutput, LayerNormSave::kNormalized}) {
            expect_norm_of_the_cpu<TypeParam>(
                {.num_rows = num_rows,
                 .size = size,
                 .save = save,
                 .mean = 0.3,
                 .deviation = 2,
                 .sum_terms = 2000 * std::sqrt(static_cast<double>(num_rows))});
        }
    }
}

/// Rows in registers and rows of any length, without gamma, without beta, and without each result
/// once.
TYPED_TEST(CudaKernels, LayerNormWithoutAffineOrUnwantedResultsEqualsTheCpu) {
    for (const int64_t size : {264, 65, 4100}) {
        for (const auto& [has_gamma, has_beta] : {std::pair(0, 0), {1, 0}, {0, 1}}) {
            expect_norm_of_the_cpu<TypeParam>({.num_rows = 9,
                                               .size = size,
                                               .has_gamma = has_gamma != 0,
                                               .has_beta = has_beta != 0,
                                               .separately = true});
        }
    }
}

/// Rows in registers and rows of any length, from the output and from x̂, with and without gamma.
TYPED_TEST(CudaKernels, RmsNormEqualsTheCpu) {
    for (const int64_t size : {8, 264, 65, 1024, 4100}) {
        for (const auto& [has_gamma, save] : {std::pair(true, LayerNormSave::kOutput),
                                              {true, LayerNormSave::kNormalized},
                                              {false, LayerNormSave::kOutput}}) {
            expect_norm_of_the_cpu<TypeParam>({.num_rows = 70,
                                               .size = size,
                                               .save = save,
                                               .has_gamma = has_gamma,
                                               .has_beta = false,
                                               .subtract_mean = false,
                                               .mean = 0.3,
                                               .deviation = 2,
                                               .sum_terms = 2000 * std::sqrt(70.0)});
        }
    }
}

/// kCentered: with all that Substation keeps, and backward from that.
struct ResidualCase {
    int64_t num_rows = 0, size = 0;
    MaskKind kind = MaskKind::kBit;
    double p = 0.1;
    LayerNormSave save = LayerNormSave::kOutput;
    bool is_affine = true;
    bool has_sum = true;
};

/// Wide is the type of the residual stream of a pre-LN layer, its gradients, and the parameters.
/// The mask has the same bits, and so has the sum, since both round after each step.
template <typename T, typename Wide = T>
void expect_residual_of_the_cpu(const ResidualCase& of) {
    using S = StatOf<T>;
    constexpr bool kIsWide = !std::is_same_v<T, Wide>;
    SCOPED_TRACE(testing::Message() << of.num_rows << " x " << of.size << ", p " << of.p);
    const int64_t size = of.size, count = of.num_rows * size;
    const auto n = static_cast<size_t>(count), h = static_cast<size_t>(size);
    const bool centers = of.save == LayerNormSave::kCentered;
    const auto x = test::normal<T>(count, 1), dy = test::normal<T>(count, 3),
               bias = test::normal<T>(size, 6);
    const auto residual = test::normal<Wide>(count, 2), dsum = test::normal<Wide>(count, 4),
               gamma = test::normal<Wide>(size, 4, 1, 0.1),
               beta = test::normal<Wide>(size, 5, 0, 0.3);
    struct Results {
        std::vector<T> y, normalized, centered, biased, dx;
        std::vector<Wide> sum, dresidual, dgamma, dbeta;
        std::vector<S> rstd;
        std::vector<uint8_t> mask;
    };
    const std::vector<T> empty(n);
    Results cpu{.y = empty,
                .normalized = empty,
                .centered = empty,
                .biased = empty,
                .dx = empty,
                .sum = std::vector<Wide>(n),
                .dresidual = std::vector<Wide>(n),
                .dgamma = std::vector<Wide>(h),
                .dbeta = std::vector<Wide>(h),
                .rstd = std::vector<S>(static_cast<size_t>(of.num_rows)),
                .mask = mask_for(of.kind, x)};
    Results cuda = cpu;
    run_on_both(cpu, cuda, [&](auto device, Results& to) {
        ResidualLayerNormForwardArgs<T> args{.x = x.data(),
                                             .residual = residual.data(),
                                             .y = to.y.data(),
                                             .rstd = to.rstd.data(),
                                             .mask = to.mask.data(),
                                             .mask_kind = of.kind,
                                             .dropout_p = of.p,
                                             .key = kKey,
                                             .hidden_size = size};
        if (of.is_affine) args.gamma = gamma.data(), args.beta = beta.data();
        if (of.has_sum) args.sum = to.sum.data();
        if (of.save != LayerNormSave::kOutput) args.normalized = to.normalized.data();
        if (centers) {
            args.bias = bias.data();
            args.biased = to.biased.data();
            args.centered = to.centered.data();
        }
        device.run(args, of.num_rows);
    });
    const auto& saved = centers                                 ? cpu.centered
                        : of.save == LayerNormSave::kNormalized ? cpu.normalized
                                                                : cpu.y;
    run_on_both(cpu, cuda, [&](auto device, Results& to) {
        std::vector<S> partials(2 * h * static_cast<size_t>(device.num_partials(of.num_rows)));
        ResidualLayerNormBackwardArgs<T> args{.dy = dy.data(),
                                              .saved = saved.data(),
                                              .rstd = cpu.rstd.data(),
                                              .mask = to.mask.data(),
                                              .dx = to.dx.data(),
                                              .dresidual = to.dresidual.data(),
                                              .save = of.save,
                                              .mask_kind = of.kind,
                                              .dropout_p = of.p,
                                              .key = kKey,
                                              .hidden_size = size};
        if (of.is_affine && !centers) args.gamma = gamma.data(), args.beta = beta.data();
        if (of.has_sum) args.dsum = dsum.data();
        if (!kIsWide && !centers) args.partials = partials.data();
        device.run(args, of.num_rows);
        device.template reduce<Wide>(partials, of.num_rows, size, to.dgamma.data(),
                                     to.dbeta.data());
    });
    const double u = test::kRoundoff<T>, c = test::kComputeRoundoff<T>;
    const double sums = 2000 * c * std::sqrt(static_cast<double>(of.num_rows) / 7);
    EXPECT_EQ(cuda.mask, cpu.mask);
    EXPECT_TRUE(test::same_bits(cuda.sum, cpu.sum));
    EXPECT_TRUE(test::same_bits(cuda.biased, cpu.biased));
    expect_near(cuda.y, cpu.y, 0, 100 * c + u, "y");
    expect_near(cuda.normalized, cpu.normalized, 0, 100 * c + u, "normalized");
    expect_near(cuda.centered, cpu.centered, 0, 100 * c + u, "centered");
    expect_near(cuda.dresidual, cpu.dresidual, 0, 400 * c + (kIsWide ? 0 : 4 * u), "dresidual");
    expect_near(cuda.dx, cpu.dx, 0, 400 * c + (kIsWide ? 2 : 8) * u, "dx");
    expect_near(cuda.dgamma, cpu.dgamma, 0, sums, "dgamma");
    expect_near(cuda.dbeta, cpu.dbeta, 0, sums, "dbeta");
}

TYPED_TEST(CudaKernels, ResidualLayerNormEqualsTheCpu) {
    for (const auto& [num_rows, size] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 8}, {70, 264}, {230, 768}, {9, 1600}, {3, 4096}, {3, 8192}}) {
        if (sizeof(TypeParam) == 8 && size > kMaxFusedHiddenSize / 2) continue;
        for (const MaskKind kind : kMaskKinds) {
            expect_residual_of_the_cpu<TypeParam>(
                {.num_rows = num_rows, .size = size, .kind = kind, .is_affine = false});
        }
    }
}

/// With gamma and beta, from x̂, without the sum's gradient; and what Substation keeps.
TYPED_TEST(CudaKernels, ResidualLayerNormOfEveryProbabilityEqualsTheCpu) {
    for (const double p : {0.0, 0.3, 1.0}) {
        ResidualCase of{.num_rows = 7, .size = 264, .p = p, .has_sum = false};
        for (const MaskKind kind : kMaskKinds) {
            of.kind = kind;
            of.save = LayerNormSave::kNormalized;
            expect_residual_of_the_cpu<TypeParam>(of);
        }
        of.save = LayerNormSave::kCentered;
        of.kind = MaskKind::kElement;
        expect_residual_of_the_cpu<TypeParam>(of);
    }
}

template <typename T>
class CudaBesideFloat : public test::CudaKernels<T> {};
using SixteenBitTypes = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(CudaBesideFloat, SixteenBitTypes);

/// Rows in registers and rows of any length; x, gamma, beta and dx are float.
TYPED_TEST(CudaBesideFloat, LayerNormEqualsTheCpu) {
    for (const int64_t size : {264, 1600, 65}) {
        expect_norm_of_the_cpu<TypeParam, float>({.num_rows = 9, .size = size});
    }
}

TYPED_TEST(CudaBesideFloat, ResidualLayerNormEqualsTheCpu) {
    for (const int64_t size : {264, 1032}) {
        expect_residual_of_the_cpu<TypeParam, float>({.num_rows = 7, .size = size, .p = 0.3});
    }
}

// --- rows of softmax ----------------------------------------------------------------------------

/// A row of softmax and dropout, and backward from the CPU's probabilities: in place, if dropout
/// keeps some keys and drops others.
template <typename T>
void expect_softmax_dropout_of_the_cpu(SoftmaxDropoutForwardArgs<T> args, int64_t num_rows,
                                       const std::vector<T>& dd) {
    SCOPED_TRACE(testing::Message() << args.num_keys << " keys, p " << args.dropout_p);
    struct Results {
        std::vector<T> probs, dropped, again, dscores;
        std::vector<uint8_t> mask;
    };
    const std::vector<T> empty(dd.size());
    const bool in_place = args.dropout_p > 0 && args.dropout_p < 1;
    Results cpu{.probs = empty,
                .dropped = empty,
                .again = empty,
                .dscores = in_place ? dd : empty,
                .mask = mask_for(args.mask_kind, dd)};
    Results cuda = cpu;
    run_on_both(cpu, cuda, [&](auto device, Results& to) {
        args.probs = to.probs.data();
        args.dropped = args.dropout_p > 0 ? to.dropped.data() : nullptr;
        args.mask = args.dropout_p > 0 ? to.mask.data() : nullptr;
        device.run(args, num_rows);
        if (args.dropout_p > 0) {
            device.run(RecomputeDroppedArgs<T>{.probs = to.probs.data(),
                                               .dropped = to.again.data(),
                                               .mask = to.mask.data(),
                                               .mask_kind = args.mask_kind,
                                               .dropout_p = args.dropout_p,
                                               .key = args.key,
                                               .num_keys = args.num_keys},
                       num_rows);
        }
        device.run(
            SoftmaxDropoutBackwardArgs<T>{.ddropped = in_place ? to.dscores.data() : dd.data(),
                                          .probs = cpu.probs.data(),
                                          .mask = args.mask,
                                          .dscores = to.dscores.data(),
                                          .mask_kind = args.mask_kind,
                                          .dropout_p = args.dropout_p,
                                          .key = args.key,
                                          .scale = args.scale,
                                          .num_keys = args.num_keys},
            num_rows);
    });
    const double c = test::kComputeRoundoff<T>, u = test::kRoundoff<T>;
    expect_near(cuda.probs, cpu.probs, 100 * c, test::kTiny<T>, "probs");
    EXPECT_TRUE(test::same_bits(cuda.again, cuda.dropped));
    EXPECT_EQ(cuda.mask, cpu.mask);
    expect_near(cuda.dscores, cpu.dscores, 100 * c, 100 * c + 4 * u, "dscores");
    EXPECT_TRUE(args.dropout_p < 1 || test::same_bits(cuda.dropped, empty));
}

TYPED_TEST(CudaKernels, SoftmaxDropoutEqualsTheCpu) {
    using T = TypeParam;
    const int64_t num_heads = 3, num_queries = 13, num_rows = num_heads * num_queries;
    for (const int64_t num_keys :
         {1, 5, 8, 63, 64, 120, 128, 136, 384, 512, 1000, 1024, 2048, 2049}) {
        const auto scores = test::normal<T>(num_rows * num_keys, 1, 0, 3),
                   additive = test::normal<T>(num_heads * num_keys, 2);
        for (const MaskKind kind : kMaskKinds) {
            expect_softmax_dropout_of_the_cpu<T>({.scores = scores.data(),
                                                  .additive_mask = additive.data(),
                                                  .mask_kind = kind,
                                                  .dropout_p = 0.1,
                                                  .key = kKey,
                                                  .scale = 0.5,
                                                  .num_keys = num_keys,
                                                  .num_queries = std::min(num_queries, num_keys),
                                                  .rows_per_mask = num_queries,
                                                  .causal = num_keys % 2 == 0},
                                                 num_rows, test::normal<T>(num_rows * num_keys, 3));
        }
    }
}

/// One warp a row, half a warp, and rows of any length.
TYPED_TEST(CudaKernels, SoftmaxWithoutDropoutAndWithProbability1EqualsTheCpu) {
    using T = TypeParam;
    for (const int64_t size : {64, 65, 192, 2056}) {
        const auto scores = test::normal<T>(6 * size, 1, 0, 3);
        for (const double p : {0.0, 1.0}) {
            for (const MaskKind kind : kMaskKinds) {
                expect_softmax_dropout_of_the_cpu<T>({.scores = scores.data(),
                                                      .mask_kind = kind,
                                                      .dropout_p = p,
                                                      .key = kKey,
                                                      .num_keys = size,
                                                      .num_queries = size},
                                                     6, test::normal<T>(6 * size, 2));
            }
        }
    }
}

/// Six rows of causal softmax, three for each row of the mask (none if empty).
template <typename T>
void expect_softmax_of_the_cpu(const std::vector<T>& scores, const std::vector<T>& additive,
                               double scale) {
    const auto row = scores.size() / 6;
    std::vector<T> cpu(scores.size()), cuda(scores.size());
    run_on_both(cpu, cuda, [&](auto device, std::vector<T>& probs) {
        device.run(SoftmaxDropoutForwardArgs<T>{.scores = scores.data(),
                                                .additive_mask =
                                                    additive.empty() ? nullptr : additive.data(),
                                                .probs = probs.data(),
                                                .scale = scale,
                                                .num_keys = static_cast<int64_t>(row),
                                                .num_queries = 3,
                                                .rows_per_mask = 3,
                                                .causal = true},
                   6);
    });
    const double relative = 100 * test::kComputeRoundoff<T> + 2 * test::kRoundoff<T>;
    for (size_t i = 0; i < scores.size(); ++i) {
        const double p = to_double(cpu[i]);
        ASSERT_EQ(std::isnan(to_double(cuda[i])), std::isnan(p)) << i << " " << scale;
        if (std::isnan(p)) continue;
        ASSERT_NEAR(to_double(cuda[i]), p, p * relative + test::kTiny<T>)
            << "row " << i / row << ", scale " << scale << ", masked " << !additive.empty();
    }
}

/// NaN, infinities and scales that turn the order of the keys, with and without an additive mask.
TYPED_TEST(CudaKernels, SoftmaxOfSpecialScoresAndScalesEqualsTheCpu) {
    using T = TypeParam;
    const double inf = std::numeric_limits<double>::infinity();
    for (const int64_t size : {64, 65, 264}) {
        const auto row = static_cast<size_t>(size);
        auto scores = test::normal<T>(6 * size, 1, 0, 3);
        scores[row] = from_double<T>(std::nan(""));
        std::fill_n(scores.begin() + 2 * size, size, from_double<T>(-inf));
        scores[3 * row + 5] = from_double<T>(inf);
        scores[4 * row + 7] = from_double<T>(-inf);
        for (const double scale : {0.5, 0.0, -0.5}) {
            expect_softmax_of_the_cpu<T>(scores, {}, scale);
            expect_softmax_of_the_cpu(scores, test::normal<T>(2 * size, 2), scale);
        }
    }
}

template <typename T>
constexpr double kLowest = std::numeric_limits<StatOf<T>>::lowest();
template <>
constexpr double kLowest<Half> = -65504;
template <>
constexpr double kLowest<BFloat16> = -0x1.FEp127;

/// A mask of the lowest number hides some keys of a row, or all. Softmax must take exponentials of
/// differences: those of the numbers themselves are not finite.
TYPED_TEST(CudaKernels, SoftmaxOfTheLowestNumbersEqualsTheCpu) {
    using T = TypeParam;
    for (const int64_t size : {64, 65, 264}) {
        auto scores = test::normal<T>(6 * size, 1, 0, 3);
        // Multiples of 1/2, so that also their sums with the mask are exact, in any order.
        for (T& score : scores) score = from_double<T>(std::round(to_double(score)));
        for (const double share : {1.0, 0.5, 1e-3}) {
            std::vector<T> additive(2 * static_cast<size_t>(size));
            const T masked = from_double<T>(share * kLowest<T>);
            std::fill(additive.begin() + 3, additive.end(), masked);
            expect_softmax_of_the_cpu(scores, additive, 0.5);
        }
    }
}

}  // namespace
}  // namespace kernels
