// Goal: kernels index tensors of more than 2^31 elements correctly, and the emulation that runs the
// CUDA kernels here refuses what would hang on a GPU. Such tensors need not exist. Either only the
// last blocks of the grid run, on pointers shifted so that their elements are a small window; or,
// if a block walks over the whole tensor, it walks over address space in which only the touched
// pages become memory.

#include "tests/kernels/cuda_on_cpu.h"

#include "kernels/dropout.h"
#include "kernels/inplace_gelu.h"
#include "kernels/inplace_layernorm.h"
#include "kernels/residual_layernorm.h"
#include "kernels/softmax_dropout.h"
#include "tests/kernels/kernel_test_support.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <algorithm>
#include <limits>
#include <new>

namespace kernels {
namespace {

const DropoutKey kKey = {.seed = 77, .rank = 2, .step = 3, .layer = 4, .site = 1};

/// The last `count` elements of a tensor of `first + count`: data() is where element 0 would be.
template <typename T>
class Window {
public:
    Window(int64_t first, const std::vector<T>& values) : first_(first), values_(values) {}
    Window(int64_t first, int64_t count) : Window(first, std::vector<T>(size_t(count))) {}
    T* data() { return values_.data() - first_; }
    const std::vector<T>& values() const { return values_; }

private:
    int64_t first_;
    std::vector<T> values_;
};

/// Only the last block of a grid runs during its lifetime.
struct LastBlockOnly {
    LastBlockOnly() { cuda_on_cpu::run_last_blocks_only(1); }
    ~LastBlockOnly() { cuda_on_cpu::run_last_blocks_only(0); }
};

class BeyondTwoToThe31 : public testing::TestWithParam<MaskKind> {
protected:
    /// What dropout alone makes of these elements: its mask, and x where it is kept.
    struct Dropped {
        std::vector<uint8_t> mask;
        std::vector<float> y;
    };
    static Dropped dropout_of(int64_t begin, const std::vector<float>& values) {
        const auto count = static_cast<int64_t>(values.size());
        Window<float> x(begin, values), y(begin, count);
        Window<uint8_t> mask(GetParam() == MaskKind::kBit ? begin / 8 : begin,
                             mask_bytes<float>(GetParam(), count));
        dropout_forward<float>({.x = x.data(),
                                .y = y.data(),
                                .mask = mask.data(),
                                .mask_kind = GetParam(),
                                .dropout_p = 0.3,
                                .key = kKey},
                               begin, begin + count);
        return {mask.values(), y.values()};
    }

private:
    LastBlockOnly last_block_only_;
};

void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << i;
}

/// A whole tile and a partial one.
TEST_P(BeyondTwoToThe31, FlatKernels) {
    const int64_t begin = int64_t{1} << 33, rest = 256 + 77, count = begin + rest;
    const int64_t mask_begin = GetParam() == MaskKind::kBit ? begin / 8 : begin;
    const int64_t mask_size = mask_bytes<float>(GetParam(), rest);
    Window<float> x(begin, test::normal<float>(rest, 1)), y(begin, rest), expected(begin, rest);
    Window<uint8_t> mask(mask_begin, mask_size), expected_mask(mask_begin, mask_size);
    DropoutForwardArgs<float> drop = {.x = x.data(),
                                      .y = y.data(),
                                      .mask = mask.data(),
                                      .mask_kind = GetParam(),
                                      .dropout_p = 0.3,
                                      .key = kKey};
    launch(drop, count, nullptr);
    drop.y = expected.data();
    drop.mask = expected_mask.data();
    dropout_forward(drop, begin, count);
    EXPECT_TRUE(test::same_bits(y.values(), expected.values()));
    EXPECT_EQ(mask.values(), expected_mask.values());
    launch(DropoutBackwardArgs<float>{.dy = x.data(),
                                      .dx = y.data(),
                                      .mask = mask.data(),
                                      .mask_kind = GetParam(),
                                      .dropout_p = 0.3,
                                      .key = kKey},
           count, nullptr);
    EXPECT_TRUE(test::same_bits(y.values(), expected.values()));
    if (GetParam() == MaskKind::kNone) return;

    const auto bias = test::normal<float>(1000, 2);
    InplaceGeluForwardArgs<float> gelu = {.x = x.data(),
                                          .y = y.data(),
                                          .mask = mask.data(),
                                          .mask_kind = GetParam(),
                                          .bias = bias.data(),
                                          .bias_size = 1000};
    launch(gelu, count, nullptr);
    gelu.y = expected.data();
    gelu.mask = expected_mask.data();
    inplace_gelu_forward(gelu, begin, count);
    expect_near(y.values(), expected.values());
    EXPECT_EQ(mask.values(), expected_mask.values());
    Window<float> dx(begin, rest), expected_dx(begin, rest);
    InplaceGeluBackwardArgs<float> back = {.dy = x.data(),
                                           .y = expected.data(),
                                           .mask = mask.data(),
                                           .dx = dx.data(),
                                           .mask_kind = GetParam()};
    launch(back, count, nullptr);
    back.dx = expected_dx.data();
    inplace_gelu_backward(back, begin, count);
    expect_near(dx.values(), expected_dx.values());
}

/// Four rows, half a warp each.
TEST_P(BeyondTwoToThe31, SoftmaxDropout) {
    const int64_t size = 128, first_row = int64_t{1} << 26, num_rows = first_row + 4;
    const int64_t begin = first_row * size, rest = 4 * size;
    const int64_t mask_begin = GetParam() == MaskKind::kBit ? begin / 8 : begin;
    const int64_t mask_size = mask_bytes<float>(GetParam(), rest);
    Window<float> scores(begin, test::normal<float>(rest, 1)), probs(begin, rest),
        dropped(begin, rest), expected_probs(begin, rest), expected_dropped(begin, rest);
    Window<uint8_t> mask(mask_begin, mask_size), expected_mask(mask_begin, mask_size);
    SoftmaxDropoutForwardArgs<float> args = {.scores = scores.data(),
                                             .probs = probs.data(),
                                             .dropped = dropped.data(),
                                             .mask = mask.data(),
                                             .mask_kind = GetParam(),
                                             .dropout_p = 0.3,
                                             .key = kKey,
                                             .num_keys = size,
                                             .num_queries = size,
                                             .causal = true};
    launch(args, num_rows, nullptr);
    args.probs = expected_probs.data();
    args.dropped = expected_dropped.data();
    args.mask = expected_mask.data();
    softmax_dropout_forward(args, first_row, num_rows);
    expect_near(probs.values(), expected_probs.values());
    expect_near(dropped.values(), expected_dropped.values());
    EXPECT_EQ(mask.values(), expected_mask.values());
    const Dropped alone = dropout_of(begin, expected_probs.values());
    EXPECT_EQ(mask.values(), alone.mask);
    EXPECT_TRUE(test::same_bits(expected_dropped.values(), alone.y));
    SoftmaxDropoutBackwardArgs<float> back = {.ddropped = scores.data(),
                                              .probs = expected_probs.data(),
                                              .mask = mask.data(),
                                              .dscores = probs.data(),
                                              .mask_kind = GetParam(),
                                              .dropout_p = 0.3,
                                              .key = kKey,
                                              .num_keys = size};
    launch(back, num_rows, nullptr);
    back.dscores = expected_dropped.data();
    softmax_dropout_backward(back, first_row, num_rows);
    expect_near(probs.values(), expected_dropped.values());
}

TEST_P(BeyondTwoToThe31, LayerNorm) {
    const int64_t size = 256, first_row = int64_t{1} << 25, num_rows = first_row + 4;
    const int64_t begin = first_row * size, rest = 4 * size;
    const int64_t mask_begin = GetParam() == MaskKind::kBit ? begin / 8 : begin;
    const int64_t mask_size = mask_bytes<float>(GetParam(), rest);
    Window<float> x(begin, test::normal<float>(rest, 1)), y(begin, rest), expected(begin, rest),
        rstd(first_row, 4);
    Window<uint8_t> mask(mask_begin, mask_size), expected_mask(mask_begin, mask_size);
    LayerNormForwardArgs<float> norm = {
        .x = x.data(), .y = y.data(), .rstd = rstd.data(), .hidden_size = size, .eps = 1e-5};
    launch(norm, num_rows, nullptr);
    norm.y = expected.data();
    layer_norm_forward(norm, first_row, num_rows);
    expect_near(y.values(), expected.values());
    ResidualLayerNormForwardArgs<float> residual = {.x = x.data(),
                                                    .residual = x.data(),
                                                    .y = y.data(),
                                                    .rstd = rstd.data(),
                                                    .mask = mask.data(),
                                                    .mask_kind = GetParam(),
                                                    .dropout_p = 0.3,
                                                    .key = kKey,
                                                    .hidden_size = size,
                                                    .eps = 1e-5};
    launch(residual, num_rows, nullptr);
    residual.y = expected.data();
    residual.mask = expected_mask.data();
    residual_layer_norm_forward(residual, first_row, num_rows);
    expect_near(y.values(), expected.values());
    EXPECT_EQ(mask.values(), expected_mask.values());
    EXPECT_EQ(mask.values(), dropout_of(begin, x.values()).mask);
}

/// All zeros until written.
template <typename T>
class SparseTensor {
public:
    explicit SparseTensor(int64_t count)
        : bytes_(static_cast<size_t>(count) * sizeof(T)),
          base_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
        if (base_ == MAP_FAILED) throw std::bad_alloc();
        madvise(base_, bytes_, MADV_NOHUGEPAGE);
    }
    SparseTensor(const SparseTensor&) = delete;
    SparseTensor& operator=(const SparseTensor&) = delete;
    ~SparseTensor() { munmap(base_, bytes_); }
    T* data() { return static_cast<T*>(base_); }

private:
    size_t bytes_;
    void* base_;
};

