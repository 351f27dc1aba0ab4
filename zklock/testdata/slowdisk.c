// Loaded by LD_PRELOAD, it makes the disk slow: each write that is waited for takes 250 ms more.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int fd) {
	usleep(250 * 1000);
	return syscall(SYS_fdatasync, fd);
}
