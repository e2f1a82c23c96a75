#include "app/commands/page_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace app {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::size_t kMaxBodyBytes = 1024;  // of a request, which has none

using Handled = httplib::Server::HandlerResponse;

void refuse(httplib::Response& answer, int status, const char* sentence) {
    answer.status = status;
    answer.set_content(sentence, "text/plain; charset=utf-8");
}

bool is_for(int port, const httplib::Request& request) {
    const std::string host = request.get_header_value("Host");
    return request.get_header_value_count("Host") == 1 &&
           (host == fmt::format("127.0.0.1:{}", port) || host == fmt::format("localhost:{}", port));
}

/// Without SO_REUSEPORT, which the library sets: it would let two servers share a port.
void reuse_address(socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

}  // namespace

struct PageServer::Impl {
    static constexpr std::size_t kMostConnections = 32;  // at a time; others wait

    httplib::Server server;
    std::string page;
    int port = 0;
    sem_t cancelled;  // a signal handler may post it

    Impl() { sem_init(&cancelled, 0, 0); }
    ~Impl() { sem_destroy(&cancelled); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void set_up() {
        server.set_socket_options(reuse_address);
        server.set_payload_max_length(kMaxBodyBytes);
        server.set_keep_alive_max_count(1);  // a connection that waits would delay the end
        server.set_keep_alive_timeout(1);
        server.set_read_timeout(std::chrono::seconds(5));
        // A connection that says nothing holds its thread for that time.
        server.new_task_queue = [] { return new httplib::ThreadPool(kMostConnections); };
        server.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                                    {"X-Frame-Options", "DENY"},
                                    {"Cross-Origin-Resource-Policy", "same-origin"},
                                    {"Cache-Control", "no-store"}});
        server.set_pre_routing_handler(
            [this](const httplib::Request& request, httplib::Response& answer) {
                return check(request, answer);
            });
        server.Get("/", [this](const httplib::Request&, httplib::Response& answer) {
            answer.set_content(page.data(), page.size(), "text/html; charset=utf-8");
        });
    }

    Handled check(const httplib::Request& request, httplib::Response& answer) const {
        if (!is_for(port, request)) {
            refuse(answer, 403, "This server answers to 127.0.0.1 and localhost only.\n");
            return Handled::Handled;
        }
        if (request.method != "GET") {
            answer.set_header("Allow", "GET");
            refuse(answer, 405, "This server answers GET only.\n");
            return Handled::Handled;
        }
        return Handled::Unhandled;
    }
};

PageServer::PageServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PageServer::PageServer(PageServer&&) noexcept = default;
PageServer::~PageServer() = default;

models::Result<PageServer> PageServer::listen(std::string page, int port) {
    auto impl = std::make_unique<Impl>();
    impl->page = std::move(page);
    impl->set_up();
    errno = 0;
    if (port == 0) {
        impl->port = impl->server.bind_to_any_port(kLoopback);
    } else {
        impl->port = impl->server.bind_to_port(kLoopback, port) ? port : -1;
    }
    if (impl->port <= 0) {
        return models::fail("The port {} of 127.0.0.1 cannot be used: choose another one (--port).",
                            port);
    }
    return PageServer(std::move(impl));
}

std::string PageServer::address() const {
    return fmt::format("http://{}:{}/", kLoopback, impl_->port);
}

void PageServer::run() {
    std::atomic<bool> ended = false;
    std::thread listener([&] {
        impl_->server.listen_after_bind();
        ended = true;
        sem_post(&impl_->cancelled);
    });
    while (sem_wait(&impl_->cancelled) != 0) {
    }
    // `stop` does nothing before the server runs.
    while (!impl_->server.is_running() && !ended) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    impl_->server.stop();
    listener.join();
}

void PageServer::cancel() { sem_post(&impl_->cancelled); }

}  // namespace app
