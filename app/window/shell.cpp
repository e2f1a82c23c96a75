#include "app/window/shell.h"

#include "app/widgets/fonts.h"
#include "app/widgets/imgui_internals.h"
#include "app/widgets/theme.h"
#include "app/workspace/jobs/wake.h"

#include <GLFW/glfw3.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>
#include <imgui_impl_opengl3_loader.h>
#include <implot.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace app {
namespace {

// Input is followed by a few frames, so that hovering, popups and layout settle. News from a
// background thread is followed by one frame, or by two if a view was replaced.
constexpr int kFramesAfterInput = 5;
constexpr int kFramesAfterChange = 2;
constexpr double kLongestSleep_s = 1.0;
constexpr double kTooltipSleep_s = 0.1;
// While input is queued, frames are built but not shown, so that typing does not wait for a slow
// display. At least this often one is shown.
constexpr double kLongestUnseen_s = 0.05;

// ---- the operating system's window and its OpenGL 3.3 context -------------------------------

constexpr int kLeastWidth = 720;
constexpr int kLeastHeight = 480;

// GLFW reports through a callback that has no user pointer.
std::string& last_glfw_error() {
    static std::string text;
    return text;
}

std::string because() {
    return last_glfw_error().empty() ? std::string() : fmt::format(" ({})", last_glfw_error());
}

models::Error no_display() {
    const char* display = std::getenv("DISPLAY");
    if (!display || !*display) {
        return {
            "There is no display for the window: DISPLAY is not set. Start temposcope in a desktop "
            "session, over `ssh -X` or under `xvfb-run -a`; `temposcope export` draws charts "
            "without a display."};
    }
    return {fmt::format(
        "The X server at DISPLAY={} did not answer{}. Check DISPLAY, or start temposcope under "
        "`xvfb-run -a`; `temposcope export` draws charts without a display.",
        display, because())};
}

/// At most the area of the screen that the desktop leaves free.
GlfwWindowOptions fit_to_screen(GlfwWindowOptions options) {
    GLFWmonitor* const monitor = glfwGetPrimaryMonitor();
    if (monitor == nullptr) return options;
    int x = 0, y = 0, width = 0, height = 0;
    glfwGetMonitorWorkarea(monitor, &x, &y, &width, &height);
    float scale_x = 1, scale_y = 1;  // GLFW_SCALE_TO_MONITOR multiplies the size by these
    glfwGetMonitorContentScale(monitor, &scale_x, &scale_y);
    if (width <= 0 || height <= 0 || scale_x <= 0 || scale_y <= 0) return options;
    const auto units = [](int pixels, float scale) {
        return static_cast<int>(static_cast<float>(pixels) / scale);
    };
    options.width = std::min(options.width, std::max(kLeastWidth, units(width, scale_x)));
    options.height = std::min(options.height, std::max(kLeastHeight, units(height, scale_y)));
    return options;
}

/// Opens the window hidden, to be shown with its first frame, and makes its context current.
/// Errors: no display, a display that does not answer, no OpenGL 3.3; the message names the remedy.
models::Result<GlfwWindow> open_glfw_window(const GlfwWindowOptions& wanted) {
    last_glfw_error().clear();
    glfwSetErrorCallback([](int, const char* text) { last_glfw_error() = text; });
    if (!glfwInit()) return tl::unexpected(no_display());
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    glfwWindowHint(GLFW_DEPTH_BITS, 0);
    glfwWindowHint(GLFW_STENCIL_BITS, 0);
    glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
    glfwWindowHint(GLFW_VISIBLE, GLFW_FALSE);
    glfwWindowHintString(GLFW_X11_CLASS_NAME, "temposcope");
    glfwWindowHintString(GLFW_X11_INSTANCE_NAME, "temposcope");
    const GlfwWindowOptions options = fit_to_screen(wanted);
    GlfwWindow window(
        glfwCreateWindow(options.width, options.height, options.title.c_str(), nullptr, nullptr));
    if (!window) {
        const std::string reason = because();
        glfwTerminate();
        return models::fail(
            "The display is there but OpenGL 3.3 could not be started{}. Install a driver "
            "(Debian: libgl1-mesa-dri holds a software one) or try LIBGL_ALWAYS_SOFTWARE=1.",
            reason);
    }
    glfwMakeContextCurrent(window.get());
    glfwSwapInterval(1);
    glfwSetWindowSizeLimits(window.get(), kLeastWidth, kLeastHeight, GLFW_DONT_CARE,
                            GLFW_DONT_CARE);
    return window;
}

/// The scale of the monitor, or TEMPOSCOPE_SCALE if it is set.
float content_scale(GLFWwindow* window) {
    float x = 1, y = 1;
    glfwGetWindowContentScale(window, &x, &y);
    if (const char* forced = std::getenv("TEMPOSCOPE_SCALE")) x = std::strtof(forced, nullptr);
    return x > 0 ? std::clamp(x, 0.5F, 4.0F) : 1.0F;
}

// ---- events and clocks ----------------------------------------------------------------------

/// What this thread has used so far. Unlike a clock on the wall it leaves out other threads, which
/// build views and, without a GPU, draw the pixels.
double thread_cpu_ms() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

Shell& shell_of(GLFWwindow* window) {
    return *static_cast<Shell*>(glfwGetWindowUserPointer(window));
}

void on_drop(GLFWwindow* window, int count, const char** paths) {
    shell_of(window).ui().workspace.open({paths, paths + count});
    shell_of(window).note_input();
}

void on_scale(GLFWwindow* window, float, float) {
    shell_of(window).set_scale(content_scale(window));
    shell_of(window).note_input();
}

/// ImGui's backend calls these callbacks before its own.
void watch_input(GLFWwindow* window) {
    glfwSetKeyCallback(window, [](GLFWwindow* w, int, int, int, int) { shell_of(w).note_input(); });
    glfwSetCharCallback(window, [](GLFWwindow* w, unsigned) { shell_of(w).note_input(); });
    glfwSetMouseButtonCallback(window,
                               [](GLFWwindow* w, int, int, int) { shell_of(w).note_input(); });
    glfwSetScrollCallback(window, [](GLFWwindow* w, double, double) { shell_of(w).note_input(); });
    glfwSetCursorPosCallback(window,
                             [](GLFWwindow* w, double, double) { shell_of(w).note_input(); });
    glfwSetCursorEnterCallback(window, [](GLFWwindow* w, int) { shell_of(w).note_input(); });
    glfwSetWindowFocusCallback(window, [](GLFWwindow* w, int) { shell_of(w).note_input(); });
    glfwSetWindowIconifyCallback(window, [](GLFWwindow* w, int) { shell_of(w).note_input(); });
    glfwSetWindowRefreshCallback(window, [](GLFWwindow* w) { shell_of(w).note_input(); });
    glfwSetFramebufferSizeCallback(window,
                                   [](GLFWwindow* w, int, int) { shell_of(w).note_input(); });
}

}  // namespace

