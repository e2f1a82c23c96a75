#pragma once

#include "models/config/result.h"

#include <memory>
#include <string>

struct GLFWwindow;

/// The operating system's window and its OpenGL 3.3 context.
namespace app {

struct GlfwWindowOptions {
    int width = 1600;  // in screen coordinates at scale 1
    int height = 1000;
    std::string title = "temposcope";
};

struct DestroyGlfwWindow {
    void operator()(GLFWwindow* window) const;
};
using GlfwWindow = std::unique_ptr<GLFWwindow, DestroyGlfwWindow>;

/// Opens the window hidden, to be shown with its first frame, and makes its context current.
/// Errors: no display, a display that does not answer, no OpenGL 3.3; the message names the remedy.
models::Result<GlfwWindow> open_glfw_window(const GlfwWindowOptions& options);

/// The scale of the monitor, or TEMPOSCOPE_SCALE if it is set.
float content_scale(GLFWwindow* window);

}  // namespace app
