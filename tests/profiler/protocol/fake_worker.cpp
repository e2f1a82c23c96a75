/// A worker without torch. The workload of the request chooses what it does: {"act": "echo"}.
/// TEMPOSCOPE_FAKE_WORKER chooses what it does before any request.
#include "profiler/protocol/frame.h"
#include "profiler/protocol/worker_server.h"

#include <sys/socket.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace {
using namespace profiler;
using namespace std::chrono_literals;

void write_raw(std::string_view bytes) {
    if (send(kWorkerDescriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) std::_Exit(9);
}

void say_hello() {
    write_raw(encode_frame(to_header(Hello{kProtocolVersion, std::string(build_version())}, 0)));
}

/// Acts like a broken worker. Does not return if it knows `act`.
void act_before_requests(const std::string& act) {
    if (act == "other-version") {
        write_raw(encode_frame(to_header(Hello{kProtocolVersion, "9.9.9"}, 0)));
        pause();
    } else if (act == "no-hello") {
        write_raw(encode_frame(to_header(ResultFrame{"x", {}}, 1)));
        pause();
    } else if (act == "oversized") {
        write_raw(std::string("\xff\xff\xff\xff\0\0\0\0", 8));
        pause();
    } else if (act == "broken-json") {
        say_hello();
        write_raw(std::string("\5\0\0\0\0\0\0\0{\"a\":", 13));
        pause();
    } else if (act == "unknown-kind") {
        say_hello();
        write_raw(encode_frame({{"protocol", 1}, {"id", 1}, {"kind", "surprise"}}));
        pause();
    } else if (act == "truncated") {
        say_hello();
        write_raw(std::string("\x40\0\0\0\0\0\0\0{\"kind\":", 16));
        std::_Exit(0);
    } else if (act == "library-missing") {
        std::fprintf(stderr, "error while loading shared libraries: libtorch_cpu.so\n");
        std::_Exit(127);
    } else if (act == "deaf") {
        say_hello();
        for (;;) pause();
    } else if (act == "immortal") {
        std::signal(SIGTERM, SIG_IGN);
        say_hello();
        for (;;) pause();
    }
}

WorkerOutcome work_until_cancelled(WorkerServer& server) {
    for (int64_t step = 1; !server.cancelled(); ++step) {
        server.send(Progress{"step", step, 0});
        std::this_thread::sleep_for(5ms);
    }
    return tl::unexpected(ErrorFrame{"The capture was cancelled.", 1, true});
}

/// Takes `steps` turns and writes each into the file `log`: "tempo 0 of 2" for step 0 of two
/// recipes.
WorkerOutcome take_turns(WorkerServer& server, const Request& request) {
    const nlohmann::json& workload = request.workload;
    const auto name = workload.at("recipe_name").get<std::string>();
    const auto write_log = [&](const std::string& text) {
        std::ofstream(workload.at("log").get<std::string>(), std::ios::app) << name << text << '\n';
    };
    const bool alone = !std::filesystem::exists(workload.value("needs_absent", "none"));
    write_log(alone ? " set up" : " out of memory");
    if (!alone) return tl::unexpected(ErrorFrame{"It does not fit.", 3});
    const std::ofstream present(workload.value("holds", "/dev/null"));
    for (int64_t step = 0; step < request.steps; ++step) {
        const auto turn = server.wait_for_turn(
            {workload.value("held", int64_t{0}), workload.value("available", int64_t{1} << 40)});
        if (!turn) return tl::unexpected(ErrorFrame{"The capture was cancelled.", 1, true});
        if (turn->run.empty()) return tl::unexpected(ErrorFrame{"The turn names no run."});
        write_log(fmt::format(" {} of {}", step, turn->recipes));
        if (workload.value("fails_at", int64_t{-1}) == step) {
            return tl::unexpected(ErrorFrame{name + " failed."});
        }
    }
    if (const std::string file = workload.value("holds", ""); !file.empty())
        std::remove(file.c_str());
    return ResultFrame{request.output_path, {}};
}

WorkerOutcome handle(WorkerServer& server, const Request& request) {
    const auto act = request.workload.is_object() ? request.workload.value("act", "echo") : "echo";
    if (act == "progress") {
        for (int64_t i = 1; i <= 3; ++i) server.send(Progress{"step", i, 3});
        for (int64_t i = 0; i < 1000; ++i) server.send(Sample{i, 2 * i, 3 * i, 1, "forward"});
    }
    if (act == "turns") return take_turns(server, request);
    if (act == "wait") return work_until_cancelled(server);
    if (act == "hang") std::this_thread::sleep_for(1h);
    if (act == "segv") {
        std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would report it and exit
        raise(SIGSEGV);
    }
    if (act == "kill") raise(SIGKILL);
    if (act == "exit") std::_Exit(7);
    if (act == "throw") throw std::runtime_error("The workload threw.");
    if (act == "bad-alloc") throw std::bad_alloc();
    if (act == "bad-alloc-in-thread") {
        std::fprintf(stderr, "terminate called\n  what():  std::bad_alloc\n");
        std::abort();
    }
    if (act == "no-stack-for-a-thread") {
        std::fprintf(stderr, "terminate called\n  what():  Resource temporarily unavailable\n");
        std::abort();
    }
    if (act == "no-room-for-a-library") {
        std::fprintf(stderr, "libtorch_cpu.so: failed to map segment from shared object\n");
        std::_Exit(127);
    }
    if (act == "payload") {
        return ResultFrame{.path = {}, .summary = {}, .payload = std::string("\0\n\xff", 3)};
    }
    if (act == "out-of-memory") {
        return tl::unexpected(ErrorFrame{"The capture ran out of memory.", 3});
    }
    if (act == "chatter") {
        for (int i = 0; i < 20000; ++i) std::printf("line %d\n", i);
        std::fflush(stdout);
    }
    return ResultFrame{request.output_path, to_header(request, 0)};
}

}  // namespace

int main() {
    if (!WorkerServer::has_program()) {
        std::fprintf(stderr, "started by hand\n");
        return 2;
    }
    if (const char* act = std::getenv("TEMPOSCOPE_FAKE_WORKER")) act_before_requests(act);
    WorkerServer server;
    std::fprintf(stderr, "fake worker %d\n", getpid());
    return server.serve([&](const Request& request) { return handle(server, request); });
}
