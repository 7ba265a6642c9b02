/* The wall clock of a process, as many nanoseconds off as a file says; every other clock is the true one.

   Loaded before the C library. Not libfaketime: while a process waits, that shows the true time to its signal handlers.
   PostgreSQL decides in one whether a timeout is due, so that a server an hour ahead would time nothing out. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_ns;

__attribute__((constructor)) static void open_offset(void)
{
    const char *name = getenv("RELET_TEST_WALL_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset_ns, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        _exit(127); /* better no server than one with the true time */
    }
    offset_ns = mapped;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    int status = syscall(SYS_clock_gettime, clock, at);
    if (status == 0 && offset_ns && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t all_ns = at->tv_sec * 1000000000LL + at->tv_nsec + *offset_ns;
        at->tv_sec = all_ns / 1000000000LL;
        at->tv_nsec = all_ns % 1000000000LL;
    }
    return status;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return -1;
    }
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return (time_t)-1;
    }
    if (at) {
        *at = now.tv_sec;
    }
    return now.tv_sec;
}
