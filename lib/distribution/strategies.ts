/** Every way to train, one line each. No run is served by two of them, so that their order has no meaning. */
export { ddp } from './ddp';
export { deepspeed } from './deepspeed';
export { fsdp } from './fsdp';
export { huggingface } from './huggingface';
export { megatron } from './megatron';
export { mpi } from './mpi';
export { ray } from './ray';
export { script } from './script';
export { smddp } from './smddp';
export { smpV1 } from './smp-v1';
export { smpV2 } from './smp-v2';
export { torchrun } from './torchrun';
