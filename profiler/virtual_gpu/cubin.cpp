#include "profiler/virtual_gpu/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace profiler::virtual_gpu {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint16_t kMachineCuda = 190;       // EM_CUDA
constexpr unsigned char kEntryPoint = 0x10;  // STO_CUDA_ENTRY, in st_other
constexpr std::size_t kMostParameters = 4096;
/// Since ELF ABI 8 (CUDA 13) the capability lies in the second byte of the flags, before in the
/// first.
constexpr unsigned char kAbiOfSecondByte = 8;
/// From capability 9.0 on the sections of shared memory count what CUDA keeps of each block, too.
constexpr int64_t kReservedSharedBytes = 1024;

/// Attributes of .nv.info and .nv.info.KERNEL. Each begins with a byte for its format and one for
/// its number.
constexpr uint8_t kSizedFormat = 4;    // a size of 16 bits follows, and so many bytes
constexpr uint8_t kMaxThreads = 0x05;  // x, y, z
constexpr uint8_t kRequiredThreads = 0x10;
constexpr uint8_t kFrameSize = 0x11;      // symbol, bytes
constexpr uint8_t kMinStackSize = 0x12;   // symbol, bytes
constexpr uint8_t kParameter = 0x17;      // index, ordinal, offset, flags
constexpr uint8_t kRegisterCount = 0x2f;  // symbol, registers

/// Of the flags of a parameter: the space that it points into, and its size.
constexpr uint32_t kSpaceShift = 8, kSpaceMask = 0xf, kGlobalSpace = 4, kSizeShift = 18;

/// What lies outside of the bytes reads as zero, so callers check sizes first.
template <typename T>
T value_at(Bytes bytes, uint64_t offset) {
    T value{};
    if (offset <= bytes.size() && sizeof value <= bytes.size() - offset) {
        std::memcpy(&value, bytes.data() + offset, sizeof value);
    }
    return value;
}

/// The end of a table in the file; none if it overflows.
std::optional<uint64_t> end_of(uint64_t offset, uint64_t size) {
    uint64_t end = 0;
    if (__builtin_add_overflow(offset, size, &end)) return std::nullopt;
    return end;
}

/// The header of a cubin; none for any other file.
std::optional<Elf64_Ehdr> header_of(Bytes bytes) {
    if (bytes.size() < sizeof(Elf64_Ehdr)) return std::nullopt;
    const auto header = value_at<Elf64_Ehdr>(bytes, 0);
    const bool is_cubin = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                          header.e_ident[EI_CLASS] == ELFCLASS64 &&
                          header.e_ident[EI_DATA] == ELFDATA2LSB &&
                          header.e_machine == kMachineCuda && header.e_shnum > 0 &&
                          header.e_shentsize == sizeof(Elf64_Shdr) &&
                          (header.e_phnum == 0 || header.e_phentsize == sizeof(Elf64_Phdr));
    if (!is_cubin) return std::nullopt;
    return header;
}

class CubinReader {
public:
    explicit CubinReader(Bytes bytes) : bytes_(bytes) {}

