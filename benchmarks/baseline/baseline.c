/* The baseline: the least work that delivers messages to WebSocket clients. One thread, one epoll, one send a delivery, nothing
 * parsed, nothing kept. What a real node costs beyond this is what it does beyond this.
 *
 *   baseline PORT [merge]     prints "listening 127.0.0.1:PORT"; `merge` sends what one wake-up brought as one send a client
 *
 * A client asks for an upgrade in one segment and gets a canned answer. Its first frame is `S` (listen) or `P` (publish, `p`
 * without acknowledgements) and a group, a little-endian u32. Frames are masked with zeros and have a 16-bit length, so a
 * header is 8 bytes. A publish is a group and content; the content goes to the group's listeners in a frame of its own.
 * A socket that takes no more ends the program: the baseline has no queue and loses nothing quietly. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 512, READ_BYTES = 256 * 1024, MERGED_BYTES = 4 * 1024 * 1024, HEAD = 8 };

enum role { NEW, OPENED, LISTENER, PUBLISHER };

struct client {
    enum role role;
    int wants_acks;
    uint32_t group, place;
    char *rest; /* the first part of a publish whose end has not come */
    uint32_t rest_bytes;
};

struct group {
    int *listeners;
    uint32_t count, room;
    char *merged; /* merge: frames of this wake-up */
    uint32_t merged_bytes;
};

static struct client *clients;
static struct group *groups;
static uint32_t groups_room, *touched, touched_count;
static int is_merging, poll_fd;
static char *input;

static const char ANSWER[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n";

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void *grow(void *old, size_t bytes)
{
    void *grown = realloc(old, bytes);
    if (!grown)
        fail("realloc");
    return grown;
}

static void put(int fd, const void *bytes, size_t count)
{
    if (send(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)count && errno != ECONNRESET && errno != EPIPE) {
        fprintf(stderr, "baseline: client %d took too little\n", fd);
        exit(1);
    }
}

static struct group *find_group(uint32_t number)
{
    if (number >= groups_room) {
        uint32_t room = number * 2 + 64;
        groups = grow(groups, room * sizeof *groups);
        touched = grow(touched, room * sizeof *touched);
        memset(groups + groups_room, 0, (room - groups_room) * sizeof *groups);
        groups_room = room;
    }
    return groups + number;
}

static void join(int fd, uint32_t number)
{
    struct group *group = find_group(number);
    if (group->count == group->room) {
        group->room = group->room * 2 + 1;
        group->listeners = grow(group->listeners, group->room * sizeof *group->listeners);
    }
    clients[fd].place = group->count;
    group->listeners[group->count++] = fd;
    put(fd, "\x82\x01S", 3);
}

static void leave(int fd)
{
    struct client *client = clients + fd;
    if (client->role == LISTENER) {
        struct group *group = groups + client->group;
        int last = group->listeners[--group->count];
        group->listeners[client->place] = last;
        clients[last].place = client->place;
    }
    free(client->rest);
    memset(client, 0, sizeof *client);
    close(fd);
}

/* The header of the content's frame is written over the four bytes before it, which were the group. */
static void deliver(uint32_t number, char *content, uint32_t bytes)
{
    struct group *group = find_group(number);
    char *frame = content - 4;
    frame[0] = (char)0x82;
    frame[1] = 126;
    frame[2] = (char)(bytes >> 8);
    frame[3] = (char)bytes;
    if (is_merging) {
        if (!group->merged)
            group->merged = grow(NULL, MERGED_BYTES);
        if (!group->merged_bytes)
            touched[touched_count++] = number;
        if (group->merged_bytes + bytes + 4 > MERGED_BYTES)
            fail("merge");
        memcpy(group->merged + group->merged_bytes, frame, bytes + 4);
        group->merged_bytes += bytes + 4;
        return;
    }
    for (uint32_t n = 0; n < group->count; n++)
        put(group->listeners[n], frame, bytes + 4);
}

static void deliver_merged(void)
{
    for (uint32_t t = 0; t < touched_count; t++) {
        struct group *group = groups + touched[t];
        for (uint32_t n = 0; n < group->count; n++)
            put(group->listeners[n], group->merged, group->merged_bytes);
        group->merged_bytes = 0;
    }
    touched_count = 0;
}

static void acknowledge(int fd, uint32_t count)
{
    char frame[6] = {(char)0x82, 4};
    memcpy(frame + 2, &count, 4);
    put(fd, frame, sizeof frame);
}

/* Takes the whole frames in `bytes` of a client; returns how many bytes they were. */
static uint32_t take_frames(int fd, char *bytes, uint32_t count)
{
    uint32_t used = 0, published = 0;
    while (count - used >= HEAD) {
        char *frame = bytes + used;
        uint32_t length = (uint32_t)(uint8_t)frame[2] << 8 | (uint8_t)frame[3], number;
        if (count - used < HEAD + length)
            break;
        if (clients[fd].role == OPENED) {
            memcpy(&clients[fd].group, frame + HEAD + 1, 4);
            clients[fd].role = frame[HEAD] == 'S' ? LISTENER : PUBLISHER;
            clients[fd].wants_acks = frame[HEAD] == 'P';
            if (clients[fd].role == LISTENER)
                join(fd, clients[fd].group);
        } else {
            memcpy(&number, frame + HEAD, 4);
            deliver(number, frame + HEAD + 4, length - 4);
            published++;
        }
        used += HEAD + length;
    }
    if (published && clients[fd].wants_acks)
        acknowledge(fd, published);
    return used;
}

static void receive(int fd)
{
    struct client *client = clients + fd;
    if (client->rest_bytes)
        memcpy(input, client->rest, client->rest_bytes);
    ssize_t got = recv(fd, input + client->rest_bytes, READ_BYTES, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        leave(fd);
        return;
    }
    uint32_t count = client->rest_bytes + (uint32_t)got, used;
    if (client->role == NEW) {
        client->role = OPENED;
        put(fd, ANSWER, sizeof ANSWER - 1);
        return;
    }
    used = take_frames(fd, input, count);
    client->rest_bytes = count - used;
    if (client->rest_bytes) {
        if (!client->rest)
            client->rest = grow(NULL, HEAD + 65536);
        memcpy(client->rest, input + used, client->rest_bytes);
    }
}

static void welcome(int listener)
{
    int fd, yes = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event))
            fail("epoll_ctl");
    }
}

static int open_listener(uint16_t port)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    address.sin_port = htons(port);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096))
        fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("listening 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

int main(int count, char **arguments)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    is_merging = count > 2 && !strcmp(arguments[2], "merge");
    clients = calloc(limit.rlim_cur, sizeof *clients);
    input = malloc(READ_BYTES + HEAD + 65536);
    poll_fd = epoll_create1(0);
    find_group(0);

    int listener = open_listener((uint16_t)(count > 1 ? atoi(arguments[1]) : 0));
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[EVENTS];
    if (!clients || !input || poll_fd < 0 || epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &event))
        fail("start");
    for (;;) {
        int ready = epoll_wait(poll_fd, events, EVENTS, -1);
        for (int n = 0; n < ready; n++) {
            if (events[n].data.fd == listener)
                welcome(listener);
            else
                receive(events[n].data.fd);
        }
        if (is_merging)
            deliver_merged();
    }
}
