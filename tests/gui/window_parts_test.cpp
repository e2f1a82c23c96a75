// Parts of the window that need no display.
#include "app/user/settings.h"
#include "app/widgets/command_palette.h"
#include "app/widgets/file_dialog.h"
#include "app/window/bars.h"
#include "app/window/layout_history.h"
#include "app/workspace/capture_session.h"
#include "app/workspace/selection.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <iterator>
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
    settings.shown_panels["health"] = false;
    settings.capture_form = app::to_fields({.model = "gpt2", .batch_size = 3});
    settings.remember_file(scratch.path / "a.tscope");
    app::save_settings(settings, scratch.path / "deep" / "window.json");
    EXPECT_EQ(app::load_settings(scratch.path / "deep" / "window.json"), settings);
    // No other file is left in the folder, which another window may be using.
    const fs::directory_iterator files(scratch.path / "deep");
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(Settings, AreTheDefaultsWhenTheFileIsMissingOrDamaged) {
    const ScratchFolder scratch;
    EXPECT_EQ(app::load_settings(scratch.path / "none.json"), app::Settings{});
    for (const char* damaged : {"", "{", "[1]", R"({"dark": "no", "window_width": [1]})"}) {
        std::ofstream(scratch.path / "window.json") << damaged;
        EXPECT_EQ(app::load_settings(scratch.path / "window.json"), app::Settings{}) << damaged;
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

TEST_F(LayoutHistory, BringsBackOneChangeAfterTheOther) {
    show("first");
    EXPECT_FALSE(history_.can_undo());
    show("second");
    show("third");
    EXPECT_EQ(history_.undo()->places, "second");
    show("second");
    EXPECT_EQ(history_.undo()->places, "first");
    show("first");
    EXPECT_FALSE(history_.can_undo());
    show("fourth");
    EXPECT_EQ(history_.undo()->places, "first");
}

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
