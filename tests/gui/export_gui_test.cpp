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

void copies_the_ledger(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    open_menu_of(c, "ledger", 0.5F, 0.09F);
    window().take_picture(c, "panel_menu", true);
    c->ItemClick("//$FOCUSED/\xef\x83\x85  Copy as CSV");
    window().settle(c);
    const std::string csv = ImGui::GetClipboardText();
    IM_CHECK(csv.starts_with("tensor,scope,"));
    IM_CHECK(csv.find("size_bytes") != std::string::npos);
    const auto rows = std::count(csv.begin(), csv.end(), '\n') - 1;
    IM_CHECK_EQ(static_cast<size_t>(rows), window().workspace().views().ledger.view()->rows.size());
}

/// Also plots: each panel that draws traces has a table of what it draws.
void every_panel_has_tables(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    const auto& row = window().workspace().views().ledger.view()->rows[0];
    window().workspace().apply(
        {.selection = {
             .tensor = app::PickedTensor{window().workspace().selection().a, row.storage, {}}}});
    for (const char* panel : {"traces", "compare", "kernels", "layer", "flame", "blocks",
                              "movement", "timeline", "ledger", "inspector", "health"}) {
        c->WindowFocus(("//###" + std::string(panel)).c_str());
        window().settle(c);
        const auto shown = app::find_window(panel);
        const auto tables = app::tables_of(*shown, window().workspace(), window().ui().panels);
        IM_CHECK_SILENT(!tables.empty());
        for (const app::PanelTable& table : tables) {
            const profiler::DataTable made = table.make();
            for (const auto& cells : made.rows) {
                IM_CHECK_SILENT(cells.size() == made.columns.size());
            }
        }
        const bool is_filled = !tables.front().make().rows.empty();
        IM_CHECK_SILENT(is_filled || std::string(panel) == "health");
    }
}

/// The format is the extension of the name; the buttons change it.
void the_dialog_chooses_target_and_format(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_E);
    c->Yield(3);
    c->SetRef("Export");
    IM_CHECK_STR_EQ(window().ui().save_dialog.name.c_str(), "comparison.svg");
    c->ItemClick("PDF");
    c->Yield(2);
    IM_CHECK_STR_EQ(window().ui().save_dialog.name.c_str(), "comparison.pdf");
    c->ItemClick("PNG");
    c->Yield(2);
    c->ItemClick("1x");
    c->Yield(2);
    window().take_picture(c, "export_dialog", true);
    const fs::path one = window().folder() / "one.png";
    save_as(c, one);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_E);
    c->Yield(3);
    c->SetRef("Export");
    c->ItemClick("PNG");
    c->Yield(2);
    c->ItemClick("2x");
    const fs::path two = window().folder() / "two.png";
    save_as(c, two);
    IM_CHECK_EQ(width_of_png(two), 2 * width_of_png(one));
    fs::remove(one);
    fs::remove(two);
}

void saves_a_table_as_json(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
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
void saves_a_picture_of_a_panel(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    const float width = c->WindowInfo("//###timeline").RectFull.GetWidth();
    app::ask_for_export(window().ui(), app::ExportTarget::Kind::kPanel, "timeline");
    const fs::path file = window().pictures() / "panel_picture.png";
    save_as(c, file);
    IM_CHECK_EQ(width_of_png(file), static_cast<int>(width));
}

/// Every table of every panel can be made, and has as many cells in each row as columns.
void every_panel_gives_its_tables(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    window().select_range(c);
    size_t count = 0;
    for (const app::PanelRow& row : app::kPanels) {
        for (const app::PanelTable& table :
             app::tables_of({&row}, window().workspace(), window().ui().panels)) {
            const profiler::DataTable data = table.make();
            IM_CHECK(!data.columns.empty());
            for (const auto& cells : data.rows) IM_CHECK_EQ(cells.size(), data.columns.size());
            ++count;
        }
    }
    IM_CHECK_GE(count, size_t{9});
}

}  // namespace

void register_export_tests(ImGuiTestEngine* engine) {
    const auto add = [&](const char* name, void (*run)(ImGuiTestContext*)) {
        IM_REGISTER_TEST(engine, "export", name)->TestFunc = run;
    };
    add("copies_the_ledger", copies_the_ledger);
    add("every_panel_has_tables", every_panel_has_tables);
    add("the_dialog_chooses_target_and_format", the_dialog_chooses_target_and_format);
    add("saves_a_table_as_json", saves_a_table_as_json);
    add("saves_a_picture_of_a_panel", saves_a_picture_of_a_panel);
    add("every_panel_gives_its_tables", every_panel_gives_its_tables);
}

}  // namespace tests
