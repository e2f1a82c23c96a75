// Drives the real window. The exit status is 0 if at least one test ran and all tests passed.
#include "app/window/pixels.h"
#include "tests/gui/pacing.h"
#include "tests/gui/random_inputs.h"
#include "tests/gui/test_traces.h"
#include "tests/gui/test_window.h"

#include <GLFW/glfw3.h>
#include <imgui_te_ui.h>
#include <imgui_te_utils.h>

#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

namespace {

namespace fs = std::filesystem;

void configure(ImGuiTestEngineIO& io) {
    io.ConfigRunSpeed = ImGuiTestRunSpeed_Fast;
    io.ConfigNoThrottle = true;
    // Time advances by frames: on a loaded machine two clicks still make a double click.
    io.ConfigFixedDeltaTime = 1.0F / 60;
    io.ConfigSavedSettings = false;
    io.ConfigMouseDrawCursor = false;
    io.ConfigLogToTTY = true;
    io.ConfigVerboseLevel = ImGuiTestVerboseLevel_Info;
    io.ConfigVerboseLevelOnError = ImGuiTestVerboseLevel_Debug;
    // For tests that hang. A loaded machine may be ten times slower than an idle one.
    io.ConfigWatchdogKillTest = 600;
    io.ConfigWatchdogKillApp = 1500;
    io.ScreenCaptureFunc = [](ImGuiID, int x, int y, int width, int height, unsigned* out, void*) {
        const auto pixels = app::read_pixels({x, y, width, height});
        std::copy(pixels.begin(), pixels.end(), out);
        return true;
    };
}

// Tests this program: a failing test must make the run fail.
GUI_TEST(must_fail, one_is_two) { IM_CHECK_EQ(1, 2); }

/// The engine's own filter would also take tests of other groups that have the word in their name.
void queue_group(ImGuiTestEngine* engine, const std::string& group) {
    ImVector<ImGuiTest*> tests;
    ImGuiTestEngine_GetTestList(engine, &tests);
    for (ImGuiTest* test : tests) {
        if (group != test->Category) continue;
        ImGuiTestEngine_QueueTest(engine, test, ImGuiTestRunFlags_RunFromCommandLine);
    }
}

int run_tests(app::Shell& shell, const std::string& group) {
    ImGuiTestEngine* engine = ImGuiTestEngine_CreateContext();
    configure(ImGuiTestEngine_GetIO(engine));
    ImGuiTestEngine_Start(engine, ImGui::GetCurrentContext());
    ImGuiTestEngine_InstallDefaultCrashHandler();
    tests::register_gui_tests(engine);
    queue_group(engine, group);
    glfwSwapInterval(0);
    while (!ImGuiTestEngine_IsTestQueueEmpty(engine)) {
        glfwPollEvents();
        shell.draw_frame([&] { ImGuiTestEngine_PreSwap(engine); });
        ImGuiTestEngine_PostSwap(engine);
    }
    ImGuiTestEngineResultSummary result;
    ImGuiTestEngine_GetResultSummary(engine, &result);
    std::printf("%d/%d tests passed\n", result.CountSuccess, result.CountTested);
    ImGuiTestEngine_Stop(engine);
    shell.close_contexts();  // ImGui's context goes before the engine's
    ImGuiTestEngine_DestroyContext(engine);
    return result.CountTested > 0 && result.CountSuccess == result.CountTested ? 0 : 1;
}

/// Three groups drive the window themselves: the engine would stand between.
int run_group(app::Shell& shell, std::map<std::string, std::string>& options,
              const fs::path& scratch) {
    if (options["--filter"] == "pacing") return tests::check_pacing(shell);
    if (options["--filter"] == "arrivals") return tests::check_arrivals(shell);
    if (options["--filter"] != "random") return run_tests(shell, options["--filter"]);
    fs::create_directory(scratch / "written");
    fs::current_path(scratch / "written");
    glfwSwapInterval(0);
    return tests::check_random_inputs(shell,
                                      {.count = std::stoll(options["--inputs"]),
                                       .seed = static_cast<uint32_t>(std::stoul(options["--seed"])),
                                       .traces = scratch / "traces"});
}

}  // namespace

int main(int argc, char** argv) {
    std::map<std::string, std::string> options{
        {"--filter", ""}, {"--pictures", "pictures"}, {"--inputs", "1500"}, {"--seed", "1"}};
    for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
    const fs::path scratch =
        fs::temp_directory_path() / ("temposcope_gui_test_" + std::to_string(getpid()));
    tests::write_test_traces(scratch / "traces");
    auto shell = app::Shell::open({.settings_folder = options["--settings"]});
    if (!shell) {
        std::fprintf(stderr, "%s\n", shell.error().message.c_str());
        return 2;
    }
    tests::TestWindow window(**shell, options["--pictures"], scratch / "traces");
    tests::set_window(window);
    const int status = run_group(**shell, options, scratch);
    fs::remove_all(scratch);
    return status;
}
