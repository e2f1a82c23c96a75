#include "tests/gui/test_window.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace tests {
namespace {

namespace fs = std::filesystem;

/// A copy of a trace that a test may replace.
fs::path open_copy(ImGuiTestContext* c) {
    window().reset(c);
    window().ui().settings.reload_changed_files = false;
    const fs::path file = window().folder() / "copy" / "original.tscope";
    fs::create_directories(file.parent_path());
    fs::copy_file(window().trace("original"), file, fs::copy_options::overwrite_existing);
    window().open_files(c, {file});
    return file;
}

void replace(const fs::path& file, const fs::path& by) {
    fs::copy_file(by, file.string() + ".new", fs::copy_options::overwrite_existing);
    fs::rename(file.string() + ".new", file);
}

bool offers_reload() {
    const auto& toasts = window().ui().toasts.toasts;
    return std::any_of(toasts.begin(), toasts.end(),
                       [](const auto& toast) { return !toast.notice.reload.empty(); });
}

GUI_TEST(reload, a_replaced_file_is_offered_and_read_again) {
    const fs::path file = open_copy(c);
    const auto before = window().workspace().documents().front();
    replace(file, window().trace("tempo"));
    wait_until(c, offers_reload);
    IM_CHECK(window().workspace().documents().front() == before);
    IM_CHECK_EQ(window().ui().toasts.toasts.size(), size_t{1});
    c->Yield(3);
    window().workspace().take_notices();
    const std::string button =
        "//##toast" + std::to_string(window().ui().toasts.toasts.front().id) + "/###reload";
    window().click(c, button.c_str());
    IM_CHECK(!offers_reload());
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{1});
    IM_CHECK_STR_EQ(window().workspace().documents().front()->recipe.c_str(), "tempo");
}

GUI_TEST(reload, a_replaced_file_is_read_without_asking_if_wanted) {
    const fs::path file = open_copy(c);
    window().ui().settings.reload_changed_files = true;
    replace(file, window().trace("tempo"));
    wait_until(c, [] { return window().workspace().documents().front()->recipe == "tempo"; });
    IM_CHECK(!offers_reload());
    window().ui().settings.reload_changed_files = false;
}

GUI_TEST(reload, a_broken_file_keeps_what_was_read) {
    const fs::path file = open_copy(c);
    window().ui().settings.reload_changed_files = true;
    std::ofstream(file, std::ios::trunc) << "half";
    wait_until(c, [] { return !window().ui().toasts.toasts.empty(); });
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{1});
    IM_CHECK(window().workspace().selection().a != nullptr);
    IM_CHECK(window().workspace().slots().timeline.view() != nullptr);
    replace(file, window().trace("tempo"));  // and it is read once it is whole
    wait_until(c, [] { return window().workspace().documents().front()->recipe == "tempo"; });
    window().ui().settings.reload_changed_files = false;
    window().reset(c);
}

}  // namespace
}  // namespace tests
