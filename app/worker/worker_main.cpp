// temposcope-worker: everything that needs libtorch, in its own process, so that a crash of a
// workload does not end the window or a command.

#include "app/worker/answers.h"
#include "profiler/capture/torch_adapter/torch_version.h"
#include "profiler/protocol/process_environment.h"
#include "profiler/protocol/worker_server.h"
#include "profiler/trace/file/temporary_paths.h"

#include <fmt/core.h>

#include <csignal>
#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
    profiler::open_missing_standard_streams();
    if (argc == 2 && std::string_view(argv[1]) == "--version") {
        fmt::print("temposcope-worker {}, torch {}\n", profiler::build_version(),
                   profiler::kTorchVersion);
        return std::fflush(stdout) == 0 ? 0 : 1;
    }
    if (!profiler::WorkerServer::has_program()) {
        fmt::print(stderr,
                   "temposcope-worker: this program is started by temposcope; run temposcope "
                   "capture instead.\n");
        return 2;
    }
    std::signal(SIGXFSZ, SIG_IGN);  // a file over its size limit is an error to report
    std::signal(SIGCHLD, SIG_DFL);  // ignored, it would hide how a child ended
    profiler::remove_paths_on_signals();
    profiler::WorkerServer server;
    return server.serve([&server](const profiler::Request& request) {
        return app::answer_request(request, server);
    });
}