/// A backward of more than 2^31 elements. Its last block walks over every P-th row up to the last
/// one. The first and the last of these rows hold numbers; the others hold zeros, which add
/// nothing.
struct LargeBackward {
    explicit LargeBackward(int64_t row_size)
        : size(row_size),
          first_row(layer_norm_cuda_num_partials(int64_t{1} << 31) - 1),
          num_rows((first_row + 1) * ((int64_t{1} << 31) / ((first_row + 1) * size) + 2)),
          dy(num_rows * size),
          saved(num_rows * size),
          dx(num_rows * size),
          rstd(num_rows),
          dy_rows(test::normal<float>(2 * size, 1)),
          saved_rows(test::normal<float>(2 * size, 2)),
          gamma(test::normal<float>(size, 3, 1, 0.1)),
          beta(test::normal<float>(size, 4, 0, 0.3)),
          partials(static_cast<size_t>((first_row + 1) * 2 * size)) {
        for (int r = 0; r < 2; ++r) {
            std::copy_n(dy_rows.data() + r * size, size, dy.data() + begin(r));
            std::copy_n(saved_rows.data() + r * size, size, saved.data() + begin(r));
            rstd.data()[row(r)] = rstd_rows[r];
        }
    }
    int64_t row(int r) const { return r == 0 ? first_row : num_rows - 1; }
    int64_t begin(int r) const { return row(r) * size; }
    /// The two rows of a tensor.
    std::vector<float> rows_of(SparseTensor<float>& tensor) const {
        std::vector<float> rows;
        for (int r = 0; r < 2; ++r) {
            rows.insert(rows.end(), tensor.data() + begin(r), tensor.data() + begin(r) + size);
        }
        return rows;
    }
    /// dgamma and dbeta [2, H] of the last block.
    std::vector<float> sums_of_last_block() const {
        return {partials.end() - 2 * size, partials.end()};
    }

