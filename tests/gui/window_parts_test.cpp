// Parts of the window that need no display.
#include "app/widgets/command_palette.h"
#include "app/window/capture_session.h"
#include "app/window/settings.h"
#include "profiler/protocol/messages.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>

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

TEST(CaptureForm, ComesBackFromItsFields) {
    const app::CaptureForm form{.model = "gpt2-medium",
                                .num_layers = 0,
                                .head = "lm",
                                .recipes = {"original", "gelu=in_place,masks=bit"},
                                .batch_size = 2,
                                .memory_limit = "3GiB",
                                .folder = "/somewhere else/out"};
    EXPECT_EQ(app::form_from_fields(app::to_fields(form)), form);
    EXPECT_EQ(app::form_from_fields({{"batch", "many"}}), app::CaptureForm{});
}

TEST(CaptureForm, BecomesOneRequestPerRecipe) {
    const auto requests = app::make_requests({.recipes = {"original", "tempo"}, .folder = "/out"});
    ASSERT_TRUE(requests) << requests.error().message;
    ASSERT_EQ(requests->size(), 2U);
    EXPECT_EQ((*requests)[1].output_path, "/out/tempo.tscope");
    EXPECT_EQ((*requests)[1].workload.at("recipe_name"), "tempo");
}

TEST(CaptureForm, IsRefusedInOneSentenceWhenItCannotRun) {
    const auto refused = [](const app::CaptureForm& form) {
        const auto requests = app::make_requests(form);
        return requests ? std::string("accepted") : requests.error().message;
    };
    EXPECT_NE(refused({.model = "bert-huge"}).find("bert-huge"), std::string::npos);
    EXPECT_NE(refused({.recipes = {"temp"}}).find("temp"), std::string::npos);
    EXPECT_NE(refused({.seq_len = 100'000}), "accepted");
    EXPECT_NE(refused({.memory_limit = "lots"}), "accepted");
    EXPECT_EQ(refused({.recipes = {}}), "Choose at least one recipe.");
}

}  // namespace
