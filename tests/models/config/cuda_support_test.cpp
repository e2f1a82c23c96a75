#include "models/config/cuda_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace models {
namespace {

using testing::HasSubstr;

Workload workload(const char* recipe, Precision precision) {
    return {.model = *find_model("bert-base"),
            .recipe_name = recipe,
            .recipe = *parse_recipe(recipe),
            .precision = precision};
}

std::string problem(const Workload& w, ComputeCapability capability = {8, 0}) {
    const auto ok = validate_for_cuda(w, capability);
    return ok ? "" : ok.error().message;
}

TEST(ComputeCapability, ReadsWhatItWrites) {
    for (const ComputeCapability capability :
         {ComputeCapability{7, 5}, ComputeCapability{8, 0}, ComputeCapability{12, 0}}) {
        EXPECT_EQ(*parse_compute_capability(to_text(capability)), capability);
    }
    EXPECT_EQ(to_text({12, 0}), "12.0");
    for (const char* text : {"", "8", "80", "8.", ".6", "8.x", "-8.0", "0.5", "8.0 ", "sm_80"}) {
        const auto parsed = parse_compute_capability(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_THAT(parsed.error().message, HasSubstr("write it as 8.6"));
    }
}

TEST(ValidateForCuda, TakesWhatTheCpuRefuses) {
    EXPECT_EQ(problem(workload("flash", Precision::kBf16)), "");
    EXPECT_EQ(problem(workload("attention=efficient", Precision::kFp32)), "");
    EXPECT_EQ(problem(workload("attention=cudnn", Precision::kAmpFp16)), "");
    EXPECT_EQ(problem(workload("original", Precision::kTf32)), "");
}

TEST(ValidateForCuda, RefusesWhatNoKernelTakes) {
    EXPECT_THAT(problem(workload("flash", Precision::kFp32)), HasSubstr("has no fp32 kernel"));
    EXPECT_THAT(problem(workload("attention=efficient", Precision::kFp64)),
                HasSubstr("has no fp64 kernel"));
    EXPECT_THAT(problem(workload("flash", Precision::kFp16), {7, 5}),
                HasSubstr("this GPU has 7.5"));
    EXPECT_THAT(problem(workload("original", Precision::kTf32), {7, 5}), HasSubstr("choose fp32"));
    EXPECT_THAT(problem(workload("original", Precision::kAmpBf16), {7, 5}), HasSubstr("no bf16"));
    EXPECT_EQ(problem(workload("original", Precision::kFp16), {7, 0}), "");
    Workload odd = workload("flash", Precision::kBf16);
    odd.model.num_heads = 64;  // heads of 12
    EXPECT_THAT(problem(odd), HasSubstr("multiple of 8"));
    odd = workload("flash", Precision::kBf16);
    odd.padding = Padding::kRandom;
    EXPECT_THAT(problem(odd), HasSubstr("no padding mask"));
    odd = workload("original", Precision::kFp32);
    odd.batch_size = 0;
    EXPECT_NE(problem(odd), "");
}

}  // namespace
}  // namespace models
