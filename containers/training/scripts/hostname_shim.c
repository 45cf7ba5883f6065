/*
 * gethostname() that returns this host's SageMaker name. The host name of every container of a job is "aws", so MPI would treat all
 * hosts as one. Loaded with LD_PRELOAD by MPI's processes. The name is SM_CURRENT_HOST, otherwise current_host of resourceconfig.json
 * below SAGEMAKER_BASE_DIR (/opt/ml). The file is searched instead of parsed, so its size is not limited. Without either, libc's
 * function is called.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 256 };

/* Copies the JSON string after `"current_host":` in `text` to `name`; returns 0 if there is none. Host names contain no escapes. */
static int find_host(const char *text, char *name)
{
    static const char key[] = "\"current_host\"";
    const char *at = strstr(text, key);
    if (!at)
        return 0;
    at += sizeof key - 1;
    at += strspn(at, " \t\r\n:");
    if (*at != '"')
        return 0;
    size_t length = strcspn(++at, "\"");
    if (length == 0 || length >= NAME_SIZE)
        return 0;
    memcpy(name, at, length);
    name[length] = '\0';
    return 1;
}

static char *read_all(FILE *file)
{
    char *text = NULL;
    size_t size = 0;
    if (getdelim(&text, &size, '\0', file) < 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int host_of_config(char *name)
{
    const char *base = getenv("SAGEMAKER_BASE_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/input/config/resourceconfig.json", base && *base ? base : "/opt/ml");
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    char *text = read_all(file);
    fclose(file);
    int found = text && find_host(text, name);
    free(text);
    return found;
}

int gethostname(char *name, size_t size)
{
    char found[NAME_SIZE];
    const char *given = getenv("SM_CURRENT_HOST");
    if (given && *given && strlen(given) < NAME_SIZE) {
        strcpy(found, given);
    } else {
        int saved = errno;
        int known = host_of_config(found);
        errno = saved;
        if (!known) {
            int (*real)(char *, size_t) = (int (*)(char *, size_t))dlsym(RTLD_NEXT, "gethostname");
            return real(name, size);
        }
    }
    if (strlen(found) >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(name, found);
    return 0;
}
