// What leaves the window: charts, tables and pictures, through the dialog and the menus of panels.
#include "tests/gui/test_window.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>

namespace tests {
namespace {

namespace fs = std::filesystem;

/// The width of a PNG file, from its header.
int width_of_png(const fs::path& file) {
    const std::string bytes = read_file(file);
    if (bytes.size() < 24) return 0;
    int width = 0;
    for (int i = 16; i < 20; ++i) {
        width = width * 256 + static_cast<unsigned char>(bytes[static_cast<size_t>(i)]);
    }
    return width;
}

void open_menu_of(ImGuiTestContext* c, const char* panel, float x, float y) {
    c->MouseTeleportToPos(window().point_in(c, (std::string("//###") + panel).c_str(), x, y));
    c->Yield(2);
    c->MouseClick(ImGuiMouseButton_Right);
    c->Yield(3);
    IM_CHECK_STR_EQ(window().ui().menu_panel.c_str(), panel);
    IM_CHECK(
        ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel));
}

void save_as(ImGuiTestContext* c, const fs::path& file) {
    fs::remove(file);
    c->Yield(3);
    c->SetRef("Export");
    c->ItemInputValue("##name", file.c_str());
    window().settle(c);
    c->Yield(4);
    IM_CHECK(fs::exists(file));
}

GUI_TEST(export, copies_the_ledger) {
    window().show(c, {"original", "tempo"});
    window().focus(c, "//###ledger");
    open_menu_of(c, "ledger", 0.5F, 0.09F);
    window().take_picture(c, "panel_menu", true);
    window().click(c, "//$FOCUSED/\xef\x83\x85  Copy as CSV");
    const std::string csv = ImGui::GetClipboardText();
    IM_CHECK(csv.starts_with("tensor,scope,"));
    IM_CHECK(csv.find("size_bytes") != std::string::npos);
    const auto rows = std::count(csv.begin(), csv.end(), '\n') - 1;
    IM_CHECK_EQ(static_cast<size_t>(rows), window().workspace().views().ledger.view()->rows.size());
}

/// As many cells in each row as columns.
void check_tables(const app::PanelWindow& shown) {
    for (const app::PanelTable& table :
         app::tables_of(shown, window().workspace(), window().ui().panels)) {
        const profiler::DataTable made = table.make();
        IM_CHECK_SILENT(!made.columns.empty());
        for (const auto& cells : made.rows) IM_CHECK_SILENT(cells.size() == made.columns.size());
    }
}

/// Also plots: each panel that draws traces has a table of what it draws.
GUI_TEST(export, every_panel_has_tables) {
    window().show(c, {"original", "tempo"});
    const auto& row = window().workspace().views().ledger.view()->rows[0];
    window().workspace().apply(
        {.selection = {
             .tensor = app::PickedTensor{window().workspace().selection().a, row.storage, {}}}});
    for (const char* panel : {"traces", "compare", "kernels", "layer", "flame", "blocks",
                              "movement", "timeline", "ledger", "inspector", "diagnostics"}) {
        window().focus(c, ("//###" + std::string(panel)).c_str());
        const auto shown = app::find_window(panel);
        const auto tables = app::tables_of(*shown, window().workspace(), window().ui().panels);
        IM_CHECK_SILENT(!tables.empty());
        check_tables(*shown);
        const bool is_filled = !tables.front().make().rows.empty();
        IM_CHECK_SILENT(is_filled || std::string(panel) == "diagnostics");
    }
    window().select_range(c);
    for (const app::PanelRow& panel : app::kPanels) check_tables({&panel});
}

/// The format is the extension of the name; the buttons change it.
GUI_TEST(export, the_dialog_chooses_target_and_format) {
    window().show(c, {"original", "tempo"});
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_E);
    c->SetRef("Export");
    IM_CHECK_STR_EQ(window().ui().save_dialog.name.c_str(), "comparison.svg");
    window().click(c, "PDF");
    IM_CHECK_STR_EQ(window().ui().save_dialog.name.c_str(), "comparison.pdf");
    window().click(c, "PNG");
    window().click(c, "1x");
    window().take_picture(c, "export_dialog", true);
    const fs::path one = window().folder() / "one.png";
    save_as(c, one);
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_E);
    c->SetRef("Export");
    window().click(c, "PNG");
    c->ItemClick("2x");
    const fs::path two = window().folder() / "two.png";
    save_as(c, two);
    IM_CHECK_EQ(width_of_png(two), 2 * width_of_png(one));
    fs::remove(one);
    fs::remove(two);
}

GUI_TEST(export, saves_a_table_as_json) {
    window().show(c, {"original", "tempo"});
    app::ask_for_export(window().ui(), app::ExportTarget::Kind::kTable, "comparison");
    const fs::path file = window().folder() / "table.json";
    save_as(c, file);
    const auto json = nlohmann::json::parse(read_file(file), nullptr, false);
    fs::remove(file);
    IM_CHECK(json.is_object());
    IM_CHECK_EQ(json["rows"].size(), size_t{2});
    IM_CHECK(json["rows"][0]["recipe"] == "original");
    IM_CHECK(json["rows"][0]["peak_allocated_bytes"].is_number_integer());
}

/// The pixels of one panel, without the dialog.
GUI_TEST(export, saves_a_picture_of_a_panel) {
    window().show(c, {"original", "tempo"});
    const float width = c->WindowInfo("//###timeline").RectFull.GetWidth();
    app::ask_for_export(window().ui(), app::ExportTarget::Kind::kPanel, "timeline");
    const fs::path file = window().pictures() / "panel_picture.png";
    save_as(c, file);
    IM_CHECK_EQ(width_of_png(file), static_cast<int>(width));
}

}  // namespace
}  // namespace tests
