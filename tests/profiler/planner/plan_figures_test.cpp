#include "profiler/planner/plan_figures.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

TEST(MaxBatchText, SaysWhatIsKnown) {
    EXPECT_EQ(max_batch_text({.max_batch_size = 1046}), "1,046");
    EXPECT_EQ(max_batch_text({.max_batch_size = 8, .max_batch_end = MaxBatchEnd::kSearch}), "≥ 8");
    EXPECT_EQ(max_batch_text({.status = PlanStatus::kDoesNotFit, .max_batch_size = 8}), "8")
        << "another batch does not fit";
    EXPECT_EQ(max_batch_text({.status = PlanStatus::kDoesNotFit, .max_batch_size = 0}), "none");
    EXPECT_EQ(max_batch_text({.status = PlanStatus::kNotSupported}), "–");
    EXPECT_EQ(max_batch_note({.max_batch_size = 8}), "");
    EXPECT_EQ(max_batch_note({.max_batch_size = 8, .max_batch_end = MaxBatchEnd::kElements}),
              ", by tensor size");
}

}  // namespace
}  // namespace profiler
