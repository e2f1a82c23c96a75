#include "app/window/pixels.h"

#include "profiler/trace/file/write_file.h"

#include <imgui_impl_opengl3_loader.h>

#include <algorithm>
#include <string>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb_image_write.h>
#pragma GCC diagnostic pop

namespace app {

std::vector<uint32_t> read_pixels(const PixelRect& rect) {
    GLint viewport[4] = {};
    glGetIntegerv(GL_VIEWPORT, viewport);
    const auto width = static_cast<std::ptrdiff_t>(rect.width);
    std::vector<uint32_t> pixels(static_cast<size_t>(rect.width) *
                                 static_cast<size_t>(rect.height));
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glReadPixels(rect.x, viewport[3] - rect.y - rect.height, rect.width, rect.height, GL_RGBA,
                 GL_UNSIGNED_BYTE, pixels.data());
    // OpenGL counts rows from the bottom.
    for (std::ptrdiff_t top = 0, bottom = rect.height - 1; top < bottom; ++top, --bottom) {
        std::swap_ranges(pixels.begin() + top * width, pixels.begin() + (top + 1) * width,
                         pixels.begin() + bottom * width);
    }
    for (uint32_t& pixel : pixels) pixel |= 0xFF000000U;
    return pixels;
}

models::Result<void> save_png(const PixelRect& rect, const std::filesystem::path& path) {
    const std::vector<uint32_t> pixels = read_pixels(rect);
    stbi_write_png_compression_level = 9;
    std::string png;
    const auto append = [](void* to, void* bytes, int count) {
        static_cast<std::string*>(to)->append(static_cast<const char*>(bytes),
                                              static_cast<size_t>(count));
    };
    // To memory first: stb_image_write reports no error when the disk is full.
    if (!stbi_write_png_to_func(append, &png, rect.width, rect.height, 4, pixels.data(),
                                rect.width * 4)) {
        return models::fail("There is not enough memory for {}; close some traces and try again.",
                            path.string());
    }
    return profiler::write_file(path, png);
}

}  // namespace app
