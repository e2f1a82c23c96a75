#include "profiler/view/peak/ledger_view.h"

#include "tests/profiler/view/ledger_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using testing::ElementsAre;
using testing::HasSubstr;
using tests::ledger_view_of;
using tests::LedgerStep;

LedgerRow make_row(std::string_view module_path, std::string_view tensor, int64_t size_bytes,
                   int64_t layer = -1) {
    LedgerRow row;
    row.module_path = module_path;
    row.tensor = tensor;
    row.op = "aten::bmm";
    row.made_by = "aten::baddbmm";
    row.shape = "[8, 512]";
    row.dtype = DType::kFloat32;
    row.category = Category::kActivation;
    row.size_bytes = size_bytes;
    row.saved_by = {"aten::bmm", "aten::softmax"};
    row.layer = layer;
    row.saved_ns = 1000;
    row.released_ns = 4000;
    return row;
}

Ledger make_ledger(std::vector<LedgerRow> rows) {
    Ledger ledger{std::move(rows), 0};
    for (const LedgerRow& row : ledger.rows) ledger.total_bytes += row.size_bytes;
    return ledger;
}

std::vector<std::string> tensors(const LedgerView& view) {
    std::vector<std::string> names;
    for (const LedgerViewRow& row : view.rows) names.push_back(row.tensor);
    return names;
}

Ledger original() {
    return make_ledger({make_row("layer.0.gelu", "input", 4096),
                        make_row("layer.0.norm", "input", 1024),
                        make_row("layer.10.attention", "probs", 8192),
                        make_row("layer.2.attention", "probs", 2048)});
}

/// Keeps a mask instead of GELU's input, and half of the probabilities of layer 10.
Ledger smaller() {
    return make_ledger({make_row("layer.0.gelu", "branch_mask", 512),
                        make_row("layer.0.norm", "input", 1024),
                        make_row("layer.10.attention", "probs", 4096),
                        make_row("layer.2.attention", "probs", 2048)});
}

TEST(BuildLedgerView, SortsBySizeLargestFirst) {
    const LedgerView view = ledger_view_of(original());
    EXPECT_EQ(view.rows[0].size_bytes, 8192);
    EXPECT_EQ(view.rows[3].size_bytes, 1024);
    EXPECT_EQ(view.rows[0].exact_text, "8,192 B");
    EXPECT_EQ(view.rows[0].saved_by, "aten::bmm, aten::softmax");
    EXPECT_EQ(view.rows[0].lifetime_ns, 3000);
    EXPECT_EQ(view.total_text, "4 tensors, 15.0 KiB");
    EXPECT_FALSE(view.has_other);
}

TEST(BuildLedgerView, SortsLayersAsNumbers) {
    const LedgerView view =
        ledger_view_of(original(), {.sort_by = LedgerColumn::kModulePath, .descending = false});
    std::vector<std::string> module_paths;
    for (const LedgerViewRow& row : view.rows) module_paths.push_back(row.module_path);
    EXPECT_THAT(module_paths, ElementsAre("layer.0.gelu", "layer.0.norm", "layer.2.attention",
                                          "layer.10.attention"));
}

TEST(BuildLedgerView, KeepsTheOrderOfSavingWhenSortingTies) {
    const LedgerView view =
        ledger_view_of(original(), {.sort_by = LedgerColumn::kDType, .descending = true});
    EXPECT_THAT(tensors(view), ElementsAre("input", "input", "probs", "probs"));
}

TEST(BuildLedgerView, FiltersByEveryWordInAnyCase) {
    const Ledger ledger = original();
    LedgerView view = ledger_view_of(ledger, {.filter = "PROBS layer.2"});
    ASSERT_EQ(view.rows.size(), 1u);
    EXPECT_EQ(view.rows[0].module_path, "layer.2.attention");
    EXPECT_EQ(view.total_text, "1 of 4 tensors, 2.00 KiB of 15.0 KiB");
    view = ledger_view_of(ledger, {.filter = "  "});
    EXPECT_EQ(view.rows.size(), 4u);
    view = ledger_view_of(ledger, {.filter = "no such thing"});
    EXPECT_TRUE(view.rows.empty());
}

TEST(BuildLedgerView, KeepsWhatIsSavedInTheSpan) {
    Ledger a = original();
    a.rows[0].saved_ns = 4000;  // after it
    a.rows[0].released_ns = 5000;
    a.rows[1].saved_ns = 100;  // before it
    a.rows[1].released_ns = 2000;
    a.rows[2].released_ns = -1;  // to the end
    a.rows[3].saved_ns = -1;     // not known
    a.rows[3].released_ns = -1;
    const LedgerStep step(a);
    LedgerRequest request{.steps = {step.get()}, .spans = {LedgerSpan{2000, 4000}}};
    LedgerView view = build_ledger_view(request);
    EXPECT_THAT(tensors(view), ElementsAre("probs", "probs"));
    EXPECT_EQ(view.row_count_total, 4U);
    EXPECT_THAT(view.span_text, HasSubstr("selected range"));
    request.spans = {};
    view = build_ledger_view(request);
    EXPECT_EQ(view.rows.size(), 4U);
    EXPECT_TRUE(view.span_text.empty());
}