    std::optional<Cubin> read() {
        if (!read_sections() || !read_symbols()) return std::nullopt;
        for (std::size_t i = 0; i < sections_.size(); ++i) {
            const std::string_view name = name_of(sections_[i]);
            constexpr std::string_view kInfo = ".nv.info.", kShared = ".nv.shared.";
            if (name == ".nv.info") {
                read_common_attributes(content_of(sections_[i]));
            } else if (name.starts_with(kInfo)) {
                if (CubinKernel* const kernel = kernel_named(name.substr(kInfo.size()))) {
                    read_own_attributes(content_of(sections_[i]), *kernel);
                }
            } else if (name.starts_with(kShared)) {
                if (CubinKernel* const kernel = kernel_named(name.substr(kShared.size()))) {
                    kernel->resources.shared_bytes = shared_bytes_of(sections_[i]);
                }
            }
        }
        return std::move(cubin_);
    }

private:
    /// False if a table or a section lies outside of the file.
    bool read_sections() {
        const auto header = header_of(bytes_);
        const auto size = cubin_bytes(bytes_);
        if (!header || !size || *size > bytes_.size()) return false;
        if (header->e_shstrndx >= header->e_shnum) return false;
        for (std::size_t i = 0; i < header->e_shnum; ++i) {
            sections_.push_back(
                value_at<Elf64_Shdr>(bytes_, header->e_shoff + i * sizeof(Elf64_Shdr)));
        }
        names_ = content_of(sections_[header->e_shstrndx]);
        const bool in_second_byte = header->e_ident[EI_ABIVERSION] >= kAbiOfSecondByte;
        cubin_.capability = static_cast<int>(header->e_flags >> (in_second_byte ? 8 : 0) & 0xff);
        for (const Elf64_Shdr& section : sections_) {
            reserves_shared_ |= name_of(section).starts_with(".nv.shared.reserved.");
        }
        return true;
    }

    bool read_symbols() {
        for (const Elf64_Shdr& section : sections_) {
            if (section.sh_type != SHT_SYMTAB) continue;
            if (section.sh_link >= sections_.size()) return false;
            const Bytes names = content_of(sections_[section.sh_link]);
            const Bytes symbols = content_of(section);
            const std::size_t count = symbols.size() / sizeof(Elf64_Sym);
            for (std::size_t i = 0; i < count; ++i) {
                add_symbol(i, value_at<Elf64_Sym>(symbols, i * sizeof(Elf64_Sym)), names);
            }
        }
        for (std::size_t i = 0; i < cubin_.kernels.size(); ++i) {
            kernel_by_name_.emplace(cubin_.kernels[i].name, i);
        }
        return true;
    }

    void add_symbol(std::size_t number, const Elf64_Sym& symbol, Bytes names) {
        const std::string_view name = text_at(names, symbol.st_name);
        if (name.empty()) return;
        const unsigned type = ELF64_ST_TYPE(symbol.st_info);
        if (type == STT_FUNC && (symbol.st_other & kEntryPoint) != 0) {
            kernel_of_symbol_[number] = cubin_.kernels.size();
            cubin_.kernels.push_back({.name = std::string(name)});
        } else if (type == STT_OBJECT && symbol.st_shndx != SHN_UNDEF &&
                   ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL) {
            cubin_.variables.push_back({std::string(name), symbol.st_size});
        }
    }

    /// Calls visit(attribute, value) for each attribute that has a size.
    template <typename Visit>
    static void for_each_attribute(Bytes section, const Visit& visit) {
        constexpr std::size_t kHead = 4;
        while (section.size() >= kHead) {
            const auto format = value_at<uint8_t>(section, 0);
            const auto attribute = value_at<uint8_t>(section, 1);
            const std::size_t size = format == kSizedFormat ? value_at<uint16_t>(section, 2) : 0;
            if (size > section.size() - kHead) return;
            if (format == kSizedFormat) visit(attribute, section.subspan(kHead, size));
            section = section.subspan(kHead + size);
        }
    }

    void read_common_attributes(Bytes section) {
        for_each_attribute(section, [&](uint8_t attribute, Bytes value) {
            if (value.size() < 8) return;
            const auto found = kernel_of_symbol_.find(value_at<uint32_t>(value, 0));
            if (found == kernel_of_symbol_.end()) return;
            KernelResources& resources = cubin_.kernels[found->second].resources;
            const auto number = value_at<uint32_t>(value, 4);
            if (attribute == kRegisterCount) {
                resources.registers = static_cast<int>(std::min<uint32_t>(number, 255));
            } else if (attribute == kFrameSize || attribute == kMinStackSize) {
                resources.local_bytes = std::max<int64_t>(resources.local_bytes, number);
            }
        });
    }