    int64_t size, first_row, num_rows;
    SparseTensor<float> dy, saved, dx, rstd;
    std::vector<float> dy_rows, saved_rows, gamma, beta, partials;
    float rstd_rows[2] = {0.7f, 1.3f};
};

/// The last block's dgamma and dbeta, computed on the CPU from the two rows.
std::vector<float> reduced(const std::vector<float>& partials, int64_t size) {
    std::vector<float> sums(static_cast<size_t>(2 * size));
    layer_norm_reduce<float>(
        {partials.data(), sums.data(), sums.data() + size, layer_norm_num_partials(2), size}, 0,
        size);
    return sums;
}

/// Rows in registers, and rows of any length.
TEST(LayerNormBeyondTwoToThe31, Backward) {
    const LastBlockOnly last_block_only;
    for (const int64_t size : {4096, 4100}) {
        LargeBackward large(size);
        LayerNormBackwardArgs<float> args = {.dy = large.dy.data(),
                                             .saved = large.saved.data(),
                                             .gamma = large.gamma.data(),
                                             .beta = large.beta.data(),
                                             .rstd = large.rstd.data(),
                                             .dx = large.dx.data(),
                                             .partials = large.partials.data(),
                                             .hidden_size = size};
        launch(args, large.num_rows, nullptr);
        std::vector<float> dx(static_cast<size_t>(2 * size)),
            partials(static_cast<size_t>(layer_norm_num_partials(2) * 2 * size));
        args.dy = large.dy_rows.data();
        args.saved = large.saved_rows.data();
        args.rstd = large.rstd_rows;
        args.dx = dx.data();
        args.partials = partials.data();
        args.num_rows = 2;
        layer_norm_backward(args, 0, layer_norm_num_partials(2));
        expect_near(large.rows_of(large.dx), dx);
        expect_near(large.sums_of_last_block(), reduced(partials, size));
    }
}

