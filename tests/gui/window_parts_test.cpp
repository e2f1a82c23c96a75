// Parts of the window that need no display.
#include "app/panels/panels.h"
#include "app/user/settings.h"
#include "app/widgets/command_palette.h"
#include "app/widgets/file_dialog.h"
#include "app/window/bars.h"
#include "app/window/keyboard.h"
#include "app/window/layout.h"
#include "app/window/ui.h"
#include "app/workspace/capture_session.h"
#include "app/workspace/selection.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct ScratchFolder {
    ScratchFolder()
        : path(fs::temp_directory_path() / ("temposcope_parts_" + std::to_string(getpid()))) {
        fs::create_directories(path);
    }
    ~ScratchFolder() { fs::remove_all(path); }
    fs::path path;
};

TEST(Settings, ComeBackAsTheyWereSaved) {
    const ScratchFolder scratch;
    app::Settings settings;
    settings.dark = false;
    settings.window_width = 1234;
    settings.shown_panels["diagnostics"] = false;
    settings.layout = 1;
    settings.layout_areas = 2;
    settings.kept_layouts["Explain"] = {"[Window][###timeline]\n", {{"advice", false}}};
    settings.further_windows["ledger-2"] = {{"filter", "probs"}};
    settings.text_scale = 1.5F;
    settings.reload_changed_files = true;
    settings.keys["Quit"] = "Ctrl+Alt+Q";
    settings.capture_form = app::to_fields(app::StepForm{.model = "gpt2", .batch_size = 3});
    settings.session = {.files = {"/t/a.tscope", "/t/b.tscope"},
                        .a = "/t/b.tscope",
                        .b = "/t/a.tscope",
                        .gpu = "t4",
                        .planner = {{"recipes", "tempo best"}}};
    settings.remember_file(scratch.path / "a.tscope");
    app::save_settings(settings, scratch.path / "deep" / "window.json");
    EXPECT_EQ(app::load_settings(scratch.path / "deep" / "window.json").settings, settings);
    EXPECT_EQ(app::load_settings(scratch.path / "deep" / "window.json").problem, "");
    // No other file is left in the folder, which another window may be using.
    const fs::directory_iterator files(scratch.path / "deep");
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(Settings, ForgetWhereThePanelsWereBeforeThereWereLayouts) {
    const app::Settings settings =
        app::parse_settings(R"({"shown_panels": {"ledger": true}, "dark": false})", "window.json")
            .settings;
    EXPECT_TRUE(settings.shown_panels.empty());
    EXPECT_EQ(settings.layout_areas, 0) << "the layout is built";
    EXPECT_FALSE(settings.dark);
}

TEST(Settings, AreTheDefaultsWhenTheFileIsMissingOrDamaged) {
    const ScratchFolder scratch;
    EXPECT_EQ(app::load_settings(scratch.path / "none.json").settings, app::Settings{});
    EXPECT_EQ(app::load_settings(scratch.path / "none.json").problem, "");
    for (const char* damaged : {"", "{", "[1]", R"({"dark": "no", "window_width": [1]})",
                                R"({"further_windows": {"ledger-2": {"filter": 5}}})"}) {
        std::ofstream(scratch.path / "window.json") << damaged;
        const app::LoadedSettings loaded = app::load_settings(scratch.path / "window.json");
        EXPECT_EQ(loaded.settings, app::Settings{}) << damaged;
        EXPECT_NE(loaded.problem.find("damaged"), std::string::npos) << damaged;
    }
}

TEST(Settings, KeepAFewRecentFilesNewestFirstAndOnce) {
    app::Settings settings;
    for (int i = 0; i < 40; ++i) settings.remember_file("/t/" + std::to_string(i) + ".tscope");
    settings.remember_file("/t/35.tscope");
    EXPECT_EQ(settings.recent_files.size(), app::Settings::kMaxRecentFiles);
    EXPECT_EQ(settings.recent_files[0], "/t/35.tscope");
    EXPECT_EQ(settings.recent_files[1], "/t/39.tscope");
}

TEST(Settings, TextGrowsAndShrinksInStepsFromOneToThree) {
    app::Settings settings;
    settings.step_text_scale(-1);
    EXPECT_EQ(settings.text_scale, 1);
    std::vector<float> scales;
    for (int i = 0; i < 12; ++i) {
        scales.push_back(settings.text_scale);
        settings.step_text_scale(1);
    }
    EXPECT_EQ(settings.text_scale, 3);
    for (int i = 0; i < 8; ++i) settings.step_text_scale(-1);
    EXPECT_EQ(settings.text_scale, 1);
    settings.text_scale = 1.3F;  // between two sizes
    settings.step_text_scale(1);
    EXPECT_EQ(settings.text_scale, 1.5F);
}

TEST(Keyboard, ChordsAreReadAsTheyAreWritten) {
    for (const ImGuiKeyChord chord :
         {ImGuiMod_Ctrl | ImGuiKey_K, ImGuiMod_Ctrl | ImGuiMod_Alt | ImGuiMod_Shift | ImGuiKey_F12,
          ImGuiKeyChord{ImGuiKey_Slash}, ImGuiMod_Alt | ImGuiKey_LeftArrow}) {
        EXPECT_EQ(app::parse_chord(app::chord_text(chord)), chord) << app::chord_text(chord);
    }
    EXPECT_EQ(app::chord_text(ImGuiMod_Alt | ImGuiKey_LeftArrow), "Alt+Left");
    EXPECT_EQ(app::parse_chord("Alt+LeftArrow"), ImGuiMod_Alt | ImGuiKey_LeftArrow);  // ImGui's
    for (const char* wrong : {"", "Ctrl+", "Hyper+K", "Ctrl+Ctrl+K", "ModCtrl", "K ", "\x01"}) {
        EXPECT_EQ(app::parse_chord(wrong), std::nullopt) << wrong;
    }
}

TEST(Keyboard, SavedKeysReplaceTheDefaultsAndAreSavedAgain) {
    std::vector<app::Action> actions = app::make_actions();
    EXPECT_TRUE(app::changed_keys(actions).empty());
    const app::ChangedKeys keys{{"Quit", "Ctrl+Alt+Q"}, {"Swap A and B", ""}, {"Gone", "Ctrl+U"}};
    EXPECT_EQ(app::apply_keys(actions, keys), "");
    const app::ChangedKeys known{{"Quit", "Ctrl+Alt+Q"}, {"Swap A and B", ""}};
    EXPECT_EQ(app::changed_keys(actions), known);
    const std::string sentence = app::apply_keys(actions, {{"Quit", "Ctrl+Nonsense"}});
    EXPECT_NE(sentence.find("Quit"), std::string::npos);
    EXPECT_EQ(app::changed_keys(actions), known);
}

TEST(Keyboard, NoTwoActionsShareADefaultKey) {
    const std::vector<app::Action> actions = app::make_actions();
    for (std::size_t i = 0; i < actions.size(); ++i) {
        for (std::size_t k = 0; k < actions[i].keys.size(); ++k) {
            const ImGuiKeyChord chord = actions[i].keys[k];
            if (chord == 0) continue;
            EXPECT_EQ(app::slot_with(actions, chord), (app::KeySlot{i, k}))
                << app::chord_text(chord);
            EXPECT_EQ(app::reason_against(chord), "") << app::chord_text(chord);
        }
    }
}

TEST(PanelWindows, AreFoundByTheirIds) {
    std::set<std::string> ids;
    for (const app::PanelWindow& window : app::all_windows()) {
        const auto found = app::find_window(app::id_of(window));
        ASSERT_TRUE(found);
        EXPECT_EQ(found->panel, window.panel);
        EXPECT_EQ(found->number, window.number);
        EXPECT_TRUE(ids.insert(app::id_of(window)).second) << app::id_of(window);
    }
    for (const char* wrong : {"", "ledger-", "ledger-0", "ledger-1", "ledger-5", "ledger-999",
                              "ledger-2 ", "traces-2", "nothing", "-2"}) {
        EXPECT_FALSE(app::find_window(wrong)) << wrong;
    }
    const auto second = app::find_window("flame-2");
    ASSERT_TRUE(second);
    EXPECT_EQ(app::title_of(*second), "Flame graph 2");
    EXPECT_TRUE(app::window_name(*second).ends_with(" Flame graph 2###flame-2"));
}

TEST(PanelWindows, ComeBackWithWhatTheyShow) {
    app::Ui ui;
    for (const char* id : {"ledger", "flame", "blocks", "inspector"}) {
        app::show_panel(ui, id);  // views of one panel take turns in window 1
        app::open_another(ui, *app::find_window(id));
    }
    using Show = app::BlocksQuery::Show;
    const auto coloring = profiler::BlockColoring::kOp;
    ui.workspace.apply(
        {.window = {.ledger = app::LedgerQuery{.filter = "probs",
                                               .only_differences = true,
                                               .grouping = profiler::LedgerGrouping::kKinds},
                    .flame = app::FlameQuery{.mode = profiler::FlameMode::kDifference,
                                             .combine_layers = true,
                                             .search = "gelu"},
                    .blocks = app::BlocksQuery{.show = Show::kB, .coloring = coloring}}},
        /*window=*/2);
    app::Settings settings = ui.settings;
    app::remember_windows(ui, settings);
    EXPECT_EQ(settings.further_windows.size(), 4U);

    app::Ui next;
    next.settings = settings;
    app::restore_windows(next);
    EXPECT_TRUE(app::is_open(next, *app::find_window("ledger-2")));
    const app::WindowQueries& queries = next.workspace.views(2).queries;
    EXPECT_EQ(queries.ledger, ui.workspace.views(2).queries.ledger);
    EXPECT_EQ(queries.flame, ui.workspace.views(2).queries.flame);
    EXPECT_EQ(queries.blocks, ui.workspace.views(2).queries.blocks);
    EXPECT_EQ(app::states_of(next, 2).ledger.filter, "probs");
}

/// What a damaged or edited file may hold.
TEST(PanelWindows, IgnoreSettingsThatMakeNoSense) {
    app::Ui ui;
    ui.settings.shown_panels = {{"ledger-999", true}, {"ledger-1", true}, {"traces-2", true}};
    ui.settings.further_windows = {
        {"ledger-999", {{"filter", "a"}}},
        {"ledger", {{"filter", "a"}}},
        {"nothing-2", {{"filter", "a"}}},
        {"ledger-2", {{"grouping", "sideways"}, {"filter", std::string(100'000, 'a')}}},
        {"blocks-3", {{"show", "7"}, {"coloring", ""}, {"unknown", "yes"}}}};
    app::restore_windows(ui);
    EXPECT_EQ(ui.workspace.views(1).queries.ledger, app::LedgerQuery{});
    EXPECT_EQ(ui.workspace.views(2).queries.ledger, app::LedgerQuery{});
    EXPECT_EQ(ui.workspace.views(3).queries.blocks, app::BlocksQuery{});
    for (const app::PanelWindow& window : app::all_windows()) {
        const bool is_first =
            window.number == 1 && app::is_open_at_first(*window.panel, app::Layout::kExplain);
        EXPECT_EQ(app::is_open(ui, window), is_first) << app::id_of(window);
    }
    EXPECT_FALSE(app::can_open_another(ui, *app::find_window("traces")->panel));
}

TEST(CommandPalette, FindsLettersInOrderAndPrefersStartsOfWords) {
    EXPECT_LT(app::match_score("xq", "Open traces"), 0);
    EXPECT_LT(app::match_score("to", "Open"), 0);
    EXPECT_GE(app::match_score("", "Open traces"), 0);
    EXPECT_GT(app::match_score("light", "Light theme"),
              app::match_score("light", "All right then"));
    EXPECT_GT(app::match_score("ot", "Open traces"), app::match_score("ot", "Bottom"));
}

TEST(FileDialog, GivesASavedFileAnExtension) {
    const std::vector<std::string> charts{".svg", ".pdf"};
    EXPECT_EQ(app::file_to_save("/t", "a.pdf", charts), "/t/a.pdf");
    EXPECT_EQ(app::file_to_save("/t", "a.SVG", charts), "/t/a.SVG");
    EXPECT_EQ(app::file_to_save("/t", "a", charts), "/t/a.svg");
    EXPECT_EQ(app::file_to_save("/t", "a.jpg", charts), "/t/a.jpg.svg");
    EXPECT_EQ(app::file_to_save("/t", "/elsewhere/a", charts), "/elsewhere/a.svg");
}

TEST(StatusBar, SaysWhatIsSelected) {
    app::Selection selection;
    EXPECT_EQ(app::describe_selection(selection), "");
    selection.range = profiler::TimeRange{1e9, 1.25e9};
    EXPECT_NE(app::describe_selection(selection).find("250 ms selected"), std::string::npos);
    selection.tensor =
        app::SelectedTensor{.name = "probs", .module_path = "layer.1", .size_bytes = 4096};
    EXPECT_NE(app::describe_selection(selection).find("probs  4,096 B"), std::string::npos);
}

class LayoutHistory : public testing::Test {
protected:
    /// Shows a look for as many frames as a change needs to settle.
    void show(const std::string& look, ImVec2 size = {1600, 1000}) {
        for (int i = 0; i < 5; ++i) {
            history_.observe({look, {}}, size, false, [&] { return look; });
        }
    }
    app::LayoutHistory history_;
};

TEST_F(LayoutHistory, TakesNoResizedWindowAndNoDragForAChange) {
    show("first");
    show("narrow", {900, 600});
    EXPECT_FALSE(history_.can_undo());
    for (int i = 0; i < 5; ++i) {
        history_.observe({"dragging", {}}, {900, 600}, true, [] { return "dragging"; });
    }
    EXPECT_FALSE(history_.can_undo());
    show("dragged", {900, 600});
    EXPECT_EQ(history_.undo()->places, "narrow");
}

}  // namespace
