#include "app/commands/command.h"
#include "app/programs/program_run.h"
#include "profiler/trace/file/write_file.h"
#include "profiler/trace/text.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

namespace app {
namespace {

namespace fs = std::filesystem;

/// Becomes the server, a program of Python that calls this one. Returns only if it cannot.
Outcome serve(const std::string& folder) {
    const auto made = profiler::MadeFolder::make(folder);
    if (!made) return failed(made.error());
    const auto package = find_python_package();
    if (!package) return failed(package.error());
    const std::string python = python_interpreter();
    const std::string server = (*package / "programs" / "mcp_server.py").string();
    std::error_code ignored;
    const std::string program = fs::read_symlink("/proc/self/exe", ignored).string();
    execlp(python.c_str(), python.c_str(), server.c_str(), program.c_str(), folder.c_str(),
           nullptr);
    return fail_with(ExitCode::kFailed,
                     "The server needs Python, and {} cannot be started: {}; install Python and "
                     "run pip install \"temposcope[mcp]\", or name another in TEMPOSCOPE_PYTHON.",
                     python, profiler::reason_of(errno));
}

}  // namespace

void add_mcp_command(CommandLine& line) {
    Command& command =
        line.add_command("mcp", "Serve agents: the Model Context Protocol over standard input");
    const auto folder = std::make_shared<std::string>(".");
    command.add(
        {"-o,--output", "the folder into which, or below which, traces may be written", "FOLDER"},
        folder.get());
    command.footer(
        "A client starts it and calls its tools explain, info, compare, run and plan. It runs in\n"
        "the Python that TEMPOSCOPE_PYTHON names, else in python3, with the package mcp of PyPI:\n"
        "pip install \"temposcope[mcp]\" (docs/agents.md).\n\n"
        "Example:\n"
        "  temposcope mcp --output traces\n");
    command.on_run([folder](Output&) { return serve(*folder); });
}

}  // namespace app
