#include "models/config/compute_capability.h"

#include <gmock/gmock.h>

namespace models {
namespace {

using testing::HasSubstr;

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

}  // namespace
}  // namespace models
