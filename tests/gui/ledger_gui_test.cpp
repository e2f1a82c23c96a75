#include "tests/gui/test_window.h"

#include <algorithm>
#include <string>

namespace tests {
namespace {

const profiler::LedgerView& view() { return *window().workspace().views().ledger.view(); }

GUI_TEST(ledger, lists_saved_tensors_largest_first) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
    IM_CHECK(window().workspace().views().ledger.view() != nullptr);
    IM_CHECK_GT(static_cast<int>(view().rows.size()), 10);
    IM_CHECK(view().has_other);
    IM_CHECK(
        std::is_sorted(view().rows.begin(), view().rows.end(),
                       [](const auto& a, const auto& b) { return a.size_bytes > b.size_bytes; }));
}

GUI_TEST(ledger, a_click_on_a_title_sorts) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
    c->TableClickHeader("//###ledger/##ledger", "Tensor");
    window().settle(c);
    IM_CHECK(window().workspace().views().queries.ledger.sort_by ==
             profiler::LedgerColumn::kTensor);
    const bool descending = window().workspace().views().queries.ledger.descending;
    const std::string first = view().rows.front().tensor, last = view().rows.back().tensor;
    IM_CHECK(descending ? first >= last : first <= last);
    c->TableClickHeader("//###ledger/##ledger", "Tensor");
    window().settle(c);
    IM_CHECK(window().workspace().views().queries.ledger.descending != descending);
}

GUI_TEST(ledger, typing_filters) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
    const size_t all = view().rows.size();
    const size_t in_a = window().workspace().selection().a->index->ledger().rows.size();
    const std::string unfiltered = view().comparison_text;
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_F);
    c->KeyCharsReplace("layer.1.attention");
    window().settle(c);
    IM_CHECK_LT(static_cast<int>(view().rows.size()), static_cast<int>(all));
    IM_CHECK_GT(static_cast<int>(view().rows.size()), 0);
    for (const auto& row : view().rows) {
        IM_CHECK(row.module_path.find("attention") != std::string::npos);
    }
    // The count and the sentence about B are those of the filter.
    IM_CHECK(view().total_text.find(" of " + std::to_string(in_a) + " tensors") !=
             std::string::npos);
    IM_CHECK(view().comparison_text != unfiltered);
    c->KeyCharsReplace("no such tensor");
    window().settle(c);
    IM_CHECK(view().rows.empty());
}

GUI_TEST(ledger, a_click_on_a_row_selects_its_tensor) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
    window().click_ledger_row(c, 1);
    const auto& tensor = window().workspace().selection().tensor;
    IM_CHECK(tensor.has_value());
    IM_CHECK_STR_EQ(tensor->name.c_str(), view().rows[1].tensor.c_str());
    IM_CHECK(tensor->alloc_ns.has_value());
    window().press(c, ImGuiKey_Escape);
    IM_CHECK(!window().workspace().selection().tensor.has_value());
}

GUI_TEST(ledger, the_mark_stays_with_its_tensor) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
    const auto storage = view().rows[1].storage;
    window().click_ledger_row(c, 1);
    c->TableClickHeader("//###ledger/##ledger", "Tensor");
    window().settle(c);
    IM_CHECK(window().workspace().selection().tensor->storage == storage);
    // Another row is second now. A click on it selects it, and does not clear the selection.
    IM_CHECK(view().rows[1].storage != storage);
    window().click_ledger_row(c, 1);
    IM_CHECK(window().workspace().selection().tensor.has_value());
    IM_CHECK(window().workspace().selection().tensor->storage == view().rows[1].storage);
}

GUI_TEST(ledger, copies_rows_as_text) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
    window().click(c,
                   "//###ledger/"
                   "\xef\x83\x85##copy");
    const std::string copied = ImGui::GetClipboardText();
    const auto lines = static_cast<size_t>(std::count(copied.begin(), copied.end(), '\n'));
    IM_CHECK_EQ(lines, view().rows.size() + 1);
    IM_CHECK(copied.find(view().rows[0].tensor) != std::string::npos);
}

GUI_TEST(ledger, shows_only_what_changes) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
    const size_t all = view().rows.size();
    c->ItemCheck("//###ledger/Changes");
    window().settle(c);
    IM_CHECK_LT(static_cast<int>(view().rows.size()), static_cast<int>(all));
    for (const auto& row : view().rows) IM_CHECK(row.presence != profiler::Presence::kSame);
    c->ItemUncheck("//###ledger/Changes");
    c->ItemUncheck("//###ledger/Beside B");
    window().settle(c);
    IM_CHECK(!view().has_other);
}

const app::LedgerState& state() { return window().ui().panels.ledger; }

GUI_TEST(ledger, groups_by_layers_and_kinds) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
    window().click(c, "//###ledger/Layers");
    IM_CHECK(!view().groups.empty());
    const size_t closed = state().lines.size();
    IM_CHECK_LT(static_cast<int>(closed), static_cast<int>(view().rows.size()));
    window().click_ledger_row(c, 1);
    IM_CHECK_GT(static_cast<int>(state().lines.size()), static_cast<int>(closed));
    window().take_picture(c, "ledger_layers");
    window().click_ledger_row(c, 1);
    IM_CHECK_EQ(state().lines.size(), closed);

    window().click(c, "//###ledger/Kinds");
    IM_CHECK(view().groups[view().top_groups[0]].sums.tensor.find("×") != std::string::npos);
    IM_CHECK_EQ(state().largest_bytes, view().groups[view().top_groups[0]].sums.size_bytes);
    window().take_picture(c, "ledger_kinds");
}

GUI_TEST(ledger, marks_what_the_selected_op_made_and_saves) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
    const auto& row = view().rows[0];
    // The op that allocated it, not the one that saves it.
    const profiler::Trace& trace = *window().workspace().selection().a->trace;
    IM_CHECK_SILENT(row.ops[0].maker.valid());
    IM_CHECK_STR_EQ(
        row.made_by.c_str(),
        std::string(trace.text(trace.ops.get<&profiler::Op::name>(row.ops[0].maker))).c_str());
    const auto op = row.ops[0].savers[0];
    window().apply(
        c, {.selection = {.call = app::PickedCall{false, {profiler::CallKind::kOp, op.value}}}});
    IM_CHECK(state().marks.rows[0].saved);
    IM_CHECK(state().marks.text.find("of these tensors") != std::string::npos);
    window().take_picture(c, "ledger_marks");
    window().apply(c, {.selection = {.clear_call = true}});
    IM_CHECK(state().marks.rows.empty());
}

/// The ledger is that of the last step, and the range lies in the first one.
GUI_TEST(ledger, a_range_without_saved_tensors_says_so) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
    const profiler::Trace& trace = *window().workspace().selection().a->trace;
    const auto start_ns =
        static_cast<double>(trace.steps[profiler::Id<profiler::Step>(size_t{0})].start_ns);
    const profiler::TimeRange range{start_ns, start_ns + 1e6};
    window().apply(c, {.selection = {.range = std::optional(range)}});
    IM_CHECK(view().rows.empty());
    window().take_picture(c, "ledger_range");
    window().click(c, "//###ledger/###clear_range");
    IM_CHECK(!window().workspace().selection().range.has_value());
    IM_CHECK(!view().rows.empty());
}

}  // namespace
}  // namespace tests
