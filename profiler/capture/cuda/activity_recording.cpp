#include "profiler/capture/cuda/activity_recording.h"

#include <array>
#include <cstring>
#include <string_view>
#include <unordered_map>

namespace profiler {
namespace {

constexpr std::string_view kMagic = "tscupti1";
constexpr std::size_t kMaxChunkBytes = std::size_t{1} << 30;

std::array<char, 8> bytes_of(uint64_t value) {
    std::array<char, 8> bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

bool read_word(std::ifstream& file, uint64_t& value) {
    std::array<char, 8> bytes{};
    if (!file.read(bytes.data(), bytes.size())) return false;
    std::memcpy(&value, bytes.data(), sizeof value);
    return true;
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

models::Result<ActivityRecording> read_activity_recording(const std::filesystem::path& path,
                                                          NextActivityRecord next) {
    const auto fail = [&](std::string_view what) {
        return models::fail("{} {}.", path.string(), what);
    };
    std::ifstream file(path, std::ios::binary);
    if (!file) return fail("cannot be read");
    std::array<char, 8> magic{};
    uint64_t version = 0;
    if (!file.read(magic.data(), magic.size()) ||
        std::string_view(magic.data(), magic.size()) != kMagic || !read_word(file, version)) {
        return fail("is no recording of CUPTI's buffers");
    }
    if (version != CUPTI_API_VERSION) return fail("was recorded by another version of CUPTI");
    ActivityRecording recording;
    std::unordered_map<uint64_t, const char*> texts;  // by address in the recorded process
    while (file.peek() != std::ifstream::traits_type::eof()) {
        uint64_t size = 0, address = 0;
        if (!read_word(file, size) || !read_word(file, address) || size > kMaxChunkBytes) {
            return fail("ends in the middle");
        }
        std::string bytes(size, '\0');
        if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
            return fail("ends in the middle");
        }
        if (address != 0) {
            recording.texts.push_back(std::move(bytes));
            texts[address] = recording.texts.back().c_str();
            continue;
        }
        std::vector<uint64_t>& buffer = recording.buffers.emplace_back(size / 8);
        std::memcpy(buffer.data(), bytes.data(), buffer.size() * 8);
        visit_activity_texts(ActivityRecording::bytes_of(buffer), next, [&](const char*& text) {
            const auto known = texts.find(reinterpret_cast<uint64_t>(text));
            text = known == texts.end() ? nullptr : known->second;
        });
    }
    return recording;
}

}  // namespace profiler
