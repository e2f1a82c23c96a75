// Several windows of one panel.
#include "tests/gui/test_window.h"

#include <imgui_internal.h>

#include <algorithm>
#include <string>

namespace tests {
namespace {

app::Ui& ui() { return window().ui(); }
const app::WindowViews& views(int number) { return window().workspace().views(number); }

/// Through the menu bar.
void open_another(ImGuiTestContext* c, const char* panel) {
    c->SetRef("##MainMenuBar");
    c->MenuClick((std::string("View/New ") + panel + " window").c_str());
    c->Yield(6);
    window().settle(c);
}

ImGuiID dock_of(ImGuiTestContext* c, const char* panel) {
    return c->WindowInfo(panel).Window->DockId;
}

void show_ledger(ImGuiTestContext* c) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
}

/// Drags the window beside the Memory timeline, so that the first one is in sight too.
void show_both(ImGuiTestContext* c, const char* second) {
    c->DockInto(second, "//###timeline");
    c->Yield(6);
    window().settle(c);
}

void filter_focused_ledger(ImGuiTestContext* c, const char* filter) {
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_F);
    c->KeyCharsReplace(filter);
    window().settle(c);
}

GUI_TEST(windows, two_ledgers_have_two_filters) {
    show_ledger(c);
    const size_t all = views(1).ledger.view()->rows.size();
    open_another(c, "Ledger");
    IM_CHECK(window().is_open("ledger-2"));
    IM_CHECK_STR_EQ(ui().focused_panel.c_str(), "ledger-2");
    IM_CHECK_EQ(dock_of(c, "//###ledger-2"), dock_of(c, "//###ledger"));
    filter_focused_ledger(c, "attention");
    IM_CHECK_EQ(views(1).ledger.view()->rows.size(), all);
    IM_CHECK_LT(views(2).ledger.view()->rows.size(), all);
    IM_CHECK_GT(views(2).ledger.view()->rows.size(), size_t{0});
    show_both(c, "//###ledger-2");
    window().take_picture(c, "windows_ledgers");
    window().reset(c);
}

GUI_TEST(windows, a_new_window_shows_what_the_other_one_shows) {
    show_ledger(c);
    filter_focused_ledger(c, "attention");
    c->ItemClick("//###ledger/Kinds");
    c->TableClickHeader("//###ledger/##ledger", "Module");
    window().settle(c);
    const auto& first = views(1).queries.ledger;
    open_another(c, "Ledger");
    const auto& second = views(2).queries.ledger;
    IM_CHECK_STR_EQ(second.filter.c_str(), "attention");
    IM_CHECK(second.grouping == profiler::LedgerGrouping::kKinds);
    IM_CHECK(second.sort_by == profiler::LedgerColumn::kModulePath);
    IM_CHECK_EQ(second.descending, first.descending);
    IM_CHECK_STR_EQ(app::states_of(ui(), 2).ledger.filter.c_str(), "attention");
    IM_CHECK_EQ(views(2).ledger.view()->rows.size(), views(1).ledger.view()->rows.size());
    window().focus(c, "//###ledger");
    c->TableClickHeader("//###ledger/##ledger", "Bytes");  // as other tests expect it
    window().reset(c);
}

GUI_TEST(windows, a_click_in_one_selects_in_all) {
    show_ledger(c);
    open_another(c, "Ledger");
    filter_focused_ledger(c, "attention");
    show_both(c, "//###ledger-2");
    window().click(c, "//###ledger-2/**/$$1/##row");
    const auto& tensor = window().workspace().selection().tensor;
    IM_CHECK(tensor.has_value());
    IM_CHECK(tensor->storage == views(2).ledger.view()->rows[1].storage);
    const auto& rows = views(1).ledger.view()->rows;
    IM_CHECK(std::any_of(rows.begin(), rows.end(),
                         [&](const auto& row) { return row.storage == tensor->storage; }));
    window().take_picture(c, "windows_selection");
    window().reset(c);
}

