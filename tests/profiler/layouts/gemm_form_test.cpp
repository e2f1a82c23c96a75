#include "profiler/layouts/gemm_form.h"

#include <gtest/gtest.h>

namespace {

using namespace profiler;

DimensionSizes small() {
    DimensionSizes sizes;
    for (const auto& [dimension, size] : {std::pair('b', 2),
                                          {'j', 5},
                                          {'k', 5},
                                          {'h', 3},
                                          {'p', 4},
                                          {'i', 12},
                                          {'u', 14},
                                          {'c', 3}}) {
        sizes.set(dimension, size);
    }
    return sizes;
}

TEST(DimensionOrder, GivesTheStridesOfMemory) {
    const DimensionSizes sizes = small();
    EXPECT_EQ(stride_of('k', "bhjk", sizes), 1);
    EXPECT_EQ(stride_of('j', "bhjk", sizes), 5);
    EXPECT_EQ(stride_of('b', "bhjk", sizes), 3 * 5 * 5);
    EXPECT_EQ(stride_of('i', "bhjk", sizes), 0);
    EXPECT_EQ(element_count("bhjk", sizes), 150);
    EXPECT_EQ(all_orders("bji").size(), 6u);
    EXPECT_EQ(all_orders("chpbj").size(), 120u);
}

TEST(GemmForm, OfALinearLayerIsOneProduct) {
    const auto forms = gemm_forms({"bji", "ui", "bju"}, small());
    ASSERT_FALSE(forms.empty());
    const GemmForm expected{
        .batch = 1, .m = 10, .n = 14, .k = 12, .a = {0, 12, 1}, .b = {0, 1, 12}, .c = {0, 14, 1}};
    EXPECT_EQ(forms.front().batch, expected.batch);
    EXPECT_EQ(forms.front().m, expected.m);
    EXPECT_EQ(forms.front().n, expected.n);
    EXPECT_EQ(forms.front().k, expected.k);
    EXPECT_EQ(forms.front().a, expected.a);
    EXPECT_EQ(forms.front().b, expected.b);
    EXPECT_EQ(forms.front().c, expected.c);
}

TEST(GemmForm, OfAttentionScoresHasAMatrixForEachHeadOfEachSequence) {
    const auto forms = gemm_forms({"bhjp", "bhkp", "bhjk"}, small());
    ASSERT_EQ(forms.size(), 1u);
    EXPECT_EQ(forms.front().batch, 6);
    EXPECT_EQ(forms.front().a, (GemmOperand{20, 4, 1}));
    EXPECT_EQ(forms.front().b, (GemmOperand{20, 1, 4}));
    EXPECT_EQ(forms.front().c, (GemmOperand{25, 5, 1}));
}

TEST(GemmForm, NeedsTheDimensionsOfABatchSideBySideInOneOrder) {
    EXPECT_TRUE(gemm_forms({"bhjp", "hbkp", "bhjk"}, small()).empty()) << "b and h change places";
    EXPECT_TRUE(gemm_forms({"bjhp", "bhkp", "bhjk"}, small()).empty()) << "j lies between";
    EXPECT_TRUE(gemm_forms({"jpbh", "kpbh", "jkbh"}, small()).empty()) << "no dense row";
    EXPECT_FALSE(gemm_forms({"jbhp", "kbhp", "jbhk"}, small()).empty()) << "strided matrices";
}

/// The heads' order straight from the projection: a matrix for each head, all of the same input.
TEST(GemmForm, LetsRowsOrColumnsNumberMatrices) {
    const auto forms = gemm_forms({"bji", "chpi", "chbjp"}, small());
    ASSERT_FALSE(forms.empty());
    EXPECT_EQ(forms.front().batch, 9);
    EXPECT_EQ(forms.front().n, 4);
    EXPECT_EQ(forms.front().a.batch_stride, 0);
    EXPECT_EQ(forms.front().c.batch_stride, 40);
}

TEST(GemmForm, SplitsIntoNoMoreMatricesThanAreUseful) {
    DimensionSizes sizes = small();
    sizes.set('h', 30);  // with c 90 matrices
    EXPECT_TRUE(gemm_forms({"bji", "chpi", "chbjp"}, sizes).empty());
    sizes.set('h', 20);
    EXPECT_FALSE(gemm_forms({"bji", "chpi", "chbjp"}, sizes).empty());
}

TEST(GemmForm, PutsTheFewestMatricesFirst) {
    const auto forms = gemm_forms({"bji", "ui", "bju"}, small());
    ASSERT_GT(forms.size(), 1u);
    EXPECT_EQ(forms[0].batch, 1);
    EXPECT_EQ(forms[1].batch, 2);
}

}  // namespace
