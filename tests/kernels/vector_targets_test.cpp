// Goal: results do not depend on the vector width that Highway picks. The scalar baseline, which
// old processors run, agrees with the widest target of this machine.

#include "kernels/dropout.h"
#include "kernels/inplace_gelu.h"
#include "kernels/inplace_layernorm.h"
#include "kernels/softmax_dropout.h"
#include "tests/kernels/kernel_test_support.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace kernels {
namespace {

const DropoutKey kKey = {.seed = 17, .rank = 2, .step = 1, .layer = 5, .site = 0};

/// All outputs of one round of calls.
template <typename T>
struct Results {
    std::vector<T> dropped, gelu, dgelu, normalized, dx, probs, dscores;
    std::vector<uint8_t> keep, branch;
};

template <typename T>
Results<T> run_all() {
    const int64_t num_rows = 9, size = 77, count = num_rows * size;
    const auto n = static_cast<size_t>(count);
    const auto x = test::normal<T>(count, 1, 0, 2), dy = test::normal<T>(count, 2);
    Results<T> r;
    for (auto* result :
         {&r.dropped, &r.gelu, &r.dgelu, &r.normalized, &r.dx, &r.probs, &r.dscores}) {
        result->resize(n);
    }
    r.keep.resize(n);
    r.branch.resize(static_cast<size_t>(packed_bytes(count)));
    dropout_forward<T>({.x = x.data(),
                        .y = r.dropped.data(),
                        .mask = r.keep.data(),
                        .mask_kind = MaskKind::kByte,
                        .dropout_p = 0.3,
                        .key = kKey},
                       0, count);
    inplace_gelu_forward<T>({.x = x.data(), .y = r.gelu.data(), .mask = r.branch.data()}, 0, count);
    inplace_gelu_backward<T>(
        {.dy = dy.data(), .y = r.gelu.data(), .mask = r.branch.data(), .dx = r.dgelu.data()}, 0,
        count);
    std::vector<StatOf<T>> rstd(static_cast<size_t>(num_rows));
    layer_norm_forward<T>({.x = x.data(),
                           .y = r.normalized.data(),
                           .rstd = rstd.data(),
                           .hidden_size = size,
                           .eps = 1e-5},
                          0, num_rows);
    layer_norm_backward<T>({.dy = dy.data(),
                            .saved = r.normalized.data(),
                            .rstd = rstd.data(),
                            .dx = r.dx.data(),
                            .hidden_size = size,
                            .num_rows = num_rows},
                           0, 1);
    std::vector<T> dropped(n);
    softmax_dropout_forward<T>({.scores = x.data(),
                                .probs = r.probs.data(),
                                .dropped = dropped.data(),
                                .mask_kind = MaskKind::kNone,
                                .dropout_p = 0.3,
                                .key = kKey,
                                .num_keys = size},
                               0, num_rows);
    softmax_dropout_backward<T>({.ddropped = dy.data(),
                                 .probs = r.probs.data(),
                                 .dscores = r.dscores.data(),
                                 .mask_kind = MaskKind::kNone,
                                 .dropout_p = 0.3,
                                 .key = kKey,
                                 .num_keys = size},
                                0, num_rows);
    return r;
}

/// Fused multiply-adds round once, the baseline twice, so a stored value may round the other way.
template <typename T>
void expect_near(const std::vector<T>& got, const std::vector<T>& expected, const char* what,
                 double absolute = 0) {
    for (size_t i = 0; i < got.size(); ++i) {
        const double tolerance = 4 * test::kRoundoff<T> * std::abs(to_double(expected[i])) +
                                 100 * test::kComputeRoundoff<T> + absolute;
        ASSERT_NEAR(to_double(got[i]), to_double(expected[i]), tolerance)
            << what << " element " << i;
    }
}

template <typename T>
class VectorTargets : public testing::Test {
protected:
    static void use(int64_t targets) {
        hwy::SetSupportedTargetsForTest(targets);  // 0: those of the machine
        hwy::GetChosenTarget().DeInit();           // the next call chooses again
    }
    void TearDown() override { use(0); }
};
using Types = testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(VectorTargets, Types);

TYPED_TEST(VectorTargets, BaselineAgreesWithTheWidest) {
    using T = TypeParam;
    this->use(0);
    const Results<T> widest = run_all<T>();
    this->use(HWY_SCALAR);
    const Results<T> baseline = run_all<T>();
    EXPECT_TRUE(test::same_bits(baseline.dropped, widest.dropped));
    EXPECT_EQ(baseline.keep, widest.keep);
    EXPECT_EQ(baseline.branch, widest.branch);
    expect_near(baseline.gelu, widest.gelu, "gelu");
    expect_near(baseline.normalized, widest.normalized, "normalized");
    expect_near(baseline.probs, widest.probs, "probs");
    expect_near(baseline.dscores, widest.dscores, "dscores");
    // Saved values differ by an ulp, so gradients differ by a few; near x* by its square root.
    expect_near(baseline.dx, widest.dx, "dx", 8 * test::kRoundoff<T>);
    expect_near(baseline.dgelu, widest.dgelu, "dgelu", 4 * std::sqrt(test::kRoundoff<T>));
}

}  // namespace
}  // namespace kernels