GUI_TEST(windows, a_closed_window_takes_no_memory_and_comes_back) {
    show_ledger(c);
    open_another(c, "Ledger");
    filter_focused_ledger(c, "attention");
    const size_t few = views(2).ledger.view()->rows.size();
    const ImGuiID dock = dock_of(c, "//###ledger-2");
    c->WindowClose("//###ledger-2");
    c->Yield(8);
    IM_CHECK(!window().is_open("ledger-2"));
    IM_CHECK(window().is_open("ledger"));
    IM_CHECK(views(2).ledger.view() == nullptr);
    IM_CHECK(views(1).ledger.view() != nullptr);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    c->Yield(8);
    window().settle(c);
    IM_CHECK(window().is_open("ledger-2"));
    IM_CHECK_EQ(dock_of(c, "//###ledger-2"), dock);
    IM_CHECK_EQ(views(2).ledger.view()->rows.size(), few);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    c->Yield(8);
    IM_CHECK(!window().is_open("ledger-2"));
    window().reset(c);
}

GUI_TEST(windows, four_windows_are_the_most) {
    show_ledger(c);
    for (const char* id : {"ledger-2", "ledger-3", "ledger-4"}) {
        open_another(c, "Ledger");
        IM_CHECK(window().is_open(id));
    }
    const auto action = std::find_if(ui().actions.begin(), ui().actions.end(), [](const auto& one) {
        return one.title == "New Ledger window";
    });
    IM_CHECK(!app::is_enabled(ui(), *action));
    app::open_panel_menu(ui(), "ledger-4");
    c->Yield(3);
    c->MouseMove("//$FOCUSED/\xef\x81\xa7  New Ledger window");
    IM_CHECK((c->ItemInfo("//$FOCUSED/\xef\x81\xa7  New Ledger window").ItemFlags &
              ImGuiItemFlags_Disabled) != 0);
    window().take_picture(c, "windows_most", true);
    c->KeyPress(ImGuiKey_Escape);
    c->WindowClose("//###ledger-3");
    c->Yield(3);
    IM_CHECK(app::is_enabled(ui(), *action));
    open_another(c, "Ledger");
    IM_CHECK(window().is_open("ledger-3"));  // the lowest free number
    ui().reset_layout = true;
    c->Yield(4);
    IM_CHECK(window().is_open("lines"));
    for (const char* id : {"ledger-2", "ledger-3", "ledger-4"}) IM_CHECK(!window().is_open(id));
    window().reset(c);
}

GUI_TEST(windows, the_menu_of_a_panel_opens_another_and_exports_its_rows) {
    show_ledger(c);
    app::open_panel_menu(ui(), "ledger");
    c->Yield(3);
    window().take_picture(c, "windows_menu", true);
    c->ItemClick("//$FOCUSED/\xef\x81\xa7  New Ledger window");
    c->Yield(6);
    window().settle(c);
    IM_CHECK(window().is_open("ledger-2"));
    filter_focused_ledger(c, "attention");
    app::open_panel_menu(ui(), "ledger-2");
    c->Yield(3);
    window().click(c, "//$FOCUSED/\xef\x83\x85  Copy as CSV");
    const std::string csv = ImGui::GetClipboardText();
    const auto rows = static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')) - 1;
    IM_CHECK_EQ(rows, views(2).ledger.view()->rows.size());
    const std::vector<app::ExportTarget> targets = app::export_targets(ui());
    const auto has = [&](const char* title, const char* file_name) {
        return std::any_of(targets.begin(), targets.end(), [&](const app::ExportTarget& target) {
            return target.title == title && target.file_name == file_name;
        });
    };
    IM_CHECK(has("Table: Ledger", "ledger"));
    IM_CHECK(has("Table: Ledger 2", "ledger-2"));
    IM_CHECK(has("Picture: Ledger 2", "ledger-2"));
    window().reset(c);
}