TEST(BuildLedgerView, KeepsWhatIsSavedInTheSpanOfEitherTrace) {
    const Ledger a = make_ledger({make_row("layer.0", "probs", 64)});
    Ledger b = make_ledger({make_row("layer.0", "probs", 32), make_row("layer.0", "mask", 8)});
    for (LedgerRow& row : b.rows) row.saved_ns = 8000, row.released_ns = 9000;
    const LedgerView view =
        ledger_view_of(a, b, {.spans = {LedgerSpan{6000, 7000}, LedgerSpan{8500, 8600}}});
    EXPECT_THAT(tensors(view), ElementsAre("probs", "mask"));
}

TEST(BuildLedgerView, TellsWhatDisappearsAndWhatIsAdded) {
    const LedgerView view = ledger_view_of(
        original(), smaller(), {.sort_by = LedgerColumn::kDifference, .descending = false});
    ASSERT_EQ(view.rows.size(), 5u);
    // Both differ by -4096 B, so they stay in the order of saving.
    EXPECT_EQ(view.rows[0].presence, Presence::kDisappeared);
    EXPECT_EQ(view.rows[0].other_text, "–");
    EXPECT_EQ(view.rows[1].presence, Presence::kChanged);
    EXPECT_EQ(view.rows[1].difference_text, "-4.00 KiB");
    const LedgerViewRow& added = view.rows[4];
    EXPECT_EQ(added.presence, Presence::kAdded);
    EXPECT_EQ(added.tensor, "branch_mask");
    EXPECT_EQ(added.size_text, "–");
    EXPECT_EQ(added.difference_text, "+512 B");
    EXPECT_EQ(view.disappeared_bytes, 4096);
    EXPECT_EQ(view.added_bytes, 512);
    EXPECT_EQ(view.other_total_bytes - view.total_bytes, 7680 - 15360);
    EXPECT_EQ(view.comparison_text,
              "B keeps 7.50 KiB less for backward: 1 tensor (4.00 KiB) disappears, 1 (512 B) is "
              "added, others change by -4.00 KiB.");
}

TEST(BuildLedgerView, CountsAndComparesWhatTheFilterShows) {
    const auto view_of = [&](std::string filter) {
        return ledger_view_of(original(), smaller(), {.filter = std::move(filter)});
    };
    EXPECT_EQ(view_of("").total_text, "A 4 tensors, 15.0 KiB; B 4 tensors, 7.50 KiB");
    const LedgerView gelu = view_of("layer.0");
    EXPECT_EQ(gelu.rows.size(), 3u);
    EXPECT_EQ(gelu.total_text,
              "A 2 of 4 tensors, 5.00 KiB of 15.0 KiB; B 2 of 4 tensors, 1.50 KiB of 7.50 KiB");
    EXPECT_EQ(gelu.comparison_text,
              "Of what the filter shows, B keeps 3.50 KiB less for backward: 1 tensor (4.00 KiB) "
              "disappears, 1 (512 B) is added.");
    EXPECT_EQ(gelu.shown_difference_bytes, 512 - 4096);
    EXPECT_EQ(view_of("layer.2").comparison_text,
              "Of what the filter shows, B keeps as many bytes for backward.");
}

TEST(BuildLedgerView, TellsTheMakerFromTheSavers) {
    const LedgerView view = ledger_view_of(original(), {.filter = "baddbmm"});
    ASSERT_EQ(view.rows.size(), 4u);
    EXPECT_EQ(view.rows[0].made_by, "aten::baddbmm");
    EXPECT_EQ(view.rows[0].saved_by, "aten::bmm, aten::softmax");
}

TEST(BuildLedgerView, SaysNothingOfTensorsThatAreNeitherGoneNorAdded) {
    const Ledger a = original();
    const Ledger fewer = make_ledger({make_row("layer.10.attention", "probs", 8192)});
    const auto text_of = [&](const Ledger& b) { return ledger_view_of(a, b).comparison_text; };
    EXPECT_EQ(text_of(fewer),
              "B keeps 7.00 KiB less for backward: 3 tensors (7.00 KiB) disappear.");
    EXPECT_EQ(text_of(a), "B keeps as many bytes for backward.");
}