TEST_P(BeyondTwoToThe31, ResidualLayerNormBackward) {
    LargeBackward large(4096);
    const int64_t size = large.size, count = large.num_rows * size;
    SparseTensor<float> dresidual(count);
    SparseTensor<uint8_t> mask(std::max<int64_t>(1, mask_bytes<float>(GetParam(), count)));
    // The mask of both rows: where the kernel reads it, and as bytes for the CPU.
    std::vector<uint8_t> byte_mask;
    for (int r = 0; r < 2; ++r) {
        const int64_t begin = large.begin(r), end = begin + size;
        Window<float> x(begin, size);
        Window<uint8_t> bytes(begin, size);
        DropoutForwardArgs<float> drop = {.x = x.data(),
                                          .y = x.data(),
                                          .mask = mask.data(),
                                          .mask_kind = GetParam(),
                                          .dropout_p = 0.3,
                                          .key = kKey};
        dropout_forward(drop, begin, end);
        drop.mask = bytes.data();
        drop.mask_kind = MaskKind::kByte;
        dropout_forward(drop, begin, end);
        byte_mask.insert(byte_mask.end(), bytes.values().begin(), bytes.values().end());
    }
    ResidualLayerNormBackwardArgs<float> args = {.dy = large.dy.data(),
                                                 .saved = large.saved.data(),
                                                 .gamma = large.gamma.data(),
                                                 .beta = large.beta.data(),
                                                 .rstd = large.rstd.data(),
                                                 .mask = mask.data(),
                                                 .dx = large.dx.data(),
                                                 .dresidual = dresidual.data(),
                                                 .partials = large.partials.data(),
                                                 .mask_kind = GetParam(),
                                                 .dropout_p = 0.3,
                                                 .key = kKey,
                                                 .hidden_size = size};
    launch(args, large.num_rows, nullptr);
    std::vector<float> dx(static_cast<size_t>(2 * size)), dresidual_rows(dx.size()),
        partials(static_cast<size_t>(layer_norm_num_partials(2) * 2 * size));
    args.dy = large.dy_rows.data();
    args.saved = large.saved_rows.data();
    args.rstd = large.rstd_rows;
    args.mask = byte_mask.data();
    args.mask_kind = MaskKind::kByte;
    args.dx = dx.data();
    args.dresidual = dresidual_rows.data();
    args.partials = partials.data();
    args.num_rows = 2;
    residual_layer_norm_backward(args, 0, layer_norm_num_partials(2));
    expect_near(large.rows_of(large.dx), dx);
    expect_near(large.rows_of(dresidual), dresidual_rows);
    expect_near(large.sums_of_last_block(), reduced(partials, size));
}

