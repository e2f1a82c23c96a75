#include "tests/gui/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#define STBI_NO_SIMD  // tests are built without optimization, which its intrinsics need
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb_image.h>
#include <stb_image_write.h>
#pragma GCC diagnostic pop

namespace tests {
namespace {

namespace fs = std::filesystem;

constexpr int kGoldenWidth = 200;  // about; a block is a whole number of pixels
constexpr int kChannels = 3;
/// A block of another colour differs by far more. Text of which a block's glyphs move by half a
/// pixel differs by less.
constexpr int kBlockTolerance = 40;  // of 255
/// How many blocks may differ by more, of a thousand: a blinking cursor, a mark of one pixel.
constexpr int kMostDifferent = 2;

struct Pixels {
    int width = 0;
    int height = 0;
    std::vector<uint8_t> bytes;  // kChannels a pixel
};

Pixels read_picture(const fs::path& file) {
    Pixels pixels;
    int channels = 0;
    const std::unique_ptr<stbi_uc, void (*)(void*)> data(
        stbi_load(file.c_str(), &pixels.width, &pixels.height, &channels, kChannels),
        stbi_image_free);
    if (!data) return {};
    pixels.bytes.assign(data.get(), data.get() + pixels.width * pixels.height * kChannels);
    return pixels;
}

Pixels shrink(const Pixels& full) {
    const int block = std::max(1, full.width / kGoldenWidth);
    Pixels small{full.width / block, full.height / block, {}};
    for (int y = 0; y < small.height; ++y) {
        for (int x = 0; x < small.width; ++x) {
            for (int c = 0; c < kChannels; ++c) {
                int sum = 0;
                for (int i = 0; i < block * block; ++i) {
                    const int row = y * block + i / block, column = x * block + i % block;
                    sum += full.bytes[static_cast<size_t>((row * full.width + column) * kChannels +
                                                          c)];
                }
                small.bytes.push_back(static_cast<uint8_t>(sum / (block * block)));
            }
        }
    }
    return small;
}

int count_different(const Pixels& a, const Pixels& b) {
    int different = 0;
    for (size_t i = 0; i < a.bytes.size(); i += kChannels) {
        int most = 0;
        for (size_t c = 0; c < kChannels; ++c) {
            most = std::max(most, std::abs(int{a.bytes[i + c]} - int{b.bytes[i + c]}));
        }
        different += most > kBlockTolerance;
    }
    return different;
}

}  // namespace

std::string difference_from_golden(const fs::path& picture) {
    const Pixels now = shrink(read_picture(picture));
    const fs::path golden =
        fs::path(TEMPOSCOPE_SOURCE_DIR) / "tests" / "gui" / "golden" / picture.filename();
    if (now.bytes.empty()) return fmt::format("{} cannot be read.", picture.string());
    if (std::getenv("TEMPOSCOPE_NEW_GOLDEN")) {
        fs::create_directories(golden.parent_path());
        const bool written = stbi_write_png(golden.c_str(), now.width, now.height, kChannels,
                                            now.bytes.data(), now.width * kChannels) != 0;
        return written ? "" : fmt::format("{} cannot be written.", golden.string());
    }
    const Pixels before = read_picture(golden);
    if (before.bytes.empty()) return fmt::format("There is no {}.", golden.string());
    if (before.width != now.width || before.height != now.height) {
        return fmt::format("The picture has {}x{} blocks instead of {}x{}.", now.width, now.height,
                           before.width, before.height);
    }
    const int blocks = now.width * now.height;
    const int different = count_different(now, before);
    if (different * 1000 <= blocks * kMostDifferent) return {};
    return fmt::format(
        "{} of {} blocks differ. Look at {}; if it is right, set TEMPOSCOPE_NEW_GOLDEN and run "
        "again.",
        different, blocks, picture.string());
}

}  // namespace tests
