/// The SQL interface: every view of docs/trace_format.md works, and shows texts instead of ids.
#include "profiler/trace/file/sqlite.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/profiler/trace/temporary_folder.h"
#include "tests/support/synthetic_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace profiler {
namespace {

class TraceViews : public testing::Test {
protected:
    void SetUp() override {
        trace_ = tests::make_synthetic_trace(
            {.num_allocations = 400, .num_layers = 2, .batch_size = 2, .seq_len = 16});
        ASSERT_TRUE(write_trace(trace_, folder_ / "a.tscope"));
        db_ = std::make_unique<sqlite::Database>((folder_ / "a.tscope").string(),
                                                 SQLITE_OPEN_READONLY);
    }

    tests::TemporaryFolder folder_;
    Trace trace_;
    std::unique_ptr<sqlite::Database> db_;
};

TEST_F(TraceViews, ThereIsOnePerTableAndEachAnswers) {
    Trace::for_each_table(trace_, [&](std::string_view name, const auto& table) {
        sqlite::Statement rows(*db_, "SELECT * FROM v_" + std::string(name));
        std::size_t count = 0;
        while (rows.step()) ++count;
        EXPECT_EQ(count, table.size()) << name;
    });
}

TEST_F(TraceViews, ShowTextsInPlaceOfNumbers) {
    EXPECT_EQ(
        db_->text("SELECT source || ' ' || state || ' ' || model || ' ' || recipe FROM v_run"),
        "measured_cpu complete synthetic original");
    EXPECT_EQ(db_->text("SELECT op_class FROM v_op WHERE name = 'aten::gelu' LIMIT 1"),
              "element_wise");
    EXPECT_EQ(db_->text("SELECT scope_path FROM v_op WHERE name = 'aten::gelu' LIMIT 1"),
              "encoder.layer.0.intermediate.gelu");
    EXPECT_EQ(db_->integer("SELECT max(layer) FROM v_op"), 1);
    EXPECT_EQ(
        db_->text("SELECT group_concat(kind) FROM (SELECT kind FROM v_phase ORDER BY id LIMIT 4)"),
        "forward,loss,backward,optimizer");
    EXPECT_EQ(
        db_->text(
            "SELECT role || ' ' || op_name || ' ' || scope_path || ' ' || device_name FROM "
            "v_allocation "
            "WHERE storage IN (SELECT storage FROM v_tensor WHERE name = 'gelu_output') LIMIT 1"),
        "activation aten::gelu encoder.layer.0.intermediate.gelu cpu");
    EXPECT_EQ(db_->text("SELECT tensor_name || ' ' || shape || ' ' || dtype || ' ' || role || ' ' "
                        "|| size_bytes "
                        "FROM v_save WHERE op_name = 'aten::gelu' LIMIT 1"),
              "gelu_output [2, 16, 4096] float32 activation 524288");
    EXPECT_EQ(db_->text("SELECT access || ' ' || op_name FROM v_op_tensor LIMIT 1"),
              "write aten::addmm");
}

TEST_F(TraceViews, NoneIsNull) {
    const auto live = static_cast<int64_t>(
        std::ranges::count(trace_.allocations.column<&Allocation::free_completed_event>(), -1));
    ASSERT_GT(live, 0);
    EXPECT_EQ(db_->integer("SELECT count(*) FROM allocation WHERE free_completed_event IS NULL"),
              live);
    EXPECT_EQ(db_->integer("SELECT count(*) FROM op WHERE parent = -1 OR forward = -1"), 0);
}

TEST_F(TraceViews, MemoryIsTheRunningSumOfTheEvents) {
    int64_t live = 0;
    const auto freed = trace_.allocations.column<&Allocation::free_completed_event>();
    const auto bytes = trace_.allocations.column<&Allocation::block_bytes>();
    for (std::size_t i = 0; i < freed.size(); ++i) live += freed[i] == -1 ? bytes[i] : 0;
    EXPECT_EQ(db_->integer("SELECT allocated_bytes FROM v_memory ORDER BY event DESC LIMIT 1"),
              live);
    EXPECT_EQ(db_->integer("SELECT count(*) FROM v_memory"),
              static_cast<int64_t>(freed.size()) + static_cast<int64_t>(freed.size()) -
                  static_cast<int64_t>(std::ranges::count(freed, -1)));
    EXPECT_GE(db_->integer("SELECT min(allocated_bytes) FROM v_memory"), 0);
}

TEST_F(TraceViews, LedgerHoldsEachSavedStorageOfTheLastForwardPhaseOnce) {
    // 10 saved outputs and 3 masks per layer (tests/support/synthetic_trace.cpp), two layers.
    EXPECT_EQ(db_->integer("SELECT count(*) FROM v_ledger"), 26);
    EXPECT_EQ(db_->integer("SELECT count(DISTINCT storage) FROM v_ledger"), 26);
    EXPECT_EQ(db_->integer("SELECT count(*) FROM v_ledger WHERE role <> 'activation'"), 0);
    EXPECT_EQ(
        db_->text(
            "SELECT tensor || ' ' || shape || ' ' || dtype || ' ' || size_bytes || ' ' || saved_by "
            "FROM v_ledger WHERE scope = 'encoder.layer.1.attention.self.dropout' AND dtype = "
            "'bool'"),
        "probs_dropped_mask [2, 16, 16, 16] bool 8192 tempo::dropout");
}

}  // namespace
}  // namespace profiler
