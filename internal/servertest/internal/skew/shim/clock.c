/*
 * Shifts the wall clock of the process that preloads it by the nanoseconds in the file named by SERVERTEST_CLOCK: eight
 * bytes in the machine's order, mapped, so that whoever writes them steps the clock of a process that runs. The
 * monotonic clock is left alone, as by a step of a real machine's clock.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t *offset;

__attribute__((constructor)) static void map_offset(void) {
	const char *name = getenv("SERVERTEST_CLOCK");
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		static const char text[] = "clock shim: cannot map the file that SERVERTEST_CLOCK names\n";
		(void)!write(2, text, sizeof text - 1);
		_exit(127);
	}
	close(fd);
	offset = page;
}

/* The system call, since glibc's own functions are the ones replaced here. */
int clock_gettime(clockid_t id, struct timespec *t) {
	if (syscall(SYS_clock_gettime, id, t) != 0)
		return -1;
	if (offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		const int64_t second = 1000000000;
		int64_t ns = t->tv_sec * second + t->tv_nsec + __atomic_load_n(offset, __ATOMIC_RELAXED);
		t->tv_sec = ns / second;
		t->tv_nsec = ns % second;
	}
	return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	struct timespec now;
	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return -1;
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t) {
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return -1;
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}
