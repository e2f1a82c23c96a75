#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace app {

/// A folder of this process, with all in it until the object is gone.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::error_code error;
        std::string name =
            (std::filesystem::temp_directory_path(error) / "temposcope-XXXXXX").string();
        if (!error && mkdtemp(name.data()) != nullptr) path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    bool exists() const { return !path_.empty(); }
    std::filesystem::path operator/(const char* name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

inline constexpr const char* kNoTemporaryFolder =
    "No folder for temporary files can be made: free some space, or name another place in TMPDIR.";

}  // namespace app