void DestroyGlfwWindow::operator()(GLFWwindow* window) const {
    glfwDestroyWindow(window);
    glfwTerminate();
}

models::Result<std::unique_ptr<Shell>> Shell::open(const ShellOptions& options) {
    std::unique_ptr<Shell> shell(new Shell);
    GlfwWindowOptions window_options = options.window;
    std::string problem;
    if (!options.settings_folder.empty()) {
        LoadedSettings loaded = load_settings(options.settings_folder / "window.json");
        problem = std::move(loaded.problem);
        shell->saved_settings_ = std::move(loaded.settings);
        shell->folder_ = options.settings_folder;
        window_options.width = shell->saved_settings_.window_width;
        window_options.height = shell->saved_settings_.window_height;
    }
    set_up(shell->ui_, shell->saved_settings_);
    if (options.before_window) options.before_window(shell->ui_);
    if (!problem.empty()) {
        shell->ui_.workspace.notify(profiler::Severity::kWarning, std::move(problem));
    }
    auto window = open_glfw_window(window_options);
    if (!window) return tl::unexpected(window.error());
    shell->adopt(std::move(*window));
    shell->start_imgui();
    return shell;
}

void Shell::adopt(GlfwWindow window) {
    window_ = std::move(window);
    glfwSetWindowUserPointer(window_.get(), this);
    glfwSetDropCallback(window_.get(), on_drop);
    glfwSetWindowContentScaleCallback(window_.get(), on_scale);
    watch_input(window_.get());
    set_wake_window(glfwPostEmptyEvent);
    scale_ = content_scale(window_.get());
}

void Shell::start_imgui() {
    if (!IMGUI_CHECKVERSION()) throw std::logic_error("Dear ImGui was built with other options");
    ImGui::CreateContext();
    ImPlot::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable | ImGuiConfigFlags_NavEnableKeyboard;
    io.ConfigWindowsMoveFromTitleBarOnly = true;
    io.ConfigInputTextCursorBlink = false;  // it would cost a frame twice a second
    ImPlot::GetInputMap().ZoomRate = 0.4F;  // a notch of the wheel takes off two ninths
    std::error_code error;
    if (!folder_.empty()) std::filesystem::create_directories(folder_, error);
    layout_file_ = folder_.empty() ? std::string() : (folder_ / "layout.ini").string();
    io.IniFilename = layout_file_.empty() ? nullptr : layout_file_.c_str();
    load_saved_layout(layout_file_);
    load_fonts();
    ImGui_ImplGlfw_InitForOpenGL(window_.get(), true);
    ImGui_ImplOpenGL3_Init("#version 330");
}

Shell::~Shell() { close_contexts(); }

void Shell::close_contexts() {
    if (!window_ || !ImGui::GetCurrentContext()) return;  // there is nothing to close
    int width = 0, height = 0;
    glfwGetWindowSize(window_.get(), &width, &height);
    if (!glfwGetWindowAttrib(window_.get(), GLFW_MAXIMIZED) && width > 0) {
        ui_.settings.window_width = width;
        ui_.settings.window_height = height;
    }
    save_changed_settings();
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    ImPlot::DestroyContext();
    ImGui::DestroyContext();
}