    static void read_own_attributes(Bytes section, CubinKernel& kernel) {
        for_each_attribute(section, [&](uint8_t attribute, Bytes value) {
            if (value.size() < 12) return;
            if (attribute == kMaxThreads || attribute == kRequiredThreads) {
                uint64_t threads = 1;
                for (const uint64_t at : {0U, 4U, 8U}) {
                    threads = std::min<uint64_t>(threads * value_at<uint32_t>(value, at), 1024);
                }
                kernel.resources.max_threads = static_cast<int>(threads);
            } else if (attribute == kParameter) {
                const std::size_t ordinal = value_at<uint16_t>(value, 4);
                if (ordinal >= kMostParameters) return;
                if (ordinal >= kernel.parameters.size()) kernel.parameters.resize(ordinal + 1);
                const auto flags = value_at<uint32_t>(value, 8);
                kernel.parameters[ordinal] = {
                    .offset = value_at<uint16_t>(value, 6),
                    .size = flags >> kSizeShift,
                    .is_pointer = (flags >> kSpaceShift & kSpaceMask) == kGlobalSpace};
            }
        });
    }

    int64_t shared_bytes_of(const Elf64_Shdr& section) const {
        constexpr uint64_t kMost = uint64_t{1} << 30;
        const auto size = static_cast<int64_t>(std::min(section.sh_size, kMost));
        return std::max<int64_t>(0, size - (reserves_shared_ ? kReservedSharedBytes : 0));
    }

    /// Checked by read_sections.
    Bytes content_of(const Elf64_Shdr& section) const {
        if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) return {};
        return bytes_.subspan(section.sh_offset, section.sh_size);
    }

    /// Empty if the text does not end within the table.
    static std::string_view text_at(Bytes table, std::size_t offset) {
        if (offset >= table.size()) return {};
        const auto* const start = reinterpret_cast<const char*>(table.data()) + offset;
        const std::size_t most = table.size() - offset;
        const std::size_t length = strnlen(start, most);
        return length == most ? std::string_view() : std::string_view(start, length);
    }

    std::string_view name_of(const Elf64_Shdr& section) const {
        return text_at(names_, section.sh_name);
    }

    CubinKernel* kernel_named(std::string_view name) {
        const auto found = kernel_by_name_.find(std::string(name));
        return found == kernel_by_name_.end() ? nullptr : &cubin_.kernels[found->second];
    }

    Bytes bytes_;
    std::vector<Elf64_Shdr> sections_;
    Bytes names_;  // of the sections
    bool reserves_shared_ = false;
    std::unordered_map<uint64_t, std::size_t> kernel_of_symbol_;
    std::unordered_map<std::string, std::size_t> kernel_by_name_;
    Cubin cubin_;
};

}  // namespace

std::optional<uint64_t> cubin_bytes(Bytes start) {
    const auto header = header_of(start);
    if (!header) return std::nullopt;
    const auto sections = end_of(header->e_shoff, uint64_t{header->e_shnum} * sizeof(Elf64_Shdr));
    const auto programs = end_of(header->e_phoff, uint64_t{header->e_phnum} * sizeof(Elf64_Phdr));
    if (!sections || !programs) return std::nullopt;
    uint64_t size = std::max({uint64_t{sizeof(Elf64_Ehdr)}, *sections, *programs});
    if (*sections > start.size()) return size;
    for (std::size_t i = 0; i < header->e_shnum; ++i) {
        const auto section = value_at<Elf64_Shdr>(start, header->e_shoff + i * sizeof(Elf64_Shdr));
        if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
        const auto end = end_of(section.sh_offset, section.sh_size);
        if (!end) return std::nullopt;
        size = std::max(size, *end);
    }
    return size;
}

std::optional<Cubin> read_cubin(Bytes bytes) { return CubinReader(bytes).read(); }

}  // namespace profiler::virtual_gpu
