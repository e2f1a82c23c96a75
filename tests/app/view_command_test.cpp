#include "tests/app/json_keys.h"
#include "tests/app/program.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace {

using namespace tests;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// Sends a request to a port of this machine and returns the whole answer.
std::string ask(int port, const std::string& request) {
    const int socket_id = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::string answer;
    if (connect(socket_id, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
        write(socket_id, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
        char buffer[4096];
        for (ssize_t n = 0; (n = ::read(socket_id, buffer, sizeof(buffer))) > 0;) {
            answer.append(buffer, static_cast<std::size_t>(n));
        }
    }
    close(socket_id);
    return answer;
}

std::string get(int port, const std::string& host, const std::string& path = "/",
                const std::string& method = "GET") {
    return ask(port, fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", method,
                                 path, host));
}

/// The port in the address that the program has printed to this file; waits until it is there.
int printed_port(const std::string& path) {
    for (int i = 0; i < 500; ++i) {
        const std::string text = read_file(path);
        const std::size_t at = text.find("http://127.0.0.1:");
        if (at != text.npos && text.find('/', at + 17) != text.npos) {
            return std::stoi(text.substr(at + 17));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return 0;
}

class ViewCommand : public CommandTest {
protected:
    /// Serves the page of the trace while `visit` runs, and then sends the signal.
    void serve(const std::function<void(pid_t pid, int port)>& visit,
               const std::vector<std::string>& options = {}, int signal = SIGINT,
               const std::string& shell_setup = {}) {
        const Surroundings surroundings{.out_file = out_, .shell_setup = shell_setup};
        const Ran ran = run(joined({"view", a_, "--serve"}, options), surroundings, [&](pid_t pid) {
            visit(pid, printed_port(out_));
            kill(pid, signal);
        });
        EXPECT_EQ(ran.exit_code, 0) << ran.err;
    }

    std::string a_ = write_sample(folder_, "a.tscope");
    std::string out_ = folder_ / "out";
};

TEST_F(ViewCommand, WritesOnePageForOneOrTwoTraces) {
    const std::string b = write_sample(folder_, "b.tscope", {.recipe = "tempo"});
    const std::string page = folder_ / "new/page.html";
    Ran ran = run({"view", a_, "-o", page});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.out, "wrote " + page + "\n");
    EXPECT_THAT(read_file(page), StartsWith("<!doctype html>"));
    EXPECT_THAT(read_file(page), EndsWith("</html>\n"));
    ran = run({"view", a_, b, "-o", page, "--json"});
    EXPECT_EQ(ran.json()["output"], page);
    EXPECT_THAT(read_file(page), HasSubstr("<title>original and tempo"));
}

TEST_F(ViewCommand, NeedsOnePlaceForThePage) {
    expect_one_sentence(run({"view", a_}), 2, "-o page.html");
    expect_one_sentence(run({"view", a_, "-o", folder_ / "x.html", "--serve"}), 2, "choose one");
    expect_one_sentence(run({"view", a_, "-o", folder_ / "x.html", "--port", "80"}), 2, "--serve");
    expect_one_sentence(run({"view", a_, "--serve", "--port", "70000"}), 2, "from 1 to 65535");
    expect_one_sentence(run({"view", a_, a_, a_, "-o", folder_ / "x.html"}), 2);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "x.html"));
    expect_one_sentence(run({"view", a_, "-o", folder_ / "x.txt"}), 2, "ends in .txt, but a page");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "x.txt"));
}

TEST_F(ViewCommand, NeverReplacesATrace) {
    const std::string before = read_file(a_);
    expect_one_sentence(run({"view", a_, "-o", a_}), 2, "names a trace");
    expect_one_sentence(run({"view", a_, "-o", folder_ / "other.tscope"}), 2, "names a trace");
    EXPECT_EQ(read_file(a_), before);
}

TEST_F(ViewCommand, RefusesAFileWithoutMemoryOverTime) {
    const std::string sweep =
        write_sample(folder_, "sweep.tscope", {.sweep = {{4, {1000}}}, .steps = 0});
    expect_one_sentence(run({"view", sweep, "-o", folder_ / "x.html"}), 1,
                        "holds no recorded step");
}

TEST_F(ViewCommand, ServesThePageToThisMachineUntilItIsInterrupted) {
    serve([](pid_t, int port) {
        const std::string host = fmt::format("127.0.0.1:{}", port);
        const std::string page = get(port, host);
        EXPECT_THAT(page, StartsWith("HTTP/1.1 200 "));
        EXPECT_THAT(page, HasSubstr("\r\nX-Frame-Options: DENY\r\n"));
        EXPECT_THAT(page, HasSubstr("<!doctype html>"));
        EXPECT_THAT(page, EndsWith("</html>\n"));
        EXPECT_THAT(get(port, fmt::format("localhost:{}", port)), StartsWith("HTTP/1.1 200 "));
        EXPECT_THAT(get(port, host, "/other"), StartsWith("HTTP/1.1 404 "));
        EXPECT_THAT(get(port, host, "/../etc/passwd"), StartsWith("HTTP/1.1 404 "));
        for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "HEAD"}) {
            EXPECT_THAT(get(port, host, "/", method), StartsWith("HTTP/1.1 405 ")) << method;
        }
    });
}

TEST_F(ViewCommand, RefusesHostsThatOnlyPointToThisMachine) {
    const auto visit = [](pid_t, int port) {
        for (const std::string& host :
             {std::string("evil.example"), fmt::format("evil.example:{}", port),
              std::string("127.0.0.1"), fmt::format("127.0.0.1:{}", port + 1), std::string()}) {
            const std::string answer = get(port, host);
            EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 ")) << host;
            EXPECT_THAT(answer, testing::Not(HasSubstr("<!doctype"))) << host;
        }
        EXPECT_THAT(ask(port, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"),
                    StartsWith("HTTP/1.1 403 "));
    };
    serve(visit, {"--json"}, SIGTERM);
    EXPECT_EQ(keys_of(nlohmann::json::parse(read_file(out_))), documented("served view"));
}

TEST_F(ViewCommand, ASignalThatNohupIgnoresStaysIgnored) {
    const auto visit = [](pid_t pid, int port) {
        kill(pid, SIGHUP);
        EXPECT_THAT(get(port, fmt::format("127.0.0.1:{}", port)), StartsWith("HTTP/1.1 200 "));
    };
    serve(visit, {}, SIGINT, "trap '' HUP");
}

TEST_F(ViewCommand, SaysThatAPortIsTaken) {
    serve([&](pid_t, int port) {
        const std::string taken = std::to_string(port);
        expect_one_sentence(run({"view", a_, "--serve", "--port", taken}), 1,
                            "The port " + taken + " of 127.0.0.1 cannot be used");
    });
}

}  // namespace