void Shell::save_changed_settings() {
    if (folder_.empty()) return;
    Settings settings = current_settings(ui_);
    if (settings == saved_settings_) return;
    save_settings(settings, folder_ / "window.json");
    saved_settings_ = std::move(settings);
}

/// Only between frames, so that a panel does not draw with two themes.
void Shell::apply_pending_theme() {
    if (wanted_scale() == applied_scale_ && ui_.settings.dark == applied_dark_) return;
    apply_theme(ui_.settings.dark, wanted_scale());
    applied_scale_ = wanted_scale();
    applied_dark_ = ui_.settings.dark;
}

/// Only between frames; ImGui requires it.
void Shell::load_pending_layout() {
    const auto layout = std::exchange(ui_.layout_to_restore, std::nullopt);
    if (layout) restore_layout(ui_, *layout);
}

/// Empty if this frame does not show the panel.
std::optional<PixelRect> Shell::pixels_of_panel(const std::string& id) const {
    const auto found = ui_.panel_rects.find(id);
    if (found == ui_.panel_rects.end()) return std::nullopt;
    const ImVec2 scale = ImGui::GetIO().DisplayFramebufferScale;
    const ImVec2 corner = found->second.corner * scale, size = found->second.size * scale;
    return PixelRect{static_cast<int>(corner.x), static_cast<int>(corner.y),
                     static_cast<int>(size.x), static_cast<int>(size.y)};
}

void Shell::take_picture(const std::filesystem::path& file) {
    PixelRect whole;
    glfwGetFramebufferSize(window_.get(), &whole.width, &whole.height);
    const PixelRect rect = pixels_of_panel(std::exchange(picture_panel_, {})).value_or(whole);
    if (const auto saved = save_png(rect, file); !saved) {
        ui_.workspace.notify(profiler::Severity::kError, saved.error().message);
    } else {
        ui_.workspace.notify(profiler::Severity::kInfo, "Saved " + file.string() + ".");
    }
}

void Shell::build_frame() {
    const double start_ms = thread_cpu_ms();
    apply_pending_theme();
    load_pending_layout();
    // The picture was requested in the frame before; the dialog has closed since.
    if (ui_.picture) {
        picture_ = std::exchange(ui_.picture, std::nullopt);
        picture_panel_ = std::exchange(ui_.picture_panel, {});
    }
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    ImGui::NewFrame();
    draw_ui(ui_);
    ImGui::Render();
    ui_cpu_ms_ = thread_cpu_ms() - start_ms;
}

void Shell::draw_frame(const std::function<void()>& before_swap, bool is_shown) {
    build_frame();
    if (is_shown) show_frame(before_swap);
}

void Shell::show_frame(const std::function<void()>& before_swap) {
    int width = 0, height = 0;
    glfwGetFramebufferSize(window_.get(), &width, &height);
    glViewport(0, 0, width, height);
    const ImVec4 ground = to_vec4(palette().background);
    glClearColor(ground.x, ground.y, ground.z, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    if (before_swap) before_swap();
    if (picture_) take_picture(*std::exchange(picture_, std::nullopt));
    glfwSwapBuffers(window_.get());
    if (frame_count_++ == 0)
        glfwShowWindow(window_.get());  // the window appears with its first frame drawn
    if (frame_count_ % 60 == 0) save_changed_settings();
}

bool Shell::wait_for_something() {
    const double before_s = glfwGetTime();
    double sleep_s = std::clamp(seconds_to_next_frame(ui_), 0.01, kLongestSleep_s);
    if (is_tooltip_due()) sleep_s = std::min(sleep_s, kTooltipSleep_s);
    glfwWaitEventsTimeout(sleep_s);
    const bool woken = glfwGetTime() - before_s < sleep_s;
    return woken || sleep_s < kLongestSleep_s;
}

int Shell::frames_still_due() {
    const bool new_theme = wanted_scale() != applied_scale_ || ui_.settings.dark != applied_dark_;
    if (ui_.workspace.take_changed() || new_theme) return kFramesAfterChange;
    return needs_next_frame(ui_) || has_queued_input() ? 1 : 0;
}

void Shell::run(const std::function<bool()>& is_over) {
    int frames_due = kFramesAfterInput;
    double shown_s = 0;
    while (!glfwWindowShouldClose(window_.get()) && !ui_.quit && !(is_over && is_over())) {
        if (frames_due > 0) {
            glfwPollEvents();
        } else if (!wait_for_something()) {
            continue;
        }
        if (std::exchange(input_seen_, false)) frames_due = kFramesAfterInput;
        if (glfwGetWindowAttrib(window_.get(), GLFW_ICONIFIED)) {
            frames_due = 0;
            continue;
        }
        build_before_press([this] { build_frame(); });
        build_frame();
        if (!has_queued_input() || glfwGetTime() - shown_s > kLongestUnseen_s) {
            show_frame({});
            shown_s = glfwGetTime();
        }
        frames_due = std::max(frames_due - 1, frames_still_due());
    }
}

}  // namespace app
