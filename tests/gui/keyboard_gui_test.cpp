#include "tests/gui/test_window.h"

#include "app/widgets/theme.h"

#include <imgui_internal.h>

#include <string>

namespace tests {
namespace {

/// The keys, and the text size, as after the first start.
void reset_all(ImGuiTestContext* c) {
    window().reset(c);
    for (app::Action& action : window().ui().actions) action.keys = action.default_keys;
    window().ui().keyboard = {};
    window().ui().settings.text_scale = 1;
    c->Yield(3);
}

const app::Action& action(const std::string& title) {
    for (const app::Action& action : window().ui().actions) {
        if (action.title == title) return action;
    }
    return window().ui().actions.front();
}

/// Begins to choose the first key of an action, as a click on its button does.
void wait_for_key(const std::string& title) {
    auto& ui = window().ui();
    for (size_t i = 0; i < ui.actions.size(); ++i) {
        if (ui.actions[i].title == title) ui.keyboard.waiting = app::KeySlot{i, 0};
    }
}

GUI_TEST(keyboard, keys_are_listed_and_changed) {
    reset_all(c);
    window().press(c, ImGuiMod_Shift | ImGuiKey_Slash);
    IM_CHECK(window().ui().keyboard.is_open);
    window().take_picture(c, "keyboard");
    const ImGuiTestItemInfo button = c->ItemInfo("//###keyboard/**/$$0/###key");
    IM_CHECK(button.ID != 0);
    wait_for_key("Swap A and B");
    c->Yield(2);
    window().take_picture(c, "keyboard_waits");
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_B);
    IM_CHECK(!window().ui().keyboard.waiting.has_value());
    IM_CHECK_EQ(action("Swap A and B").keys[0], ImGuiMod_Ctrl | ImGuiKey_B);
    window().press(c, ImGuiKey_F1);
    window().open(c, {"original", "tempo"});
    const auto a = window().workspace().selection().a;
    window().press(c, ImGuiKey_X);
    IM_CHECK(window().workspace().selection().a == a);
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_B);
    IM_CHECK(window().workspace().selection().b == a);
    reset_all(c);
}

GUI_TEST(keyboard, a_key_of_another_command_is_taken_on_the_second_press) {
    reset_all(c);
    window().press(c, ImGuiKey_F1);
    IM_CHECK(c->WindowInfo("###keyboard").Window != nullptr);
    wait_for_key("Swap A and B");
    c->Yield(2);
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_R);
    IM_CHECK(window().ui().keyboard.waiting.has_value());
    IM_CHECK_NE(window().ui().keyboard.sentence.find("Read all again"), std::string::npos);
    window().take_picture(c, "keyboard_conflict");
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_R);
    IM_CHECK_EQ(action("Swap A and B").keys[0], ImGuiMod_Ctrl | ImGuiKey_R);
    IM_CHECK_EQ(action("Read all again").keys[0], 0);
    wait_for_key("Swap A and B");
    c->Yield(2);
    c->KeyPress(ImGuiKey_W);  // the time axis needs it
    c->Yield(2);
    IM_CHECK_EQ(action("Swap A and B").keys[0], ImGuiMod_Ctrl | ImGuiKey_R);
    c->KeyPress(ImGuiKey_Escape);  // keeps the key and the page
    c->Yield(2);
    IM_CHECK(!window().ui().keyboard.waiting.has_value());
    IM_CHECK(window().ui().keyboard.is_open);
    window().click(c, "//###keyboard/Reset all");
    IM_CHECK_EQ(action("Read all again").keys[0], ImGuiMod_Ctrl | ImGuiKey_R);
    reset_all(c);
}

/// Nothing of the bars lies outside the window, and no menu bar entry hides another.
void check_bars(ImGuiTestContext* c) {
    const float width = ImGui::GetMainViewport()->Size.x;
    const ImRect theme = c->ItemInfo("//##toolbar/**/###theme").RectFull;
    const ImRect search = c->ItemInfo("//##toolbar/**/###search").RectFull;
    IM_CHECK_LE(theme.Max.x, width);
    IM_CHECK_LE(search.Max.x, theme.Min.x);
    IM_CHECK_LE(c->ItemInfo("//##MainMenuBar/##MenuBar/Help").RectFull.Max.x, width);
}

GUI_TEST(keyboard, text_grows_and_shrinks) {
    reset_all(c);
    window().open(c, {"original", "tempo", "tempo-packed"});
    window().resize(c, 1920, 1080);
    const float small = ImGui::GetFontSize();
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_Equal);
    IM_CHECK_GT(ImGui::GetFontSize(), small);
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_Minus);
    IM_CHECK_EQ(ImGui::GetFontSize(), small);
    for (const bool dark : {true, false}) {
        window().ui().settings.dark = dark;
        for (const float scale : {1.0F, 2.0F, 3.0F}) {
            window().ui().settings.text_scale = scale;
            c->Yield(6);
            window().settle(c);
            check_bars(c);
            const std::string name = dark ? "text_dark_" : "text_light_";
            window().take_picture(c, name + std::to_string(static_cast<int>(scale)));
        }
    }
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_K);
    c->KeyChars("layer");
    window().take_picture(c, "text_search_3");
    c->KeyPress(ImGuiKey_Escape);
    window().press(c, ImGuiKey_F1);
    window().take_picture(c, "text_keyboard_3");
    c->KeyPress(ImGuiKey_F1);
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_0);
    IM_CHECK_EQ(ImGui::GetFontSize(), small);
    window().resize(c, 1600, 1000);
    reset_all(c);
}

}  // namespace
}  // namespace tests