/// Rows are counted in 32 bits, so a call with more rows is an error.
TEST(LayerNormBeyondTwoToThe31, BackwardRefusesSoManyRows) {
    const int64_t num_rows = int64_t{1} << 31;
    EXPECT_THROW(launch(LayerNormBackwardArgs<float>{.hidden_size = 8}, num_rows, nullptr),
                 std::runtime_error);
    EXPECT_THROW(launch(ResidualLayerNormBackwardArgs<float>{.hidden_size = 8}, num_rows, nullptr),
                 std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Masks, BeyondTwoToThe31,
                         testing::Values(MaskKind::kByte, MaskKind::kBit, MaskKind::kNone));

/// A card with so many multiprocessors during its lifetime.
struct Card {
    Card(int multiprocessors, bool runs_backwards) {
        cuda_on_cpu::set_multiprocessor_count(multiprocessors);
        cuda_on_cpu::run_backwards(runs_backwards);
    }
    ~Card() {
        cuda_on_cpu::set_multiprocessor_count(108);
        cuda_on_cpu::run_backwards(false);
    }
};

/// Backward of norms in T over the same numbers on any card.
template <typename T>
struct NormBackward {
    NormBackward(int64_t rows, int64_t row_size)
        : num_rows(rows),
          size(row_size),
          dy(test::normal<T>(rows * row_size, 1)),
          normalized(test::normal<T>(rows * row_size, 2)),
          gamma(test::normal<T>(row_size, 3, 1, 0.1)),
          dx(dy.size()),
          dresidual(dy.size()),
          rstd(static_cast<size_t>(rows), 0.7f),
          partials(static_cast<size_t>(2 * row_size * layer_norm_cuda_num_partials(rows))) {}

    template <typename Args>
    Args args() {
        std::ranges::fill(partials, std::numeric_limits<float>::quiet_NaN());
        Args a;
        a.dy = dy.data();
        a.saved = normalized.data();
        a.gamma = gamma.data();
        a.rstd = rstd.data();
        a.dx = dx.data();
        a.partials = partials.data();
        a.save = LayerNormSave::kNormalized;
        a.hidden_size = size;
        a.num_rows = num_rows;
        if constexpr (requires { a.dresidual; }) a.dresidual = dresidual.data();
        return a;
    }
    /// dgamma and dbeta [2, H] from the partials.
    std::vector<float> sums(int64_t num_partials) const {
        std::vector<float> sums(static_cast<size_t>(2 * size));
        layer_norm_reduce<float>(
            {partials.data(), sums.data(), sums.data() + size, num_partials, size}, 0, size);
        return sums;
    }
    std::vector<float> on_cpu() {
        layer_norm_backward(args<LayerNormBackwardArgs<T>>(), 0, layer_norm_num_partials(num_rows));
        return sums(layer_norm_num_partials(num_rows));
    }
    std::vector<float> sums_on(const Card&, bool of_residual, unsigned expected_blocks) {
        if (of_residual) {
            launch(args<ResidualLayerNormBackwardArgs<T>>(), num_rows, nullptr);
        } else {
            launch(args<LayerNormBackwardArgs<T>>(), num_rows, nullptr);
        }
        EXPECT_EQ(cuda_on_cpu::grid_size().x, expected_blocks);
        return sums(layer_norm_cuda_num_partials(num_rows));
    }

    int64_t num_rows, size;
    std::vector<T> dy, normalized, gamma, dx, dresidual;
    std::vector<float> rstd, partials;
};

/// In 16 bits larger cards run more blocks, two of which then share a partial, up to all of them.
/// Rows of 264 are eight at once, those of 2056 one.
TEST(NormBackwardOnCards, SumsAreRightAndDoNotDependOnTheOrderOfBlocks) {
    for (const bool of_residual : {false, true}) {
        const int64_t num_rows = of_residual ? 440 : 8 * 440, size = of_residual ? 2056 : 264;
        NormBackward<BFloat16> norm(num_rows, size);
        const std::vector<float> expected = norm.on_cpu();
        for (const auto& [multiprocessors, blocks] : {std::pair{132, 264u}, std::pair{400, 432u}}) {
            SCOPED_TRACE(std::to_string(multiprocessors) + (of_residual ? " residual" : ""));
            const auto sums = norm.sums_on(Card(multiprocessors, false), of_residual, blocks);
            for (size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(sums[i], expected[i], 1e-3);
            EXPECT_TRUE(test::same_bits(
                sums, norm.sums_on(Card(multiprocessors, true), of_residual, blocks)));
        }
    }
}

TEST(NormBackwardOnCards, FloatsFewRowsAndSmallCardsHaveABlockForEachPartial) {
    for (const bool of_residual : {false, true}) {
        NormBackward<float>(8 * 264, 264).sums_on(Card(132, false), of_residual, 216);
        NormBackward<BFloat16>(8 * 230, 264).sums_on(Card(132, false), of_residual, 230);
        NormBackward<BFloat16>(100, 264).sums_on(Card(132, false), of_residual, 100);
        NormBackward<BFloat16>(8 * 264, 264).sums_on(Card(20, false), of_residual, 216);
    }
}

TEST(CudaOnCpu, RefusesABarrierThatSomeThreadsDoNotReach) {
    const auto run = [](const std::function<void()>& thread) {
        cuda_on_cpu::run("kernel", 1, 64, thread);
    };
    run([] { __syncthreads(); });
    EXPECT_THROW(run([] {
                     if (threadIdx.x != 5) __syncthreads();
                 }),
                 std::runtime_error);
    EXPECT_THROW(run([] {
                     if (threadIdx.x != 5) __shfl_sync(~0u, 1, 0);
                 }),
                 std::runtime_error);
}

TEST(CudaOnCpu, ShufflesTakeTheValueOfTheirWarp) {
    std::vector<int> of_warp(64), of_half(64);
    cuda_on_cpu::run("kernel", 1, 64, [&] {
        const int own = static_cast<int>(threadIdx.x);
        const int neighbour = __shfl_xor_sync(~0u, own, 1);
        of_warp[threadIdx.x] = __shfl_sync(~0u, neighbour, 3);
        of_half[threadIdx.x] = __shfl_sync(~0u, neighbour, 3, 16);
    });
    for (size_t t = 0; t < 64; ++t) {
        EXPECT_EQ(of_warp[t], t / 32 * 32 + 2) << t;
        EXPECT_EQ(of_half[t], t / 16 * 16 + 2) << t;
    }
}

}  // namespace
}  // namespace kernels
