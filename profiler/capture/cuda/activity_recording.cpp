#include "profiler/capture/cuda/activity_recording.h"

#include <array>
#include <cstring>
#include <string_view>

namespace profiler {
namespace {

constexpr std::string_view kMagic = "tscupti1";

std::array<char, 8> bytes_of(uint64_t value) {
    std::array<char, 8> bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

}  // namespace

ActivityRecordingWriter::ActivityRecordingWriter(const std::filesystem::path& path,
                                                 NextActivityRecord next)
    : file_(path, std::ios::binary), next_(next) {
    file_ << kMagic;
    file_.write(bytes_of(CUPTI_API_VERSION).data(), 8);
}

void ActivityRecordingWriter::add_chunk(uint64_t address, std::string_view bytes) {
    file_.write(bytes_of(bytes.size()).data(), 8);
    file_.write(bytes_of(address).data(), 8);
    file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void ActivityRecordingWriter::add(std::span<uint8_t> buffer) {
    visit_activity_texts(buffer, next_, [&](const char*& text) {
        if (text == nullptr || !written_texts_.insert(text).second) return;
        add_chunk(reinterpret_cast<uint64_t>(text), text);
    });
    add_chunk(0, {reinterpret_cast<const char*>(buffer.data()), buffer.size()});
    file_.flush();
}

}  // namespace profiler
