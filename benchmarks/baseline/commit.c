/* The least a group commit can be: write the bytes of one group, fdatasync, again. What the journal's acknowledgements from the disk are
   measured against.   usage: commit FILE ROWS_A_GROUP BYTES_A_GROUP SECONDS; prints one line of JSON. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **words) {
    if (count != 5) return fprintf(stderr, "usage: commit FILE ROWS_A_GROUP BYTES_A_GROUP SECONDS\n"), 2;
    long rows = atol(words[2]), bytes = atol(words[3]);
    double seconds = atof(words[4]);
    char *group = malloc((size_t)bytes);
    int file = open(words[1], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (file < 0 || !group) return perror(words[1]), 1;
    for (long place = 0; place < bytes; place++) group[place] = (char)(place * 31);
    long groups = 0;
    double began = now(), end = began + seconds;
    for (; now() < end; groups++) {
        for (long done = 0; done < bytes;) {
            ssize_t taken = write(file, group + done, (size_t)(bytes - done));
            if (taken <= 0) return perror("write"), 1;
            done += taken;
        }
        if (fdatasync(file)) return perror("fdatasync"), 1;
    }
    double took = now() - began;
    printf("{\"rows_s\": %.0f, \"groups\": %ld, \"group_us\": %.1f}\n", (double)(groups * rows) / took, groups, took / (double)groups * 1e6);
    return 0;
}