TEST(BuildLedgerView, DifferencesOfAllRowsAddUpToThatOfTheTotals) {
    const Ledger a = original();
    const Ledger b = make_ledger({make_row("layer.0.norm", "input", 77), make_row("x", "y", 5)});
    const LedgerView view = ledger_view_of(a, b);
    int64_t sum = 0;
    for (const LedgerViewRow& row : view.rows) sum += row.difference_bytes;
    EXPECT_EQ(sum, b.total_bytes - a.total_bytes);
}

TEST(BuildLedgerView, HidesWhatIsTheSame) {
    const Ledger b = make_ledger({make_row("layer.0.gelu", "input", 4096)});
    const LedgerView view = ledger_view_of(original(), b, {.only_differences = true});
    EXPECT_EQ(view.rows.size(), 3u);
    EXPECT_EQ(view.row_count_total, 4u);
}

TEST(BuildLedgerView, PairsRepeatedNamesByTheirSizeFirst) {
    const Ledger a = make_ledger({make_row("norm", "mean", 64), make_row("norm", "mean", 128)});
    const Ledger b = make_ledger({make_row("norm", "mean", 128), make_row("norm", "mean", 32)});
    const LedgerView view = ledger_view_of(a, b);
    EXPECT_EQ(view.rows[0].size_bytes, 128);
    EXPECT_EQ(view.rows[0].presence, Presence::kSame);
    EXPECT_EQ(view.rows[1].other_bytes, 32);
    EXPECT_EQ(view.rows[1].presence, Presence::kChanged);
}

TEST(BuildLedgerView, PutsTheClosedFormBesideMiddleLayersOnly) {
    const Ledger ledger =
        make_ledger({make_row("layer.0", "probs", 100, 0), make_row("layer.1", "probs", 100, 1),
                     make_row("layer.1", "query", 40, 1), make_row("layer.2", "probs", 100, 2)});
    const ClosedFormCheck check{
        1, 140, {{{"probs", "eT", 100}, {"query", "en", 50}}, "en+eT", 150}};
    const LedgerView view = build_ledger_view({.steps = {LedgerStep(ledger, check, 3).get()},
                                               .sort_by = LedgerColumn::kModulePath,
                                               .descending = false});
    EXPECT_FALSE(view.rows[0].closed_form_bytes);
    EXPECT_EQ(view.rows[1].closed_form_text, "eT = 100 B");
    EXPECT_FALSE(view.rows[1].differs_from_closed_form);
    EXPECT_TRUE(view.rows[2].differs_from_closed_form);
    EXPECT_FALSE(view.rows[3].closed_form_bytes);
    ASSERT_TRUE(view.closed_forms[0]);
    EXPECT_FALSE(view.closed_forms[0]->is_equal);
    EXPECT_EQ(view.closed_forms[0]->text,
              "Layer 1 saves 140 B for backward; the formula en+eT gives 150 B.");
}

TEST(BuildLedgerView, SaysThatTheMiddleLayerEqualsTheClosedForm) {
    const Ledger ledger = make_ledger({make_row("layer.1", "probs", 100, 1)});
    const ClosedFormCheck check{1, 100, {{{"probs", "eT", 100}}, "eT", 100}};
    const LedgerView view = build_ledger_view(
        {.steps = {LedgerStep(ledger).get(), LedgerStep(ledger, check, 3).get()}});
    EXPECT_FALSE(view.closed_forms[0]);
    ASSERT_TRUE(view.closed_forms[1]);
    EXPECT_TRUE(view.closed_forms[1]->is_equal);
    EXPECT_EQ(view.closed_forms[1]->text,
              "Layer 1 saves 100 B for backward, equal to the formula eT.");
}

TEST(BuildLedgerView, IsEmptyWithoutALedger) {
    EXPECT_TRUE(build_ledger_view({}).rows.empty());
    const Ledger nothing;
    EXPECT_EQ(ledger_view_of(nothing).total_text, "0 tensors, 0 B");
}

TEST(CopiedRows, HaveAFieldPerTitle) {
    const Ledger ledger = original();
    for (const Ledger* other : {static_cast<const Ledger*>(nullptr), &ledger}) {
        const LedgerStep first(ledger);
        const std::optional<LedgerStep> second =
            other ? std::optional<LedgerStep>(std::in_place, *other) : std::nullopt;
        const LedgerView view =
            build_ledger_view({.steps = {first.get(), second ? second->get() : nullptr}});
        const DataTable table = copied_rows(view, 0);
        ASSERT_EQ(table.rows.size(), 1u);
        EXPECT_EQ(table.rows[0].size(), table.columns.size());
        EXPECT_EQ(table.columns.size(), other ? 10u : 8u);
        EXPECT_THAT(to_tsv(table), HasSubstr("\t8192\t"));
        EXPECT_EQ(copied_rows(view).rows.size(), view.rows.size());
    }
}

}  // namespace
