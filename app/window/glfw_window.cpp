#include "app/window/glfw_window.h"

#include <GLFW/glfw3.h>

#include <algorithm>
#include <cstdlib>

namespace app {
namespace {

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

}  // namespace

void DestroyGlfwWindow::operator()(GLFWwindow* window) const {
    glfwDestroyWindow(window);
    glfwTerminate();
}

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

float content_scale(GLFWwindow* window) {
    float x = 1, y = 1;
    glfwGetWindowContentScale(window, &x, &y);
    if (const char* forced = std::getenv("TEMPOSCOPE_SCALE")) x = std::strtof(forced, nullptr);
    return x > 0 ? std::clamp(x, 0.5F, 4.0F) : 1.0F;
}

}  // namespace app
