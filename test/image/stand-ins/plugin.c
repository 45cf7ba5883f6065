/* Stands in for aws-ofi-nccl: loads libfabric when it is loaded, names itself and the CUDA runtime as the real one does. */
#include <dlfcn.h>
extern int fi_stand_in(void);
const char *const first_line = "NET/OFI Initializing aws-ofi-nccl 1.17.0";
const char *const opened = "libcudart.so";
int stand_in_plugin(void) { return fi_stand_in() + (dlopen(opened, RTLD_LAZY) != 0) + (first_line[0] != 0); }