GUI_TEST(windows, blocks_of_a_and_b_stand_side_by_side) {
    show_ledger(c);
    window().focus(c, "//###blocks");
    open_another(c, "Blocks");
    c->DockInto("//###blocks-2", "//###compare");
    c->Yield(6);
    window().settle(c);
    window().click(c, "//###blocks-2/B###show_b");
    IM_CHECK(views(1).queries.blocks.show == app::BlocksQuery::Show::kA);
    IM_CHECK(views(2).queries.blocks.show == app::BlocksQuery::Show::kB);
    IM_CHECK(views(1).blocks.view() != nullptr);
    IM_CHECK(views(2).blocks.view() != nullptr);
    IM_CHECK(!views(2).live_blocks.view()->rows.empty());
    IM_CHECK_STR_NE(views(1).live_blocks.view()->total_text.c_str(),
                    views(2).live_blocks.view()->total_text.c_str());
    window().take_picture(c, "windows_blocks");
    window().reset(c);
}

GUI_TEST(windows, a_flame_graph_stands_beside_the_difference) {
    show_ledger(c);
    window().focus(c, "//###flame");
    open_another(c, "Flame graph");
    show_both(c, "//###flame-2");
    window().apply(c,
                   {.window = {.flame = app::FlameQuery{.mode = profiler::FlameMode::kDifference,
                                                        .is_drawn = true}}},
                   /*window=*/2);
    IM_CHECK(views(1).flame.view()->mode == profiler::FlameMode::kA);
    IM_CHECK(views(2).flame.view()->mode == profiler::FlameMode::kDifference);
    window().take_picture(c, "windows_flames");
    window().reset(c);
}

GUI_TEST(windows, a_pinned_inspector_stays) {
    show_ledger(c);
    window().click_ledger_row(c, 1);
    const std::string first = views(1).inspector.view()->tensor->title;
    open_another(c, "Inspector");
    window().click_ledger_row(c, 6);
    const std::string title = window().workspace().selection().tensor->name;
    IM_CHECK_STR_NE(title.c_str(), first.c_str());
    IM_CHECK_STR_EQ(views(1).inspector.view()->tensor->title.c_str(), title.c_str());
    IM_CHECK_STR_EQ(views(2).inspector.view()->tensor->title.c_str(), first.c_str());
    show_both(c, "//###inspector-2");
    window().take_picture(c, "windows_inspectors");
    window().click(c, "//###inspector-2/###pin");
    IM_CHECK_STR_EQ(views(2).inspector.view()->tensor->title.c_str(), title.c_str());
    window().click(c, "//###inspector-2/###pin");
    IM_CHECK(views(2).queries.inspector.pinned.has_value());
    window().workspace().swap_a_and_b();  // what was pinned belonged to the traces before
    window().settle(c);
    IM_CHECK(!views(2).queries.inspector.pinned.has_value());
    window().reset(c);
}

GUI_TEST(remember_write, windows) {
    window().open(c, {"original"});
    window().focus(c, "//###ledger");
    open_another(c, "Ledger");
    filter_focused_ledger(c, "attention");
    window().click(c, "//###ledger-2/Kinds");
    show_both(c, "//###ledger-2");
    IM_CHECK_EQ(dock_of(c, "//###ledger-2"), dock_of(c, "//###timeline"));
}

GUI_TEST(remember_read, windows) {
    IM_CHECK(window().is_open("ledger-2"));
    IM_CHECK(!window().is_open("ledger-3"));
    IM_CHECK_EQ(dock_of(c, "//###ledger-2"), dock_of(c, "//###timeline"));
    IM_CHECK_STR_EQ(views(2).queries.ledger.filter.c_str(), "attention");
    IM_CHECK(views(2).queries.ledger.grouping == profiler::LedgerGrouping::kKinds);
    window().open(c, {"original"});
    IM_CHECK_LT(views(2).ledger.view()->rows.size(), views(1).ledger.view()->rows.size());
}

}  // namespace
}  // namespace tests
