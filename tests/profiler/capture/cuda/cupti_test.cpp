#include "profiler/capture/cuda/cupti_session.h"

#include "tests/profiler/capture/cuda/activity_buffers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

/// What a capture says when CUPTI does not record. Here no driver is needed.
namespace profiler {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(Cupti, IsTheCopyThatTheProcessHasMapped) {
    tests::next_activity_record();  // maps it, as libtorch does
    const auto api = open_cupti();
    ASSERT_TRUE(api.has_value()) << api.error().message;
    EXPECT_TRUE(std::filesystem::equivalent(api->path, TEMPOSCOPE_CUPTI)) << api->path;
    EXPECT_EQ(api->version, static_cast<uint32_t>(CUPTI_API_VERSION));
    EXPECT_EQ(api->name_of(CUPTI_ERROR_INVALID_KIND), "CUPTI_ERROR_INVALID_KIND");
    const char* name = nullptr;
    EXPECT_EQ(api->callback_name(CUPTI_CB_DOMAIN_RUNTIME_API,
                                 CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &name),
              CUPTI_SUCCESS);
    EXPECT_STREQ(name, "cudaLaunchKernel_v7000");
}

TEST(Cupti, WithoutADriverASessionIsRefusedAndNothingStaysBehind) {
    if (std::filesystem::exists("/proc/driver/nvidia/version")) GTEST_SKIP() << "there is a driver";
    tests::next_activity_record();
    const auto api = open_cupti();
    ASSERT_TRUE(api.has_value()) << api.error().message;
    for (int i = 0; i < 2; ++i) {
        const auto session = CuptiSession::start(*api);
        ASSERT_FALSE(session.has_value());
        EXPECT_THAT(session.error().message, HasSubstr("allocations are recorded"));
    }
}

TEST(Cupti, ToolkitsFrom12_6OnAreTakenAndOlderOnesAreRefusedInOneSentence) {
    for (const uint32_t version : {24u, 26u, 130000u, 130202u, 130500u, 140000u}) {
        EXPECT_TRUE(check_cupti_version(version).has_value()) << version;
    }
    EXPECT_FALSE(tells_order_of_streams(24));
    EXPECT_TRUE(tells_order_of_streams(26));
    const auto older = check_cupti_version(22);
    ASSERT_FALSE(older.has_value());
    EXPECT_THAT(older.error().message, HasSubstr("version 22"));
    EXPECT_THAT(older.error().message, HasSubstr("allocations are recorded"));
    EXPECT_THAT(older.error().message, EndsWith("."));
}

/// Sizes of this toolkit are those of its header; older ones are shorter, newer ones longer.
TEST(Cupti, RecordsGrowFromToolkitToToolkit) {
    const auto bytes = [](CUpti_ActivityKind kind, uint32_t version = CUPTI_API_VERSION) {
        return record_bytes(kind, version);
    };
    EXPECT_EQ(bytes(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), sizeof(CUpti_ActivityKernel10));
    EXPECT_EQ(bytes(CUPTI_ACTIVITY_KIND_MEMCPY), sizeof(CUpti_ActivityMemcpy6));
    EXPECT_EQ(bytes(CUPTI_ACTIVITY_KIND_MEMSET), sizeof(CUpti_ActivityMemset4));
    EXPECT_EQ(bytes(CUPTI_ACTIVITY_KIND_CUDA_EVENT), sizeof(CUpti_ActivityCudaEvent2));
    EXPECT_EQ(bytes(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), sizeof(CUpti_ActivitySynchronization2));
    EXPECT_EQ(bytes(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 26), sizeof(CUpti_ActivityKernel9));
    EXPECT_EQ(bytes(CUPTI_ACTIVITY_KIND_MEMCPY, 24), sizeof(CUpti_ActivityMemcpy5));
    EXPECT_EQ(bytes(CUPTI_ACTIVITY_KIND_CUDA_EVENT, 24), sizeof(CUpti_ActivityCudaEvent));
    EXPECT_GT(bytes(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 130202), sizeof(CUpti_ActivityKernel10));
    EXPECT_EQ(bytes(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 140000), 0U);  // not known
    EXPECT_EQ(bytes(CUPTI_ACTIVITY_KIND_INVALID), 0U);
}

TEST(Cupti, NamesTheClientThatHoldsIt) {
    const std::string named = describe_cupti_refusal(
        CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
        "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "CUPTI for kineto");
    EXPECT_THAT(named, HasSubstr("CUPTI for kineto"));
    EXPECT_THAT(named, HasSubstr("Nsight"));
    const std::string unnamed =
        describe_cupti_refusal(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "", "");
    EXPECT_THAT(unnamed, HasSubstr("another profiler"));
}

TEST(Cupti, SaysWhatToDoAboutPrivilegesAndNamesWhatItDoesNotKnow) {
    EXPECT_THAT(describe_cupti_refusal(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "", ""),
                HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
    EXPECT_THAT(describe_cupti_refusal(CUPTI_ERROR_UNKNOWN, "CUPTI_ERROR_UNKNOWN", ""),
                HasSubstr("CUPTI_ERROR_UNKNOWN"));
}

}  // namespace
}  // namespace profiler
