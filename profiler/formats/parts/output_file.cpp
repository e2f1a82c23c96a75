#include "profiler/formats/parts/output_file.h"

#include "profiler/trace/file/write_file.h"
#include "profiler/trace/text.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace profiler {

namespace fs = std::filesystem;

struct OutputFile::Impl {
    fs::path path;                             // as the user named it
    fs::path target;                           // the file behind a link
    std::optional<UnfinishedFile> unfinished;  // none: `path` is a device or a pipe
    int file = -1;
    int error = 0;  // errno of the first call that failed
    bool is_packed = false;
    z_stream packer{};
    std::string buffer;
    std::string packed;
    int64_t size_bytes = 0;

    static constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
    // Level 1 packs JSON to about a tenth at several times the speed of the default.
    static constexpr int kPackLevel = 1;
    static constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, with gzip's header

    ~Impl() {
        if (is_packed) ::deflateEnd(&packer);
        if (file >= 0) ::close(file);
    }

    void write_to_disk(std::string_view bytes) {
        if (error == 0) error = write_all(file, bytes);
    }

    void pack(int flush) {
        packer.next_in = reinterpret_cast<Bytef*>(buffer.data());
        packer.avail_in = static_cast<uInt>(buffer.size());
        do {
            packed.resize(kBufferBytes);
            packer.next_out = reinterpret_cast<Bytef*>(packed.data());
            packer.avail_out = static_cast<uInt>(packed.size());
            ::deflate(&packer, flush);
            write_to_disk({packed.data(), packed.size() - packer.avail_out});
        } while (packer.avail_out == 0 && error == 0);
    }

    void empty_buffer(bool is_last) {
        if (is_packed) {
            pack(is_last ? Z_FINISH : Z_NO_FLUSH);
        } else {
            write_to_disk(buffer);
        }
        buffer.clear();
    }
};

OutputFile::OutputFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

models::Result<OutputFile> OutputFile::create(const fs::path& path) {
    auto impl = std::make_unique<Impl>();
    impl->path = path;
    if (is_device(path)) {
        impl->file = open_device(path);
        if (impl->file < 0) return cannot_write(path, errno);
    } else {
        auto target = target_of(path);
        if (!target) return tl::unexpected(target.error());
        impl->target = std::move(*target);
        auto unfinished = UnfinishedFile::create(impl->target);
        if (!unfinished) return tl::unexpected(unfinished.error());
        impl->unfinished.emplace(std::move(*unfinished));
        impl->file = impl->unfinished->take_descriptor();
    }
    impl->is_packed = path.extension() == ".gz";
    if (impl->is_packed && ::deflateInit2(&impl->packer, Impl::kPackLevel, Z_DEFLATED,
                                          Impl::kGzipWindow, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        impl->is_packed = false;
        return cannot_write(path, ENOMEM);
    }
    impl->buffer.reserve(Impl::kBufferBytes);
    return OutputFile(std::move(impl));
}

void OutputFile::write(std::string_view bytes) {
    impl_->size_bytes += static_cast<int64_t>(bytes.size());
    impl_->buffer += bytes;
    if (impl_->buffer.size() >= Impl::kBufferBytes) impl_->empty_buffer(false);
}

int64_t OutputFile::size_bytes() const { return impl_->size_bytes; }

models::Result<void> OutputFile::finish() {
    impl_->empty_buffer(true);
    const bool is_device = !impl_->unfinished;
    if (::close(std::exchange(impl_->file, -1)) != 0 && impl_->error == 0) impl_->error = errno;
    // EPIPE: the reader closed the pipe because it has seen enough, as `head` does.
    if (impl_->error != 0 && !(is_device && impl_->error == EPIPE)) {
        return cannot_write(impl_->path, impl_->error);
    }
    if (is_device) return {};
    return impl_->unfinished->become(impl_->target);
}

std::string json_text(std::string_view text) {
    std::string json = "\"";
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t bytes = character_bytes(text.substr(i));
        const char c = text[i];
        if (bytes == 0) {
            json += '?';
        } else if (c == '"' || c == '\\') {
            json += {'\\', c};
        } else if (static_cast<unsigned char>(c) < 0x20) {
            fmt::format_to(std::back_inserter(json), "\\u{:04x}", static_cast<int>(c));
        } else {
            json += text.substr(i, bytes);
        }
        i += std::max<std::size_t>(bytes, 1);
    }
    return json + '"';
}

std::string_view JsonTexts::operator[](StringId id) {
    if (!id.valid()) return "\"\"";
    std::string& text = made_[id.index()];
    if (text.empty()) text = json_text(trace_.text(id));
    return text;
}

}  // namespace profiler
